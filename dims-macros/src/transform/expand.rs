//! The expansion of a rearrangement, a reduction or a repetition.

use super::TransformKind;
use super::pieces::Part;
use super::valid::ValidTransform;
use crate::pattern::axes::Numbered;
use crate::pattern::call::Call;
use crate::pattern::operand::reference;
use crate::pattern::plan::{self, Plan, Where, bound_argument, finish, home, nested, out_rank, own};
use proc_macro2::{Ident, Span, TokenStream};
use quote::{quote, quote_spanned};
use syn::Expr;
use syn::spanned::Spanned;

/// Expands to one call for each result. The pattern becomes a constant.
pub fn expand(call: &Call, valid: &ValidTransform, kind: TransformKind, fallible: bool) -> TokenStream {
    if let [output] = &valid.outputs[..] {
        let references: Vec<_> = call.operands.iter().map(reference).collect();
        let call = result(call, valid, kind, &references, &valid.given, output, &valid.pieces[0]);
        return finish(call, fallible);
    }
    // Evaluates the operands and the sizes once for all results.
    let names: Vec<_> = (0..call.operands.len()).map(|at| own(&format!("operand{at}"))).collect();
    let references = call.operands.iter().map(reference);
    let bound: Vec<_> = names.iter().map(|name| quote!(#name)).collect();
    let values = valid.given.iter().map(|(_, value)| value);
    let sizes: Vec<_> = values.clone().enumerate().map(|(at, value)| size(at, value)).collect();
    let axes = valid.given.iter().map(|(axis, _)| *axis);
    let given: Vec<_> = axes.zip(sizes.iter().map(|name| Expr::Verbatim(quote!(#name)))).collect();
    let results: Vec<_> = valid
        .outputs
        .iter()
        .zip(&valid.pieces)
        .map(|(output, pieces)| result(call, valid, kind, &bound, &given, output, pieces))
        .collect();
    let named: Vec<_> = (0..results.len()).map(|at| own(&format!("result{at}"))).collect();
    let tuple = quote!(::core::result::Result::Ok((#(#named),*)));
    let chain = results.iter().zip(&named).rev().fold(tuple, |rest, (result, value)| {
        let error = own("error");
        quote! {
            match #result {
                ::core::result::Result::Ok(#value) => #rest,
                ::core::result::Result::Err(#error) => ::core::result::Result::Err(#error),
            }
        }
    });
    let call = quote! {
        match ((#(#references,)*), (#(#values,)*)) { ((#(#names,)*), (#(#sizes,)*)) => #chain }
    };
    finish(call, fallible)
}

/// The variable for a size. It has the span of the value, so that rustc reports there if the value
/// is not a size.
fn size(at: usize, value: &Expr) -> Ident {
    let mut name = own(&format!("given{at}"));
    name.set_span(Span::mixed_site().located_at(value.span()));
    name
}

fn result(
    call: &Call,
    valid: &ValidTransform,
    kind: TransformKind,
    references: &[TokenStream],
    given: &[(usize, Expr)],
    output: &Numbered,
    pieces: &[Part],
) -> TokenStream {
    let home = home();
    let plan = Plan {
        text: call.words.shown(),
        table: &valid.table,
        inputs: valid.inputs.iter().map(|input| &input.slots[..]).collect(),
        output: &output.slots,
        pieces: pieces
            .iter()
            .map(|part| plan::Piece { input: part.input, from: part.from.clone(), to: part.to.clone() })
            .collect(),
    };
    let place = if kind == TransformKind::View { Where::InMemory } else { Where::Anywhere };
    let arguments: Vec<_> = references
        .iter()
        .zip(&call.operands)
        .zip(&valid.inputs)
        .map(|((reference, operand), array)| bound_argument(reference, operand.span(), array, place))
        .collect();
    let arguments = nested(&arguments);
    let (given, out) = (plan::given(&valid.table, given), out_rank(output));
    match kind {
        TransformKind::Reduce if valid.op.is_none() => {
            let closure = call.op.as_ref().and_then(|op| op.closure.as_ref());
            let place = call.op.as_ref().map_or_else(Span::call_site, |op| op.span);
            let place = Span::mixed_site().located_at(place);
            let reduce =
                quote_spanned!(place=> ::typed_dims::__private::pattern::reduce_by::<#out, _, _, _, _, _>);
            quote!(#reduce(#plan, #arguments, #given, #closure))
        }
        TransformKind::Reduce => {
            let op = valid.op.expect("a call without errors has a reduction");
            // The user's span: if an element type does not have this reduction, rustc reports it
            // there.
            let place = call.op.as_ref().map_or_else(Span::call_site, |op| op.span);
            let op = Ident::new(op, Span::mixed_site().located_at(place));
            let reduce =
                quote_spanned!(op.span()=> ::typed_dims::__private::pattern::reduce::<#out, _, _, _, _>);
            let op = quote_spanned!(op.span()=> ::typed_dims::__private::pattern::reductions::#op);
            quote!(#reduce(#plan, #op, #arguments, #given))
        }
        TransformKind::View => quote!(#home::rearrange_view::<#out, _, _>(#plan, #arguments, #given)),
        TransformKind::Rearrange | TransformKind::Repeat => {
            quote!(#home::rearrange::<#out, _, _>(#plan, #arguments, #given))
        }
    }
}
