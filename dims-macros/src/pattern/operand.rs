//! Code that refers to operands.

use proc_macro2::{Span, TokenStream};
use quote::{quote, quote_spanned};
use syn::Expr;
use syn::spanned::Spanned;

/// A reference to an operand. For a bracketed list, unless it consists only of literals, a list of
/// references to its elements, which may have different types. An empty list is an error.
pub fn reference(operand: &Expr) -> TokenStream {
    let Expr::Array(list) = operand else { return plain_reference(operand) };
    let span = Span::mixed_site().located_at(list.span());
    if !list.elems.is_empty() && list.elems.iter().all(is_number) {
        return plain_reference(operand);
    }
    let parts = list.elems.iter().map(|part| {
        let span = Span::mixed_site().located_at(part.span());
        (span, reference(part))
    });
    let chain = parts.fold(None, |list, (span, part)| {
        Some(match list {
            None => quote_spanned!(span=> ::typed_dims::__private::pattern::list(#part)),
            Some(list) => quote_spanned!(span=> #list.and(#part)),
        })
    });
    match chain {
        Some(chain) => quote_spanned!(span=> &#chain),
        None => {
            let span = list.span();
            quote_spanned!(span=> ::core::compile_error!("an empty list of arrays has no sizes"))
        }
    }
}

/// Whether an expression is a literal, or a nested list of literals.
fn is_number(expr: &Expr) -> bool {
    match expr {
        Expr::Lit(_) => true,
        Expr::Paren(inner) => is_number(&inner.expr),
        Expr::Unary(minus) => is_number(&minus.expr),
        Expr::Array(list) => list.elems.iter().all(is_number),
        _ => false,
    }
}

/// A reference to an operand, list or not.
pub fn plain_reference(operand: &Expr) -> TokenStream {
    let span = Span::mixed_site().located_at(operand.span());
    match operand {
        Expr::Path(_)
        | Expr::Field(_)
        | Expr::Call(_)
        | Expr::MethodCall(_)
        | Expr::Index(_)
        | Expr::Lit(_)
        | Expr::Paren(_)
        | Expr::Macro(_)
        | Expr::Reference(_) => quote_spanned!(span=> & #operand),
        _ => quote_spanned!(span=> &(#operand)),
    }
}

/// Code that borrows the operands without using them, for calls with errors. Lists are borrowed
/// element by element, so that their elements may have different types.
pub fn looked_at<'e>(operands: impl Iterator<Item = &'e Expr>) -> TokenStream {
    operands
        .map(|operand| match operand {
            Expr::Array(list) => looked_at(list.elems.iter()),
            operand => {
                let reference = plain_reference(operand);
                quote!(let _ = #reference;)
            }
        })
        .collect()
}
