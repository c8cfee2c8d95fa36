//! `tensor!` and the indexed notation of `einsum!`: expressions with one index for each axis, as
//! typed operations.
//!
//! [`tokens`] wraps brackets so that syn can parse several indices, and [`ast`] parses the call.
//! [`valid`] finds the loops ([`names`]) and builds the tree of [`node`]s, with the help of
//! [`elements`], [`calls`], [`captured`] (code without loops) and [`nested`] (other macros).
//! [`sizes`] finds the size of each loop. [`expand`] writes the expansion, with the help of
//! [`lower`] (nodes), [`loop_dims`] (dims) and [`library`] (paths).

pub mod ast;
mod calls;
mod captured;
mod elements;
mod errors;
mod expand;
mod library;
pub mod loop_dims;
mod lower;
mod names;
mod nested;
mod node;
mod sizes;
pub mod tokens;
pub mod valid;

use proc_macro2::TokenStream;

/// Which macro was called. This decides which names are loops and what the result is.
#[derive(Clone, Copy, PartialEq)]
pub enum LoopNotation {
    /// `tensor!([i, j] => body)`: the list and the reductions name the loops.
    Tensor,
    /// `einsum!(body => [i, j])`: every name in an index is a loop, unless a `let` binds it. Loops
    /// that are neither in the list nor in a reduction are summed.
    Einsum,
}

/// The call as an expression, of type `Result<_, DimError>` if `fallible`.
pub fn expand(input: TokenStream, notation: LoopNotation, fallible: bool) -> TokenStream {
    let bases = tokens::bases(input.clone());
    let call = match ast::parse(input, notation) {
        Ok(call) => call,
        Err(error) => return errors::refuse(&error, &bases),
    };
    let expansion = valid::check(&call, notation).and_then(|program| expand::expand(&program, fallible));
    expansion.unwrap_or_else(|error| errors::refuse(&error, &bases))
}
