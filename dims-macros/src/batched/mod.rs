//! `#[batched]`: a function that is written for one example, and can be called with tensors that
//! have extra dims.
//!
//! The expansion has two functions: the function as written, with a `Rest` of unknown dims in its
//! tensors, and a caller. The caller seals the arguments (puts their extra dims into a `Rest`),
//! calls the function as written, and unseals the results. `typed_dims_core::batch` has the traits
//! that connect the two functions.

mod ast;
mod changes;
mod choices;
mod expand;
mod names;
mod tensor;
mod valid;

use crate::pattern::errors::Errors;
use ast::BatchedInput;
use proc_macro2::{TokenStream, TokenTree};

pub fn expand(attribute: TokenStream, item: TokenStream) -> TokenStream {
    if let Some(token) = attribute.into_iter().next() {
        return failed(&syn::Error::new(token.span(), "`#[batched]` takes no arguments"), &item);
    }
    let input = match syn::parse2::<BatchedInput>(item.clone()) {
        Ok(input) => input,
        Err(error) => return failed(&error, &item),
    };
    let mut errors = Errors::default();
    let tokens = match input {
        BatchedInput::Function(function) => match valid::check(*function, &mut errors) {
            Some(function) => expand::function(&function),
            None => TokenStream::new(),
        },
        BatchedInput::Block(block) => block.expand(|function| {
            let function = valid::check(function, &mut errors)?;
            Some(expand::function(&function))
        }),
    };
    if errors.is_empty() { tokens } else { errors.items() }
}

/// The error, and the unchanged item, so that code that uses the item compiles.
fn failed(error: &syn::Error, item: &TokenStream) -> TokenStream {
    let error = error.to_compile_error();
    quote::quote!(#error #item)
}

/// The error about an item that cannot be parsed. A function keeps its signature, so that calls of
/// it compile.
pub fn unread(error: &syn::Error, item: TokenStream) -> TokenStream {
    let error = error.to_compile_error();
    let mut item: Vec<TokenTree> = item.into_iter().collect();
    let is_function = item.iter().any(|token| matches!(token, TokenTree::Ident(word) if word == "fn"));
    if !is_function || item.pop().is_none() {
        return error;
    }
    quote::quote!(#error #[allow(unused_variables)] #(#item)* { ::core::unreachable!() })
}
