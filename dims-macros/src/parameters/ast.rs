//! The struct, and which of its fields are constant.

use crate::fields::{self, last_name};
use syn::spanned::Spanned;
use syn::{Attribute, Data, DeriveInput, Error, Field, Member, Result, Type};

/// One field.
pub struct ParameterField {
    pub member: Member,
    pub ty: Type,
    pub is_constant: bool,
}

/// The fields of the struct.
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

/// The attribute is for fields.
fn misplaced(attrs: &[Attribute]) -> Result<()> {
    match attrs.iter().find(|attr| attr.path().is_ident("parameters")) {
        Some(attr) => Err(Error::new(attr.span(), "`#[parameters(constant)]` is for fields")),
        None => Ok(()),
    }
}

fn part(member: Member, field: Field) -> Result<ParameterField> {
    let is_constant = is_constant(&field)?;
    if !is_constant && let Some(what) = borrowed(&field.ty) {
        let message = format!(
            "{what} borrows its elements, which cannot be learned: make it a `Tensor`, or mark the field `#[parameters(constant)]`"
        );
        return Err(Error::new_spanned(&field.ty, message));
    }
    Ok(ParameterField { member, ty: field.ty, is_constant })
}

/// How a message calls the type, if it borrows tensors.
fn borrowed(ty: &Type) -> Option<&'static str> {
    match ty {
        Type::Reference(_) => Some("a reference"),
        _ if last_name(ty).is_some_and(|name| name == "TensorView") => Some("a `TensorView`"),
        _ => None,
    }
}

fn is_constant(field: &Field) -> Result<bool> {
    let mut is_constant = false;
    for attr in field.attrs.iter().filter(|attr| attr.path().is_ident("parameters")) {
        let mut is_empty = true;
        attr.parse_nested_meta(|meta| {
            is_empty = false;
            if meta.path.is_ident("constant") {
                is_constant = true;
                return Ok(());
            }
            Err(meta.error("expected `constant`"))
        })?;
        if is_empty {
            return Err(Error::new(attr.span(), "expected `#[parameters(constant)]`"));
        }
    }
    Ok(is_constant)
}
