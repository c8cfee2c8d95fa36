//! `rearrange!`, `rearrange_view!`, `reduce!` and `repeat!`.

mod expand;
mod pieces;
mod valid;

use crate::pattern::call::{self, Form};
use crate::pattern::errors::Errors;
use crate::pattern::operand::looked_at;
use proc_macro2::TokenStream;
use syn::parse::{ParseStream, Parser};

/// The macro that was called.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum TransformKind {
    Rearrange,
    View,
    Reduce,
    Repeat,
}

impl TransformKind {
    /// The name and the arguments of the macro.
    fn form(self) -> Form {
        let (name, example) = match self {
            TransformKind::Rearrange => ("rearrange", "rearrange!(x, h w c -> c h w)"),
            TransformKind::View => ("rearrange_view", "rearrange_view!(x, h w c -> c h w)"),
            TransformKind::Reduce => ("reduce", "reduce!(x, b c h w -> b c, max)"),
            TransformKind::Repeat => ("repeat", "repeat!(x, h w -> h w c, c = 3)"),
        };
        let operands = (self != TransformKind::Rearrange).then_some(1);
        Form { name, example, op: self == TransformKind::Reduce, operands }
    }
}

/// Expands one of the macros, or its `try_` form if `fallible`.
pub fn expand(input: TokenStream, kind: TransformKind, fallible: bool) -> TokenStream {
    let mut errors = Errors::default();
    let form = kind.form();
    let call = match (|input: ParseStream<'_>| call::parse(input, &form, &mut errors)).parse2(input) {
        Ok(call) => call,
        Err(error) => {
            errors.syn(&error);
            return errors.stub(&TokenStream::new());
        }
    };
    let valid = valid::check(&call, kind, &mut errors);
    if errors.is_empty() {
        expand::expand(&call, &valid, kind, fallible)
    } else {
        errors.stub(&looked_at(call.operands.iter()))
    }
}

#[cfg(test)]
mod tests {
    use super::{TransformKind, expand};
    use quote::quote;

    /// The number of errors of a call.
    fn errors(call: proc_macro2::TokenStream, kind: TransformKind) -> usize {
        expand(call, kind, false).to_string().matches("compile_error").count()
    }

    #[test]
    fn all_errors_of_a_call_are_reported_at_once() {
        assert_eq!(errors(quote!(x, "a b c -> a d d 2"), TransformKind::Rearrange), 5);
        assert_eq!(errors(quote!(x, "(a b c) -> a ..b", k = 2), TransformKind::Rearrange), 2);
        assert_eq!(errors(quote!(x, "a; b -> a ;b (", maxx), TransformKind::Reduce), 4);
        assert_eq!(errors(quote!(x, "a b -> b a"), TransformKind::Rearrange), 0);
        // A wrong number of arrays is one error, even if an axis is only on one side.
        assert_eq!(errors(quote!(x, "y, a b -> b a"), TransformKind::Rearrange), 1);
        assert_eq!(errors(quote!(x, "y, a b -> a b 2"), TransformKind::Repeat), 1);
        // An axis may occur once in each group of a sum, but not beside the sum.
        assert_eq!(errors(quote!(v, h -> h (h + 1)), TransformKind::Rearrange), 1);
        assert_eq!(errors(quote!(v, h -> (h + 1) h), TransformKind::Rearrange), 1);
        assert_eq!(errors(quote!(v, w, h, h -> (h + h)), TransformKind::Rearrange), 0);
    }

    #[test]
    fn operands_stay_where_there_are_errors() {
        let code = expand(quote!(images, "a -> b"), TransformKind::Rearrange, false).to_string();
        assert!(code.contains("& images"), "{code}");
    }
}
