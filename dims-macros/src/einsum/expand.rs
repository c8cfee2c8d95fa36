//! What an einsum becomes.

use super::valid::{Roles, Valid};
use super::{Call, What};
use crate::pattern::plan::{Plan, argument, finish, given, home, nested, out_rank};
use proc_macro2::{Literal, TokenStream};
use quote::{format_ident, quote};

/// One call, with the pattern as a constant.
pub fn expand(call: &Call, valid: &Valid, what: What) -> TokenStream {
    let home = home();
    let plan = Plan {
        text: call.words.shown(),
        table: &valid.table,
        inputs: valid.inputs.iter().map(|input| &input.slots[..]).collect(),
        output: &valid.output.slots,
        pieces: Vec::new(),
        roles: valid.roles().map_or_else(|| quote!(None), |roles| written(&roles)),
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

fn written(roles: &Roles) -> TokenStream {
    let Roles { m, n, k: (k_a, k_b), batch, result } = roles;
    let number = |at: &usize| Literal::usize_unsuffixed(*at);
    let (m, n, k_a, k_b) = (m.iter().map(number), n.iter().map(number), number(k_a), number(k_b));
    let batch = batch.iter().map(|(a, b)| {
        let (a, b) = (number(a), number(b));
        quote!((#a, #b))
    });
    let result = result.iter().map(|role| format_ident!("{role}"));
    quote!(Some(Roles::new(&[#(#m),*], &[#(#n),*], (#k_a, #k_b), &[#(#batch),*], &[#(#result),*])))
}
