//! `#[batched]`: a function that is written for one example, and called with any further dims bound.
//!
//! It becomes two: the one that was written, whose tensors have a rest, and a caller, which seals the arguments, calls it, and opens the
//! result. What they have to do with each other is in `typed_dims_core::batch`; here are only names and bounds.

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

/// Expands the attribute.
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

/// The error, and the item as it was, so that nothing that mentions it fails as well.
fn failed(error: &syn::Error, item: &TokenStream) -> TokenStream {
    let error = error.to_compile_error();
    quote::quote!(#error #item)
}

/// The error about an item that cannot be read, and of a function its signature, so that its calls do not fail as well.
pub fn unread(error: &syn::Error, item: TokenStream) -> TokenStream {
    let error = error.to_compile_error();
    let mut item: Vec<TokenTree> = item.into_iter().collect();
    let is_function = item.iter().any(|token| matches!(token, TokenTree::Ident(word) if word == "fn"));
    if !is_function || item.pop().is_none() {
        return error;
    }
    quote::quote!(#error #[allow(unused_variables)] #(#item)* { ::core::unreachable!() })
}
