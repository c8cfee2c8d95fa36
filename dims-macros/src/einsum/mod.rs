//! `einsum!` and `einsum_path!` in the notations of numpy and einops. The indexed notation is a
//! comprehension.

mod expand;
mod valid;

use crate::comprehension;
use crate::pattern::call::{self, Size};
use crate::pattern::errors::Errors;
use crate::pattern::lex;
use crate::pattern::operand::looked_at;
use crate::pattern::words::{Notation, Words};
use proc_macro2::{Span, TokenStream};
use syn::parse::{ParseStream, Parser};
use syn::{Expr, ExprLit, Lit, LitStr, Result, Token};

/// A call in string notation.
struct EinsumCall {
    words: Words,
    operands: Vec<Expr>,
    sizes: Vec<Size>,
    /// The span of the call's pattern.
    span: Span,
}

/// The result of a call.
#[derive(Clone, Copy, PartialEq)]
pub enum What {
    Value { fallible: bool },
    Path,
}

/// `einsum!` or `einsum_path!`, in any notation.
pub fn expand(input: TokenStream, what: What) -> TokenStream {
    match notation(&input) {
        Some(notation) => string(input, notation, what),
        None => indexed(input, what),
    }
}

/// The indexed notation, `einsum!(a[i, k] * b[k, j] => [i, j])`.
fn indexed(input: TokenStream, what: What) -> TokenStream {
    match what {
        What::Value { fallible } => {
            comprehension::expand(input, comprehension::LoopNotation::Einsum, fallible)
        }
        What::Path => {
            let span = input.into_iter().next().map_or_else(Span::call_site, |token| token.span());
            let what =
                "expected a pattern in a string and then its operands: `einsum_path!(\"ik,kj->ij\", a, b)`";
            syn::Error::new(span, what).into_compile_error()
        }
    }
}

/// The string notation of a call: numpy's if the string comes first, einops' if operands precede
/// it. `None` for the indexed notation.
fn notation(input: &TokenStream) -> Option<Notation> {
    let is_string = |input: ParseStream<'_>| -> Result<Option<Notation>> {
        if input.is_empty() || input.peek(LitStr) {
            let _: TokenStream = input.parse()?;
            return Ok(Some(Notation::Letters));
        }
        while !input.is_empty() {
            let operand = input.parse::<Expr>();
            if input.peek(Token![=>]) || operand.is_err() {
                break;
            }
            let last = matches!(operand, Ok(Expr::Lit(ExprLit { lit: Lit::Str(_), .. })));
            if last {
                let _: TokenStream = input.parse()?;
                return Ok(Some(Notation::Names));
            }
            if input.parse::<Token![,]>().is_err() {
                break;
            }
        }
        let _: TokenStream = input.parse()?;
        Ok(None)
    };
    is_string.parse2(input.clone()).ok().flatten()
}

fn string(input: TokenStream, notation: Notation, what: What) -> TokenStream {
    let mut errors = Errors::default();
    let call = match (|input: ParseStream<'_>| parse(input, notation, &mut errors)).parse2(input) {
        Ok(call) => call,
        Err(error) => {
            errors.syn(&error);
            return errors.stub(&TokenStream::new());
        }
    };
    let valid = valid::check(&call, notation, &mut errors);
    if errors.is_empty() {
        expand::expand(&call, &valid, what)
    } else {
        errors.stub(&looked_at(call.operands.iter()))
    }
}

const EXAMPLE: &str = "`einsum!(\"ik,kj->ij\", a, b)`";

fn parse(input: ParseStream<'_>, notation: Notation, errors: &mut Errors) -> Result<EinsumCall> {
    let mut operands = Vec::new();
    if notation == Notation::Names {
        while !input.peek(LitStr) {
            operands.push(input.parse()?);
            input.parse::<Token![,]>()?;
        }
    }
    if input.is_empty() {
        return Err(call::missing(format!("expected a pattern and its operands: {EXAMPLE}")));
    }
    let literal: LitStr = input.parse()?;
    let words = lex::string(&literal, notation, errors);
    if notation == Notation::Letters {
        while !input.is_empty() {
            if !input.peek(Token![,]) {
                return Err(input.error(format!("expected `,` between operands: {EXAMPLE}")));
            }
            let fork = input.fork();
            fork.parse::<Token![,]>()?;
            if fork.is_empty() || call::size_name_follows(&fork) {
                break;
            }
            input.parse::<Token![,]>()?;
            operands.push(input.parse()?);
        }
    }
    let sizes = call::sizes(input)?;
    Ok(EinsumCall { words, operands, sizes, span: literal.span() })
}

#[cfg(test)]
mod tests {
    use super::{What, expand};
    use proc_macro2::TokenStream;
    use quote::quote;

    /// The number of lines of a call's expansion.
    fn lines(call: TokenStream, fallible: bool) -> usize {
        let code = expand(call, What::Value { fallible });
        let file = syn::parse2(quote!(fn f() { #code })).expect("the code is an expression");
        prettyplease::unparse(&file).lines().count() - 2
    }

    #[test]
    fn what_two_operands_expand_to_can_be_read() {
        let calls = [
            quote!(a[i, k] * b[k, j] => [i, j]),
            quote!(q[b, h, s, d] * k[b, h, t, d] => [b, h, s, t]),
            quote!((a[i, k] - b[j, k]).abs() => [i, j]),
            quote!("ik,kj->ij", a, b),
            quote!("bhqd,bhkd->bhqk", a, b),
            quote!(a, b, "... (head c), head c out -> ... out", head = 8),
        ];
        for call in calls {
            for fallible in [false, true] {
                let lines = lines(call.clone(), fallible);
                assert!(lines < 40, "{lines} lines of {call}");
            }
        }
    }
}
