//! The struct, and how each of its fields is loaded.

use crate::fields::{self, is_generic, last_name};
use crate::groups::Ungroup;
use proc_macro2::Ident;
use syn::spanned::Spanned;
use syn::visit_mut::VisitMut;
use syn::{
    Data, DeriveInput, Error, Expr, Field, GenericArgument, Generics, LitStr, Member, PathArguments, Result,
    Token, Type,
};

pub struct LoadInput {
    pub ident: Ident,
    pub generics: Generics,
    pub fields: Vec<LoadField>,
}

pub struct LoadField {
    pub member: Member,
    pub ty: Type,
    pub how: How,
}

/// How a field is loaded.
pub enum How {
    /// The array with this name. `axes` is the type of its axes in the file, and `layout` the type
    /// of the axes in their order in memory.
    Tensor { name: String, axes: Box<Type>, layout: Option<Box<Type>> },
    /// The `Load` impl of the field's type, for the arrays below this name.
    Nested { name: String },
    /// This value, or `Default::default()`.
    Default(Option<Box<Expr>>),
}

/// The `#[load(..)]` options of a field.
#[derive(Default)]
struct Options {
    name: Option<LitStr>,
    axes: Option<Type>,
    layout: Option<Type>,
    /// `default`, with its value if there is one.
    default: Option<Option<Box<Expr>>>,
}

impl LoadInput {
    /// Parses a struct. Reports the mistakes of all fields together.
    pub fn new(input: DeriveInput) -> Result<Self> {
        let Data::Struct(data) = input.data else {
            return Err(Error::new(input.ident.span(), "`#[derive(Load)]` is for structs"));
        };
        let fields =
            fields::each(data.fields, |member, field| part(member, field, &input.ident, &input.generics))?;
        Ok(LoadInput { ident: input.ident, generics: input.generics, fields })
    }
}

fn part(member: Member, field: Field, ident: &Ident, generics: &Generics) -> Result<LoadField> {
    let options = options(&field, &|axes| is_generic(axes, ident, generics))?;
    let name = options.name.map_or_else(|| fields::name(&member), |name| name.value());
    if let Some(layout) = &options.layout
        && last_name(&field.ty).is_some_and(|name| name == "TensorView")
    {
        let message = "a `TensorView` borrows its elements, so it has the layout of the file: use a `Tensor` for another layout";
        return Err(Error::new(layout.span(), message));
    }
    if let Some(value) = options.default {
        return Ok(LoadField { member, ty: field.ty, how: How::Default(value) });
    }
    let written = written_axes(&field.ty, options.axes.is_some())?;
    if let (Some(layout), None, Written::Nothing | Written::Other) =
        (&options.layout, &options.axes, &written)
    {
        let message = "a `layout` is for the axes of a tensor, and this field's type does not show them: write `axes = (..)`, too";
        return Err(Error::new(layout.span(), message));
    }
    let how = match (options.axes, written) {
        (Some(axes), _) => How::Tensor { name, axes: Box::new(axes), layout: options.layout.map(Box::new) },
        (None, Written::Dims(axes)) => How::Tensor { name, axes, layout: options.layout.map(Box::new) },
        (None, Written::Nothing) => How::Default(None),
        (None, Written::Other) => How::Nested { name },
    };
    Ok(LoadField { member, ty: field.ty, how })
}

fn options(field: &Field, is_generic: &dyn Fn(&Type) -> bool) -> Result<Options> {
    let mut options = Options::default();
    for attr in field.attrs.iter().filter(|attr| attr.path().is_ident("load")) {
        attr.parse_nested_meta(|meta| {
            let given = [
                ("name", options.name.is_some()),
                ("axes", options.axes.is_some()),
                ("layout", options.layout.is_some()),
                ("default", options.default.is_some()),
            ];
            if let Some((option, _)) =
                given.iter().find(|(option, given)| *given && meta.path.is_ident(option))
            {
                return Err(meta.error(format!("`{option}` is given twice")));
            }
            if meta.path.is_ident("name") {
                options.name = Some(meta.value()?.parse()?);
            } else if meta.path.is_ident("axes") {
                options.axes = Some(axes(meta.value()?.parse()?, is_generic)?);
            } else if meta.path.is_ident("layout") {
                options.layout = Some(axes(meta.value()?.parse()?, is_generic)?);
            } else if meta.path.is_ident("default") {
                let mut value: Option<Box<Expr>> = None;
                if meta.input.peek(Token![=]) {
                    Ungroup.visit_expr_mut(value.insert(meta.value()?.parse()?));
                }
                options.default = Some(value);
            } else {
                return Err(
                    meta.error("expected `name = \"..\"`, `axes = (..)`, `layout = (..)` or `default`")
                );
            }
            Ok(())
        })?;
    }
    if options.default.is_some() {
        let given = [
            options.name.as_ref().map(|name| ("name", name.span())),
            options.axes.as_ref().map(|axes| ("axes", axes.span())),
            options.layout.as_ref().map(|layout| ("layout", layout.span())),
        ];
        if let Some((option, span)) = given.into_iter().flatten().next() {
            let message = format!(
                "a field with `default` is not read from the file, so `{option}` has no effect: remove one of them"
            );
            return Err(Error::new(span, message));
        }
    }
    Ok(options)
}

/// Checks a list of axes: a tuple, or a generic type that stands for one.
fn axes(mut axes: Type, is_generic: &dyn Fn(&Type) -> bool) -> Result<Type> {
    Ungroup.visit_type_mut(&mut axes);
    if matches!(axes, Type::Tuple(_)) || is_generic(&axes) {
        return Ok(axes);
    }
    let message = "expected a tuple with a dim for each axis, or with a tuple of dims for an axis that is split: `((Head, HeadDim), Width)`";
    Err(Error::new(axes.span(), message))
}

/// How a field is loaded, judging by its type.
enum Written {
    /// `Tensor<T, (A, B)>`: these dims, in this order.
    Dims(Box<Type>),
    /// `PhantomData<..>`
    Nothing,
    /// Any other type.
    Other,
}

/// `given` says whether an attribute lists the axes.
fn written_axes(ty: &Type, given: bool) -> Result<Written> {
    let Type::Path(path) = ty else { return Ok(Written::Other) };
    let Some(last) = path.path.segments.last() else { return Ok(Written::Other) };
    if last.ident == "PhantomData" {
        return Ok(Written::Nothing);
    }
    if last.ident != "Tensor" && last.ident != "TensorView" {
        return Ok(Written::Other);
    }
    let PathArguments::AngleBracketed(args) = &last.arguments else { return Ok(Written::Other) };
    let types: Vec<&Type> = args
        .args
        .iter()
        .filter_map(|arg| if let GenericArgument::Type(ty) = arg { Some(ty) } else { None })
        .collect();
    match types[..] {
        [_, dims @ Type::Tuple(_)] => Ok(Written::Dims(Box::new(dims.clone()))),
        [_, _] if given => Ok(Written::Other),
        [_, dims] => {
            let message = "the order of the axes in the file is missing: add `#[load(axes = (..))]`";
            Err(Error::new(dims.span(), message))
        }
        [_, _, rank] => Err(Error::new(
            rank.span(),
            "a tensor with positional axes cannot be loaded: give each axis a dim",
        )),
        _ => Ok(Written::Other),
    }
}
