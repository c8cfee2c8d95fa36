//! The struct, and which of its fields are learned.

use crate::fields::{self, last_name};
use syn::spanned::Spanned;
use syn::{Attribute, Data, DeriveInput, Error, Field, Member, Result, Type};

pub struct ParameterField {
    pub member: Member,
    pub ty: Type,
    pub kind: FieldKind,
}

/// The kind of a field, from its attribute.
#[derive(Clone, Copy, PartialEq)]
pub enum FieldKind {
    /// A field without an attribute is learned.
    Learned,
    /// `#[parameters(state)]`: tensors that recorded functions take and return, and that
    /// checkpoints contain. Gradients and optimizers treat them as constants.
    State,
    /// `#[parameters(constant)]`
    Constant,
}

pub fn parts(input: &DeriveInput) -> Result<Vec<ParameterField>> {
    match &input.data {
        Data::Struct(data) => {
            misplaced(&input.attrs)?;
            fields::each(data.fields.clone(), part)
        }
        Data::Enum(data) => Err(Error::new(
            data.enum_token.span,
            "an enum has no fixed parameters: make it a struct, with an `Option` for each part that can be missing",
        )),
        Data::Union(data) => Err(Error::new(data.union_token.span, "`#[derive(Parameters)]` is for structs")),
    }
}

/// Refuses the attribute on the struct itself.
fn misplaced(attrs: &[Attribute]) -> Result<()> {
    match attrs.iter().find(|attr| attr.path().is_ident("parameters")) {
        Some(attr) => Err(Error::new(attr.span(), "`#[parameters(..)]` is for fields")),
        None => Ok(()),
    }
}

fn part(member: Member, field: Field) -> Result<ParameterField> {
    let kind = kind(&field)?;
    if kind != FieldKind::Constant
        && let Some(what) = borrowed(&field.ty)
    {
        let message = format!(
            "{what} borrows its elements, which cannot be learned: make it a `Tensor`, or mark the field `#[parameters(constant)]`"
        );
        return Err(Error::new_spanned(&field.ty, message));
    }
    Ok(ParameterField { member, ty: field.ty, kind })
}

/// A description of the type for messages, if it borrows tensors.
fn borrowed(ty: &Type) -> Option<&'static str> {
    match ty {
        Type::Reference(_) => Some("a reference"),
        _ if last_name(ty).is_some_and(|name| name == "TensorView") => Some("a `TensorView`"),
        _ => None,
    }
}

fn kind(field: &Field) -> Result<FieldKind> {
    let mut kind = None;
    for attr in field.attrs.iter().filter(|attr| attr.path().is_ident("parameters")) {
        let mut is_empty = true;
        attr.parse_nested_meta(|meta| {
            is_empty = false;
            let own = match meta.path.get_ident() {
                Some(word) if word == "constant" => FieldKind::Constant,
                Some(word) if word == "state" => FieldKind::State,
                _ => return Err(meta.error("expected `constant` or `state`")),
            };
            match kind.replace(own) {
                Some(_) => Err(meta.error("a field is either `constant` or `state`: remove one of them")),
                None => Ok(()),
            }
        })?;
        if is_empty {
            return Err(Error::new(
                attr.span(),
                "expected `#[parameters(constant)]` or `#[parameters(state)]`",
            ));
        }
    }
    Ok(kind.unwrap_or(FieldKind::Learned))
}
