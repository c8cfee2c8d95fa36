//! The macros of `typed-dims`. Use that crate, which re-exports them.

mod batched;
mod comprehension;
mod depth;
mod dims;
mod einsum;
mod fields;
mod gather;
mod groups;
mod key;
mod library;
mod load;
#[cfg(feature = "onnx")]
mod onnx;
mod packing;
mod parameters;
mod pattern;
mod roles;
mod shape;
mod transform;

use groups::{Ungroup, visible};
use library::found;
use proc_macro::TokenStream;
use proc_macro2::TokenStream as Tokens;
use syn::DeriveInput;
use syn::visit_mut::VisitMut;
use transform::TransformKind;

/// The expansion of a macro, or a compile error. Input that is nested too deeply for syn is not
/// parsed.
fn read(input: Tokens, expand: impl FnOnce(Tokens) -> syn::Result<Tokens>) -> TokenStream {
    let expansion = depth::check(input.clone()).and_then(|()| expand(input));
    expansion.map_or_else(syn::Error::into_compile_error, found).into()
}

/// Like `read`, for macros that put their errors into the expansion. Expressions that come from
/// `macro_rules!` macros are kept in one piece.
fn call(input: TokenStream, expand: impl FnOnce(Tokens) -> Tokens) -> TokenStream {
    read(input.into(), |input| Ok(expand(visible(input))))
}

/// Like `read`, for derives. The invisible groups around types that come from `macro_rules!` macros
/// are removed.
fn derive(input: TokenStream, expand: impl FnOnce(DeriveInput) -> syn::Result<Tokens>) -> TokenStream {
    read(input.into(), |input| {
        let mut input = syn::parse2(input)?;
        Ungroup.visit_derive_input_mut(&mut input);
        expand(input)
    })
}

#[doc = include_str!("../docs/dims.md")]
#[proc_macro]
pub fn dims(input: TokenStream) -> TokenStream {
    read(input.into(), |input| Ok(dims::expand::expand(&syn::parse2(input)?)))
}

#[doc = include_str!("../docs/roles.md")]
#[proc_macro]
pub fn roles(input: TokenStream) -> TokenStream {
    read(input.into(), |input| Ok(roles::expand(&syn::parse2(input)?)))
}

#[doc = include_str!("../docs/batched.md")]
#[proc_macro_attribute]
pub fn batched(attribute: TokenStream, item: TokenStream) -> TokenStream {
    let (attribute, item) = (attribute.into(), Tokens::from(item));
    match depth::check(item.clone()) {
        Ok(()) => found(batched::expand(attribute, item)).into(),
        Err(error) => batched::unread(&error, item).into(),
    }
}

#[doc = include_str!("../docs/tensor.md")]
#[proc_macro]
pub fn tensor(input: TokenStream) -> TokenStream {
    call(input, |input| comprehension::expand(input, comprehension::LoopNotation::Tensor, false))
}

#[doc = include_str!("../docs/try_tensor.md")]
#[proc_macro]
pub fn try_tensor(input: TokenStream) -> TokenStream {
    call(input, |input| comprehension::expand(input, comprehension::LoopNotation::Tensor, true))
}

#[doc = include_str!("../docs/einsum.md")]
#[proc_macro]
pub fn einsum(input: TokenStream) -> TokenStream {
    call(input, |input| einsum::expand(input, einsum::What::Value { fallible: false }))
}

/// Like [`einsum!`], but returns a `Result<_, DimError>` instead of panicking.
#[proc_macro]
pub fn try_einsum(input: TokenStream) -> TokenStream {
    call(input, |input| einsum::expand(input, einsum::What::Value { fallible: true }))
}

#[doc = include_str!("../docs/einsum_path.md")]
#[proc_macro]
pub fn einsum_path(input: TokenStream) -> TokenStream {
    call(input, |input| einsum::expand(input, einsum::What::Path))
}

#[doc = include_str!("../docs/rearrange.md")]
#[proc_macro]
pub fn rearrange(input: TokenStream) -> TokenStream {
    call(input, |input| transform::expand(input, TransformKind::Rearrange, false))
}

/// Like [`rearrange!`], but returns a `Result<_, DimError>` instead of panicking.
#[proc_macro]
pub fn try_rearrange(input: TokenStream) -> TokenStream {
    call(input, |input| transform::expand(input, TransformKind::Rearrange, true))
}

#[doc = include_str!("../docs/rearrange_view.md")]
#[proc_macro]
pub fn rearrange_view(input: TokenStream) -> TokenStream {
    call(input, |input| transform::expand(input, TransformKind::View, false))
}

/// Like [`rearrange_view!`], but returns a `Result<_, DimError>` instead of panicking.
#[proc_macro]
pub fn try_rearrange_view(input: TokenStream) -> TokenStream {
    call(input, |input| transform::expand(input, TransformKind::View, true))
}

#[doc = include_str!("../docs/reduce.md")]
#[proc_macro]
pub fn reduce(input: TokenStream) -> TokenStream {
    call(input, |input| transform::expand(input, TransformKind::Reduce, false))
}

/// Like [`reduce!`], but returns a `Result<_, DimError>` instead of panicking.
#[proc_macro]
pub fn try_reduce(input: TokenStream) -> TokenStream {
    call(input, |input| transform::expand(input, TransformKind::Reduce, true))
}

#[doc = include_str!("../docs/repeat.md")]
#[proc_macro]
pub fn repeat(input: TokenStream) -> TokenStream {
    call(input, |input| transform::expand(input, TransformKind::Repeat, false))
}

/// Like [`repeat!`], but returns a `Result<_, DimError>` instead of panicking.
#[proc_macro]
pub fn try_repeat(input: TokenStream) -> TokenStream {
    call(input, |input| transform::expand(input, TransformKind::Repeat, true))
}

#[doc = include_str!("../docs/pack.md")]
#[proc_macro]
pub fn pack(input: TokenStream) -> TokenStream {
    call(input, |input| packing::pack(input, false))
}

/// Like [`pack!`], but returns a `Result<_, DimError>` instead of panicking.
#[proc_macro]
pub fn try_pack(input: TokenStream) -> TokenStream {
    call(input, |input| packing::pack(input, true))
}

#[doc = include_str!("../docs/unpack.md")]
#[proc_macro]
pub fn unpack(input: TokenStream) -> TokenStream {
    call(input, |input| packing::unpack(input, false))
}

/// Like [`unpack!`], but returns a `Result<_, DimError>` instead of panicking.
#[proc_macro]
pub fn try_unpack(input: TokenStream) -> TokenStream {
    call(input, |input| packing::unpack(input, true))
}

#[doc = include_str!("../docs/parse_shape.md")]
#[proc_macro]
pub fn parse_shape(input: TokenStream) -> TokenStream {
    call(input, |input| shape::expand(input, false))
}

/// Like [`parse_shape!`], but returns a `Result<_, DimError>` instead of panicking.
#[proc_macro]
pub fn try_parse_shape(input: TokenStream) -> TokenStream {
    call(input, |input| shape::expand(input, true))
}

#[doc = include_str!("../docs/gather.md")]
#[proc_macro]
pub fn gather(input: TokenStream) -> TokenStream {
    call(input, |input| gather::expand(input, false))
}

/// Like [`gather!`], but returns a `Result<_, DimError>` instead of panicking.
#[proc_macro]
pub fn try_gather(input: TokenStream) -> TokenStream {
    call(input, |input| gather::expand(input, true))
}

#[cfg(feature = "onnx")]
#[doc = include_str!("../docs/onnx_dims.md")]
#[proc_macro]
pub fn onnx_dims(input: TokenStream) -> TokenStream {
    call(input, onnx::expand)
}

#[doc = include_str!("../docs/load.md")]
#[proc_macro_derive(Load, attributes(load))]
pub fn load(input: TokenStream) -> TokenStream {
    derive(input, |input| Ok(load::expand(&load::LoadInput::new(input)?)))
}

#[doc = include_str!("../docs/parameters.md")]
#[proc_macro_derive(Parameters, attributes(parameters))]
pub fn parameters(input: TokenStream) -> TokenStream {
    derive(input, |input| parameters::expand(&input))
}
