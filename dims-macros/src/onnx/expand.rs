//! The expansion of `onnx_dims!`: dims as from `dims!`, and two structs.

use super::Model;
use super::ast::OnnxCall;
use super::resolve::{Alias, Check, Field, NewDim, Signature};
use super::roles::role;
use crate::dims::ast::{Declared, DimsInput};
use proc_macro2::{Ident, Span, TokenStream};
use quote::{ToTokens, format_ident, quote, quote_spanned};
use syn::spanned::Spanned;
use syn::{LitInt, Token, parse_quote};
use typed_dims_onnx::OnnxElem;

pub fn expand(call: &OnnxCall, model: &Model, signature: &Signature) -> TokenStream {
    let dims =
        crate::dims::expand::expand(&DimsInput::Declared(signature.dims.iter().map(declared).collect()));
    let checks = signature.checks.iter().map(check);
    let written = call.path.value();
    let inputs = tensors(
        "Inputs",
        &format!("The inputs of the model `{written}`."),
        &signature.inputs,
        &signature.aliases,
        call,
    );
    let outputs = tensors(
        "Outputs",
        &format!("The outputs of the model `{written}`."),
        &signature.outputs,
        &signature.aliases,
        call,
    );
    let file = &model.file;
    quote! {
        // Makes cargo and rustc rebuild when the file changes.
        const _: &[::core::primitive::u8] = ::core::include_bytes!(#file);
        #dims
        #(#checks)*
        #inputs
        #outputs
    }
}

fn declared(dim: &NewDim) -> Declared {
    let span = dim.name.span();
    let what = capitalized(&dim.place);
    let doc = match (&dim.denotation, role(dim.denotation.as_deref())) {
        (Some(other), None) => format!("{what}, which the model calls `{}`.", other.escape_debug()),
        _ => format!("{what}."),
    };
    Declared {
        attrs: vec![parse_quote!(#[doc = #doc])],
        vis: syn::Visibility::Public(Token![pub](span)),
        token: Token![struct](span),
        name: dim.name.clone(),
        role: role(dim.denotation.as_deref())
            .map(|role| parse_quote!(::typed_dims::__private::types::role::#role)),
        size: dim.size.map(|size| {
            let size = LitInt::new(&size.to_string(), span);
            parse_quote!(#size)
        }),
        end: Token![;](span),
    }
}

/// Checks that an existing dim has the static size that the model or the call gives the axis, and
/// that its role, if it has one, is the one that the model gives the axis, or refines that one.
fn check(check: &Check) -> TokenStream {
    let Check { dim, size, denotation, place } = check;
    let name = dim.to_token_stream().to_string().replace(' ', "");
    let mut all = TokenStream::new();
    if let Some(size) = size {
        let what = format!("`{name}` does not have the static size {size} of {place}");
        all.extend(quote_spanned! {dim.span()=>
            const _: () = ::core::assert!(::typed_dims::__private::onnx::has_size::<#dim>(#size), #what);
        });
    }
    if let Some(denotation) = denotation.as_deref().filter(|&denotation| role(Some(denotation)).is_some()) {
        let what =
            format!("the role of `{name}` is not {denotation}, the denotation of {place} in the model");
        all.extend(quote_spanned! {dim.span()=>
            const _: () = ::core::assert!(::typed_dims::__private::onnx::has_role::<#dim>(#denotation), #what);
        });
    }
    all
}

/// The struct of inputs or outputs.
fn tensors(name: &str, doc: &str, fields: &[Field], aliases: &[Alias], call: &OnnxCall) -> TokenStream {
    let name = Ident::new(name, call.path.span());
    let names: Vec<String> = fields.iter().map(|field| field.tensor.name.clone()).collect();
    let count = names.len();
    let idents: Vec<&Ident> = fields.iter().map(|field| &field.name).collect();
    let docs = fields.iter().map(|field| format!("`{}`", field.tensor.to_string().replace('`', "'")));
    let types: Vec<TokenStream> = fields.iter().map(tensor_type).collect();
    let arrays: Vec<TokenStream> = fields.iter().map(array_type).collect();
    let values: Vec<Ident> =
        (0..count).map(|at| format_ident!("field{at}", span = Span::mixed_site())).collect();
    let to_arrays = fields.iter().zip(&values).map(|(field, value)| {
        let dims = &field.dims;
        quote!(::typed_dims::__private::execute::order::OrderExt::try_order(#value, (#(#dims,)*))?)
    });
    let from_arrays = fields.iter().zip(&values).map(|(field, value)| {
        let dims = &field.dims;
        if dims.is_empty() {
            quote!(::typed_dims::__private::creation::create::try_full((), #value)?)
        } else {
            quote!(::typed_dims::__private::creation::convert::IntoTensor::try_into_tensor(#value, (#(#dims,)*))?)
        }
    });
    let aliases = aliases.iter().map(|Alias { first, second, param }| quote!((#first, #second, #param)));
    let error = quote!(::typed_dims::__private::error::DimError);
    quote! {
        #[doc = #doc]
        #[allow(non_snake_case)]
        #[derive(::core::clone::Clone, ::core::fmt::Debug)]
        pub struct #name {
            #(#[doc = #docs] pub #idents: #types,)*
        }

        #[automatically_derived]
        #[allow(clippy::type_complexity, clippy::double_parens, clippy::unused_unit)]
        impl #name {
            /// The names of the tensors in the model, in its order.
            pub const NAMES: [&'static ::core::primitive::str; #count] = [#(#names),*];

            /// The tensors as arrays, with axes in the model's order. Copies only if the elements
            /// are not stored in that order, or share their memory with another tensor.
            ///
            /// # Panics
            ///
            /// If `try_into_arrays` returns an error.
            #[track_caller]
            pub fn into_arrays(self) -> (#(#arrays,)*) {
                ::typed_dims::__private::error::unwrap(self.try_into_arrays())
            }

            /// Like `into_arrays`, but returns an error instead of panicking.
            ///
            /// # Errors
            ///
            /// If axes that have the same dim, or the same name in the model, differ in size, or if
            /// `try_order` returns an error for a tensor.
            pub fn try_into_arrays(self) -> ::core::result::Result<(#(#arrays,)*), #error> {
                self.unify_sizes()?;
                let Self { #(#idents: #values,)* } = self;
                ::core::result::Result::Ok((#(#to_arrays,)*))
            }

            /// Makes tensors from arrays with axes in the model's order. Nothing is copied.
            ///
            /// # Panics
            ///
            /// If `try_from_arrays` returns an error.
            #[track_caller]
            pub fn from_arrays(arrays: (#(#arrays,)*)) -> Self {
                ::typed_dims::__private::error::unwrap(Self::try_from_arrays(arrays))
            }

            /// Like `from_arrays`, but returns an error instead of panicking.
            ///
            /// # Errors
            ///
            /// If an array does not have an axis for each dim, if an axis does not have the static
            /// size of its dim, or if axes that have the same dim, or the same name in the model,
            /// differ in size.
            pub fn try_from_arrays((#(#values,)*): (#(#arrays,)*)) -> ::core::result::Result<Self, #error> {
                let tensors = Self { #(#idents: #from_arrays,)* };
                tensors.unify_sizes()?;
                ::core::result::Result::Ok(tensors)
            }

            fn unify_sizes(&self) -> ::core::result::Result<(), #error> {
                ::typed_dims::__private::onnx::unify_sizes(&[#((#names, self.#idents.dims())),*], &[#(#aliases),*])
            }
        }
    }
}

fn tensor_type(field: &Field) -> TokenStream {
    let (elem, dims) = (elem(field), &field.dims);
    quote!(::typed_dims::__private::tensors::named::Tensor<#elem, (#(#dims,)*)>)
}

/// The type that `order` returns for all dims of a tensor.
fn array_type(field: &Field) -> TokenStream {
    let elem = elem(field);
    match field.dims.len() {
        0 => elem,
        rank @ 1..=6 => {
            let rank = format_ident!("Ix{rank}");
            quote!(::typed_dims::__private::ndarray::Array<#elem, ::typed_dims::__private::ndarray::#rank>)
        }
        _ => quote!(::typed_dims::__private::ndarray::ArrayD<#elem>),
    }
}

fn elem(field: &Field) -> TokenStream {
    match field.tensor.elem {
        OnnxElem::F16 => quote!(::typed_dims::__private::onnx::f16),
        OnnxElem::BF16 => quote!(::typed_dims::__private::onnx::bf16),
        OnnxElem::C32 => quote!(::typed_dims::__private::onnx::Complex<::core::primitive::f32>),
        OnnxElem::C64 => quote!(::typed_dims::__private::onnx::Complex<::core::primitive::f64>),
        other => {
            let name = Ident::new(other.name(), Span::call_site());
            quote!(::core::primitive::#name)
        }
    }
}

fn capitalized(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}
