//! The fields of a struct, for derives.

use proc_macro2::{Ident, Span, TokenStream};
use syn::spanned::Spanned;
use syn::visit::Visit;
use syn::{
    Error, Field, Fields, GenericArgument, Generics, Member, PathArguments, Result, Type, TypeParam,
    TypeParamBound, WherePredicate, parse_quote,
};

/// Reads each field with `read`. Reports the errors of all fields together.
pub fn each<F>(fields: Fields, mut read: impl FnMut(Member, Field) -> Result<F>) -> Result<Vec<F>> {
    let mut parts = Vec::new();
    let mut errors: Option<Error> = None;
    for (at, field) in fields.into_iter().enumerate() {
        let member = field.ident.clone().map_or_else(|| Member::Unnamed(at.into()), Member::Named);
        match read(member, field) {
            Ok(part) => parts.push(part),
            Err(error) => match &mut errors {
                Some(errors) => errors.combine(error),
                None => errors = Some(error),
            },
        }
    }
    errors.map_or(Ok(parts), Err)
}

/// The span for code generated from this type: rustc's messages point to the type, and names
/// resolve at the derive's call site, even if the type came from another macro.
pub fn at(ty: &Type) -> Span {
    ty.span().resolved_at(Span::call_site())
}

/// The name of a field: `type` for `r#type`, and `0` for the first field of a tuple struct.
pub fn name(member: &Member) -> String {
    match member {
        Member::Named(ident) => ident.to_string().trim_start_matches("r#").to_owned(),
        Member::Unnamed(index) => index.index.to_string(),
    }
}

/// The last name of a path: `Tensor` for `typed_dims::Tensor<..>`.
pub fn last_name(ty: &Type) -> Option<&Ident> {
    match ty {
        Type::Path(path) => path.path.segments.last().map(|last| &last.ident),
        _ => None,
    }
}

/// The bounds that an impl for a struct needs so that a field's type implements `of`: at most one
/// for each part of the type. If a part is a tensor, its element type gets the bound
/// `of_element` instead.
///
/// A part needs a bound only if it depends on a parameter that can be a layer or an element type. A
/// tensor over generic dims implements `of` wherever the struct itself is well-formed, and so does
/// a type whose parameters are all dims. A bound on such a type would name the sorted set of its
/// dims. rustc would compute that set before it sees the struct's own bounds, such as
/// `where Gate: Before<I>`, which it needs to sort the set.
pub fn bounds(
    ty: &Type,
    of: &TokenStream,
    of_element: &TokenStream,
    ident: &Ident,
    generics: &Generics,
) -> Vec<WherePredicate> {
    parts(ty)
        .into_iter()
        .filter_map(|part| match element(part) {
            Some(element) => {
                let is_bound = mentions(element, ident, generics, |_| true);
                is_bound.then(|| parse_quote!(#element: #of_element))
            }
            None => {
                let is_bound = mentions(part, ident, generics, |param| !is_dim(param, generics));
                is_bound.then(|| parse_quote!(#part: #of))
            }
        })
        .collect()
}

/// Whether a type depends on a type parameter of the struct, and does not contain the struct
/// itself.
pub fn is_generic(ty: &Type, ident: &Ident, generics: &Generics) -> bool {
    mentions(ty, ident, generics, |_| true)
}

/// The parts of a type: the types inside its tuples, arrays, `Vec`s, `Option`s and `Box`es, or the
/// type itself.
fn parts(ty: &Type) -> Vec<&Type> {
    match ty {
        Type::Tuple(tuple) => tuple.elems.iter().flat_map(parts).collect(),
        Type::Array(array) => parts(&array.elem),
        Type::Group(group) => parts(&group.elem),
        Type::Paren(paren) => parts(&paren.elem),
        Type::Path(_) if is_named(ty, &["Vec", "Option", "Box"]) => {
            arguments(ty).into_iter().flat_map(parts).collect()
        }
        _ => vec![ty],
    }
}

/// The type of the elements, if this is a tensor.
fn element(ty: &Type) -> Option<&Type> {
    match arguments(ty)[..] {
        [element, _, ..] if is_named(ty, &["Tensor", "Named", "TensorView"]) => Some(element),
        _ => None,
    }
}

fn is_named(ty: &Type, names: &[&str]) -> bool {
    last_name(ty).is_some_and(|name| names.iter().any(|one| name == one))
}

/// The types in the angle brackets at the end of a path.
fn arguments(ty: &Type) -> Vec<&Type> {
    let Type::Path(path) = ty else { return Vec::new() };
    match path.path.segments.last().map(|last| &last.arguments) {
        Some(PathArguments::AngleBracketed(list)) => {
            let types = list.args.iter().filter_map(|argument| match argument {
                GenericArgument::Type(ty) => Some(ty),
                _ => None,
            });
            types.collect()
        }
        _ => Vec::new(),
    }
}

/// Whether a type mentions a type parameter for which `is_one` holds, but not the struct itself.
///
/// A type that contains the struct itself, such as `Vec<Self>`, gets no bound: to prove the bound,
/// rustc would need the impl, and to use the impl, it would need the bound.
fn mentions(ty: &Type, ident: &Ident, generics: &Generics, is_one: impl Fn(&TypeParam) -> bool) -> bool {
    struct Idents<F>(F);
    impl<F: FnMut(&Ident)> Visit<'_> for Idents<F> {
        fn visit_ident(&mut self, ident: &Ident) {
            (self.0)(ident);
        }
    }
    let (mut has_param, mut has_itself) = (false, false);
    Idents(|found: &Ident| {
        has_param |= generics.type_params().any(|param| param.ident == *found && is_one(param));
        has_itself |= found == ident || found == "Self";
    })
    .visit_type(ty);
    has_param && !has_itself
}

/// Whether a generic parameter is a dim, judging by its bounds.
fn is_dim(param: &TypeParam, generics: &Generics) -> bool {
    const TRAITS: [&str; 5] = ["AnyDim", "DimOf", "Declared", "Before", "After"];
    let says = |bound: &TypeParamBound| match bound {
        TypeParamBound::Trait(bound) => {
            bound.path.segments.last().is_some_and(|last| TRAITS.iter().any(|name| last.ident == name))
        }
        _ => false,
    };
    let in_clause = |predicate: &WherePredicate| match predicate {
        WherePredicate::Type(of) => {
            matches!(&of.bounded_ty, Type::Path(path) if path.path.is_ident(&param.ident))
                && of.bounds.iter().any(says)
        }
        _ => false,
    };
    param.bounds.iter().any(says)
        || generics.where_clause.as_ref().is_some_and(|clause| clause.predicates.iter().any(in_clause))
}
