//! Writes the impl of `DerivedLoad`, which implies `Load`.

use super::ast::{How, LoadField, LoadInput};
use crate::fields::{bounds, is_generic};
use crate::pattern::plan::own;
use proc_macro2::{Ident, Span, TokenStream};
use quote::{quote, quote_spanned};
use syn::spanned::Spanned;
use syn::{GenericParam, Lifetime, WherePredicate, parse_quote};

/// The impl loads every field before it fails, so that all problems are reported together.
pub fn expand(input: &LoadInput) -> TokenStream {
    let LoadInput { ident, generics, fields } = input;
    let mut generics_of_impl = generics.clone();
    // A struct with a lifetime borrows from the file.
    let file = generics.lifetimes().next().map_or_else(
        || {
            let file = Lifetime::new("'file", Span::mixed_site());
            generics_of_impl.params.insert(0, GenericParam::Lifetime(syn::LifetimeParam::new(file.clone())));
            file
        },
        |own| own.lifetime.clone(),
    );
    let mut predicates: Vec<WherePredicate> = Vec::new();
    for LoadField { ty, how, .. } in fields {
        let of = match how {
            How::Tensor { axes, layout, .. } => {
                let lists =
                    std::iter::once(axes).chain(layout).filter(|axes| is_generic(axes, ident, generics));
                predicates.extend(
                    lists.map(|axes| parse_quote!(#axes: ::typed_dims::__private::file::load::FileAxes)),
                );
                match layout {
                    Some(_) => quote!(::typed_dims::__private::file::load::LayOut<#file>),
                    None => quote!(::typed_dims::__private::file::load::LoadTensor<#file>),
                }
            }
            How::Nested { .. } => quote!(::typed_dims::__private::file::load::Load<#file>),
            How::Default(_) => continue,
        };
        let of_element = quote!(::typed_dims::__private::file::Stored);
        predicates.extend(bounds(ty, &of, &of_element, ident, generics));
    }
    generics_of_impl.make_where_clause().predicates.extend(predicates);
    let from = own("from");
    let names: Vec<Ident> = (0..fields.len()).map(|at| own(&format!("field{at}"))).collect();
    let values = fields.iter().map(|part| value(part, &file));
    let members = fields.iter().map(|part| &part.member);
    let (impl_generics, _, clause) = generics_of_impl.split_for_impl();
    let (_, own_generics, _) = generics.split_for_impl();
    quote! {
        #[automatically_derived]
        impl #impl_generics ::typed_dims::__private::file::load::DerivedLoad<#file> for #ident #own_generics #clause {
            // A path instead of a closure would make rustc's messages longer.
            #[allow(clippy::redundant_closure_for_method_calls)]
            fn load(
                #from: &mut ::typed_dims::__private::file::load::Loader<'_, #file>,
            ) -> ::core::option::Option<Self> {
                #(let #names = #values;)*
                ::core::option::Option::Some(#ident { #(#members: #names?),* })
            }
        }
    }
}

fn value(part: &LoadField, file: &Lifetime) -> TokenStream {
    let ty = &part.ty;
    // The code for a field has the span of the field's type, because rustc then reports an error
    // only once. The type may come from another macro, whose code cannot name `from`, so the loader
    // gets a second name with this span.
    let outer = own("from");
    let field =
        |call: TokenStream| quote_spanned!(ty.span()=> { let __from = &mut *#outer; __from.field(#call) });
    match &part.how {
        How::Tensor { name, axes, layout: None } => {
            field(quote_spanned!(ty.span()=> #name, |__from| __from.tensor::<#ty, #axes>()))
        }
        How::Tensor { name, axes, layout: Some(layout) } => {
            field(quote_spanned!(ty.span()=> #name, |__from| __from.tensor_laid_out::<#ty, #axes, #layout>()))
        }
        How::Nested { name } => field(
            quote_spanned!(ty.span()=> #name, <#ty as ::typed_dims::__private::file::load::Load<#file>>::load),
        ),
        How::Default(Some(value)) => {
            let default = own("default");
            quote!({
                let #default: #ty = #value;
                ::core::option::Option::Some(#default)
            })
        }
        How::Default(None) => {
            quote_spanned!(ty.span()=> ::core::option::Option::Some(<#ty as ::core::default::Default>::default()))
        }
    }
}
