//! The implementation of `Load`.

use super::ast::{How, LoadField, LoadInput};
use crate::fields::needs_bound;
use proc_macro2::{Ident, Span, TokenStream};
use quote::{format_ident, quote, quote_spanned};
use syn::spanned::Spanned;
use syn::{GenericParam, Lifetime, Type, parse_quote};

/// Writes it: each field is tried, so that all problems are reported, and then all of them are needed.
pub fn expand(input: &LoadInput) -> TokenStream {
    let LoadInput { ident, generics, fields } = input;
    let mut generics_of_impl = generics.clone();
    // A struct that borrows does so from the file.
    let file = generics.lifetimes().next().map_or_else(
        || {
            let file = Lifetime::new("'file", Span::mixed_site());
            generics_of_impl.params.insert(0, GenericParam::Lifetime(syn::LifetimeParam::new(file.clone())));
            file
        },
        |own| own.lifetime.clone(),
    );
    let is_generic = |ty: &Type| needs_bound(ty, ident, generics);
    let bounds = generics_of_impl.make_where_clause();
    for part in fields {
        match &part.how {
            How::Tensor { axes, layout, .. } => {
                let ty = &part.ty;
                for axes in std::iter::once(axes).chain(layout) {
                    if is_generic(axes) {
                        bounds.predicates.push(parse_quote!(#axes: ::typed_dims::file::load::FileAxes));
                    }
                }
                if is_generic(ty) {
                    bounds.predicates.push(match layout {
                        Some(_) => parse_quote!(#ty: ::typed_dims::file::load::LayOut<#file>),
                        None => parse_quote!(#ty: ::typed_dims::file::load::LoadTensor<#file>),
                    });
                }
            }
            How::Nested { .. } => {
                if is_generic(&part.ty) {
                    let ty = &part.ty;
                    bounds.predicates.push(parse_quote!(#ty: ::typed_dims::file::load::Load<#file>));
                }
            }
            How::Default(_) => {}
        }
    }
    let names: Vec<Ident> = (0..fields.len()).map(|at| format_ident!("field{at}")).collect();
    let values = fields.iter().map(|part| value(part, &file));
    let members = fields.iter().map(|part| &part.member);
    let (impl_generics, _, bounds) = generics_of_impl.split_for_impl();
    let (_, own_generics, _) = generics.split_for_impl();
    quote! {
        #[automatically_derived]
        #[diagnostic::do_not_recommend]
        impl #impl_generics ::typed_dims::file::load::Load<#file> for #ident #own_generics #bounds {
            fn load(
                from: &mut ::typed_dims::file::load::Loader<'_, #file>,
            ) -> ::core::option::Option<Self> {
                #(let #names = #values;)*
                ::core::option::Option::Some(#ident { #(#members: #names?),* })
            }
        }
    }
}

fn value(part: &LoadField, file: &Lifetime) -> TokenStream {
    let ty = &part.ty;
    match &part.how {
        How::Tensor { name, axes, layout: None } => {
            quote_spanned!(ty.span()=> from.field(#name, |from| from.tensor::<#ty, #axes>()))
        }
        How::Tensor { name, axes, layout: Some(layout) } => {
            quote_spanned!(ty.span()=> from.field(#name, |from| from.tensor_laid_out::<#ty, #axes, #layout>()))
        }
        How::Nested { name } => {
            quote_spanned!(ty.span()=> from.field(#name, <#ty as ::typed_dims::file::load::Load<#file>>::load))
        }
        How::Default(Some(value)) => quote!(::core::option::Option::Some(#value)),
        How::Default(None) => {
            quote_spanned!(ty.span()=> ::core::option::Option::Some(<#ty as ::core::default::Default>::default()))
        }
    }
}
