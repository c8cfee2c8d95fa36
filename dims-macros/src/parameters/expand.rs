//! Writes the impl of `DerivedParameters`, which implies `Parameters`, and the impls of related
//! traits.

use super::ast::{FieldKind, ParameterField, parts};
use crate::fields::{at, bounds, name};
use proc_macro2::{Ident, TokenStream, TokenTree};
use quote::{ToTokens, quote, quote_spanned};
use syn::{DeriveInput, Generics, Result, parse_quote};

/// The impls visit each learned field, and each state field if the visitor asks for state. `walk`
/// clones all other fields.
pub fn expand(input: &DeriveInput) -> Result<TokenStream> {
    match parts(input) {
        Ok(parts) => Ok(implementation(input, &parts)),
        Err(error) => {
            // With an impl, uses of the struct cause no further errors.
            let error = error.into_compile_error();
            let unreachable = quote!(::core::unreachable!());
            let stub = implemented(input, &input.generics, &quote!(), &unreachable, &unreachable);
            Ok(quote!(#error #stub))
        }
    }
}

fn implementation(input: &DeriveInput, parts: &[ParameterField]) -> TokenStream {
    let mut generics = input.generics.clone();
    let clause = generics.make_where_clause();
    for ParameterField { ty, kind, .. } in parts {
        let clone = || (quote!(::core::clone::Clone), quote!(::core::clone::Clone));
        let learned = || {
            (
                quote!(::typed_dims::__private::grad::Parameters),
                quote!(::typed_dims::__private::types::scalar::Element),
            )
        };
        let traits = match kind {
            FieldKind::Learned => vec![learned()],
            FieldKind::State => vec![learned(), clone()],
            FieldKind::Constant => vec![clone()],
        };
        for (of, of_element) in traits {
            clause.predicates.extend(bounds(ty, &of, &of_element, &input.ident, &input.generics));
        }
    }
    let ident = &input.ident;
    let members = parts.iter().map(|part| &part.member);
    let values = parts.iter().map(value);
    let walk = quote!(::core::result::Result::Ok(#ident { #(#members: #values),* }));
    let visits = parts.iter().filter(|part| part.kind != FieldKind::Constant).map(visited);
    let visit = quote!(#(#visits)* ::core::result::Result::Ok(()));
    // `TENSORS` would be cyclic if it depended on the struct itself.
    let tensors = parts.iter().filter(|part| part.kind != FieldKind::Constant);
    let tensors = tensors.filter(|part| !names(part.ty.to_token_stream(), ident)).map(|part| &part.ty);
    let tensors: Vec<TokenStream> = tensors
        .map(
            |ty| quote_spanned!(at(ty)=> <#ty as ::typed_dims::__private::grad::parameters::ParameterField>::TENSORS),
        )
        .collect();
    implemented(input, &generics, &quote!(#(#tensors),*), &walk, &visit)
}

/// The impls of `DerivedParameters` and of the traits of `grad::lent` and `program`. The generic
/// parameters of the methods have long names, so that they do not clash with those of the struct.
fn implemented(
    input: &DeriveInput,
    generics: &Generics,
    tensors: &TokenStream,
    walk: &TokenStream,
    visit: &TokenStream,
) -> TokenStream {
    let ident = &input.ident;
    let (impl_generics, own_generics, bounds) = generics.split_for_impl();
    let mut lent = generics.clone();
    lent.params.insert(0, parse_quote!('parameters_lent));
    let lent = lent.split_for_impl().0;
    quote! {
        #[automatically_derived]
        impl #impl_generics ::typed_dims::__private::grad::lent::Referring for #ident #own_generics #bounds {
            type Value = Self;
        }

        #[automatically_derived]
        impl #lent ::typed_dims::__private::grad::lent::Lend<'parameters_lent> for #ident #own_generics #bounds {
            type Lent = &'parameters_lent Self;

            fn lend(value: &'parameters_lent Self) -> &'parameters_lent Self {
                value
            }
        }

        #[automatically_derived]
        impl #impl_generics ::typed_dims::__private::program::RecordInputs for #ident #own_generics #bounds {
            type Value = Self;
            type Slots = ::core::option::Option<Self>;

            fn walk<ParametersWalk: ::typed_dims::__private::grad::parameters::Walk<1>>(
                &self,
                path: &mut ::typed_dims::__private::grad::parameters::Path,
                walk: &mut ParametersWalk,
            ) -> ::core::result::Result<Self, ParametersWalk::Error> {
                ::typed_dims::__private::grad::Parameters::walk([self], path, walk)
            }

            fn slots(value: Self) -> ::core::option::Option<Self> {
                ::core::option::Option::Some(value)
            }

            type Parts<ParametersFamily: ::typed_dims::__private::program::PartFamily> = ParametersFamily::Of<Self>;

            fn parts<ParametersFamily: ::typed_dims::__private::program::PartFamily>(
                value: Self,
                family: &mut ParametersFamily,
            ) -> ParametersFamily::Of<Self> {
                family.part(value)
            }
        }

        #[automatically_derived]
        impl #lent ::typed_dims::__private::program::Hand<'parameters_lent> for #ident #own_generics #bounds {
            type Handed = Self;

            fn hand(slots: &'parameters_lent mut ::core::option::Option<Self>) -> Self {
                ::typed_dims::__private::program::taken(slots)
            }
        }

        #[automatically_derived]
        impl #impl_generics ::typed_dims::__private::grad::parameters::DerivedParameters for #ident #own_generics #bounds {
            const TENSORS: ::typed_dims::__private::grad::parameters::TensorSets =
                ::typed_dims::__private::grad::parameters::TensorSets {
                    keys: ::typed_dims::__private::grad::parameters::TensorSets::UNKNOWN.keys,
                    parts: &[#tensors],
                };

            #[allow(unused_variables)] // A struct without parameters may not use them.
            fn walk<const PARAMETERS_OF: usize, ParametersWalk: ::typed_dims::__private::grad::parameters::Walk<PARAMETERS_OF>>(
                of: [&Self; PARAMETERS_OF],
                path: &mut ::typed_dims::__private::grad::parameters::Path,
                walk: &mut ParametersWalk,
            ) -> ::core::result::Result<Self, ParametersWalk::Error> {
                #walk
            }

            #[allow(unused_mut, unused_variables)] // A struct without parameters may not use them.
            fn visit<
                const PARAMETERS_CHANGED: usize,
                const PARAMETERS_READ: usize,
                ParametersVisit: ::typed_dims::__private::grad::parameters::Visitor<PARAMETERS_CHANGED, PARAMETERS_READ>,
            >(
                mut changed: [&mut Self; PARAMETERS_CHANGED],
                read: [&Self; PARAMETERS_READ],
                path: &mut ::typed_dims::__private::grad::parameters::Path,
                visit: &mut ParametersVisit,
            ) -> ::core::result::Result<(), ParametersVisit::Error> {
                #visit
            }
        }
    }
}

fn value(ParameterField { member, ty, kind }: &ParameterField) -> TokenStream {
    let name = name(member);
    let clone = quote_spanned!(at(ty)=> <#ty as ::core::clone::Clone>::clone(&of[0].#member));
    let walked = quote_spanned! {at(ty)=>
        <#ty as ::typed_dims::__private::grad::parameters::ParameterField>::walk_field(
            ::typed_dims::__private::grad::parameters::each_part(of, |of| &of.#member), #name, path, walk,
        )?
    };
    match kind {
        FieldKind::Learned => walked,
        FieldKind::State => quote_spanned! {at(ty)=>
            if <ParametersWalk as ::typed_dims::__private::grad::parameters::Walk<PARAMETERS_OF>>::STATE { #walked } else { #clone }
        },
        FieldKind::Constant if borrows(ty.to_token_stream()) => clone,
        // Both of the imported traits have a method `tell`. rustc picks the first whose bounds
        // hold, so recorded functions compare constants that are numbers or other plain values, and
        // ignore all others.
        FieldKind::Constant => quote_spanned! {at(ty)=> {
            #[allow(unused_imports)] // Only one of them is used.
            use ::typed_dims::__private::grad::parameters::{ComparedSetting as _, OtherSetting as _};
            (&::typed_dims::__private::grad::parameters::Setting(::typed_dims::__private::grad::parameters::each_part(of, |of| &of.#member))).tell(#name, path, walk)?;
            #clone
        }},
    }
}

/// Whether a type names the struct.
fn names(ty: TokenStream, ident: &Ident) -> bool {
    ty.into_iter().any(|token| match token {
        TokenTree::Ident(own) => own == *ident || own == "Self",
        TokenTree::Group(group) => names(group.stream(), ident),
        _ => false,
    })
}

/// Whether a type names a lifetime, or contains a reference.
fn borrows(ty: TokenStream) -> bool {
    ty.into_iter().any(|token| match token {
        TokenTree::Punct(punct) => matches!(punct.as_char(), '&' | '\''),
        TokenTree::Group(group) => borrows(group.stream()),
        _ => false,
    })
}

fn visited(ParameterField { member, ty, kind }: &ParameterField) -> TokenStream {
    let name = name(member);
    let visit = quote_spanned! {at(ty)=>
        <#ty as ::typed_dims::__private::grad::parameters::ParameterField>::visit_field(
            ::typed_dims::__private::grad::parameters::each_part_mut(&mut changed, |of| &mut of.#member),
            ::typed_dims::__private::grad::parameters::each_part(read, |of| &of.#member),
            #name, path, visit,
        )?;
    };
    match kind {
        FieldKind::State => quote_spanned! {at(ty)=>
            if <ParametersVisit as ::typed_dims::__private::grad::parameters::Visitor<PARAMETERS_CHANGED, PARAMETERS_READ>>::STATE { #visit }
        },
        _ => visit,
    }
}
