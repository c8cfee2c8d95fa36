//! The fields of a struct, for derives.

use proc_macro2::Ident;
use syn::visit::Visit;
use syn::{Error, Field, Fields, Generics, Member, Result, Type};

/// Reads each field with `read`. All mistakes are found before any is reported.
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

/// The name of a field: `type` for `r#type`, and `0` for the first field of a tuple struct.
pub fn name(member: &Member) -> String {
    match member {
        Member::Named(ident) => ident.to_string().trim_start_matches("r#").to_owned(),
        Member::Unnamed(index) => index.index.to_string(),
    }
}

/// The name at the end of a path, `Tensor` of `typed_dims::Tensor<..>`.
pub fn last_name(ty: &Type) -> Option<&Ident> {
    match ty {
        Type::Path(path) => path.path.segments.last().map(|last| &last.ident),
        _ => None,
    }
}

/// Whether the impl for a struct needs a bound on the type of a field: the type depends on the struct's parameters.
///
/// A type with the struct itself in it, `Vec<Self>`, gets no bound: rustc would need the impl to prove it, and the bound to use the impl.
pub fn needs_bound(ty: &Type, ident: &Ident, generics: &Generics) -> bool {
    struct Idents<F>(F);
    impl<F: FnMut(&Ident)> Visit<'_> for Idents<F> {
        fn visit_ident(&mut self, ident: &Ident) {
            (self.0)(ident);
        }
    }
    let (mut has_param, mut has_itself) = (false, false);
    Idents(|found: &Ident| {
        has_param |= generics.type_params().any(|param| param.ident == *found);
        has_itself |= found == ident || found == "Self";
    })
    .visit_type(ty);
    has_param && !has_itself
}
