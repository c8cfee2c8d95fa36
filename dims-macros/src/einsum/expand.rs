//! What an einsum becomes.

use super::valid::Valid;
use super::{Call, What};
use crate::pattern::plan::{Plan, argument, finish, given, home, nested, out_rank};
use proc_macro2::{Literal, TokenStream};
use quote::quote;

/// One call, with the pattern as a constant.
pub fn expand(call: &Call, valid: &Valid, what: What) -> TokenStream {
    let home = home();
    let plan = Plan {
        text: call.words.shown(),
        table: &valid.table,
        inputs: valid.inputs.iter().map(|input| &input.slots[..]).collect(),
        output: &valid.output.slots,
        pieces: Vec::new(),
        roles: roles(valid),
    };
    let arguments: Vec<_> =
        call.operands.iter().zip(&valid.inputs).map(|(operand, array)| argument(operand, array)).collect();
    let arguments = nested(&arguments);
    let (given, out) = (given(&valid.table, &valid.given), out_rank(&valid.output));
    match what {
        What::Value { fallible } => {
            finish(quote!(#home::einsum::<#out, _, _>(#plan, #arguments, #given)), fallible)
        }
        What::Path => finish(quote!(#home::einsum_path(#plan, #arguments, #given)), false),
    }
}

/// What rustc finds out as it evaluates the constant: which axes of a product of two operands are rows, columns, sum and batch.
fn roles(valid: &Valid) -> TokenStream {
    let Some([a, b, result]) = valid.plain_pair() else { return quote!(None) };
    let list = |axes: Vec<usize>| {
        let axes = axes.into_iter().map(Literal::usize_unsuffixed);
        quote!(&[#(#axes),*])
    };
    let (a, b, result) = (list(a), list(b), list(result));
    quote!(Roles::of_axes(#a, #b, #result))
}
