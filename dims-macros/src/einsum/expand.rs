//! The expansion of an einsum.

use super::valid::ValidEinsum;
use super::{EinsumCall, What};
use crate::pattern::plan::{Plan, argument, finish, given, home, nested, out_rank};
use proc_macro2::{Span, TokenStream};
use quote::{quote, quote_spanned};
use syn::spanned::Spanned;

/// Expands a call. The pattern becomes a constant.
pub fn expand(call: &EinsumCall, valid: &ValidEinsum, what: What) -> TokenStream {
    let home = home();
    let plan = Plan {
        text: call.words.shown(),
        table: &valid.table,
        inputs: valid.inputs.iter().map(|input| &input.slots[..]).collect(),
        output: &valid.output.slots,
        pieces: Vec::new(),
    };
    let arguments: Vec<_> =
        call.operands.iter().zip(&valid.inputs).map(|(operand, array)| argument(operand, array)).collect();
    let arguments = nested(&arguments);
    let (given, out) = (given(&valid.table, &valid.given), out_rank(&valid.output));
    match what {
        What::Value { fallible } => {
            // Makes rustc report wrong element types at the first operand.
            let place = call.operands.first().map_or_else(Span::call_site, Spanned::span);
            let place = Span::mixed_site().located_at(place);
            let einsum = quote_spanned!(place=> ::typed_dims::__private::pattern::einsum::<#out, _, _>);
            finish(quote!(#einsum(#plan, #arguments, #given)), fallible)
        }
        What::Path => finish(quote!(#home::einsum_path(#plan, #arguments, #given)), false),
    }
}
