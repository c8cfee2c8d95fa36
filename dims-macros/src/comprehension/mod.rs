//! `tensor!` and the indexed notation of `einsum!`: expressions with an index for each axis, as typed operations.
//!
//! [`tokens`] makes brackets with several indices something that syn can read, and [`ast`] reads the call. [`valid`] finds
//! out which names are loops ([`names`]), and builds the tree of [`node`]s, with [`elements`], [`calls`] and [`captured`] Rust code
//! in it; [`sizes`] tells where each loop has its size from. [`expand`] writes it all out, the nodes
//! by [`lower`], with the dims of [`loop_dims`] and the paths of [`library`].

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
mod node;
mod sizes;
mod tokens;
pub mod valid;

use proc_macro2::TokenStream;

/// Which macro was called, and so what its names and its result are.
#[derive(Clone, Copy, PartialEq)]
pub enum LoopNotation {
    /// `tensor!([i, j] => body)`: loops are those of the list and of reductions.
    Tensor,
    /// `einsum!(body => [i, j])`: every name in an index is a loop, and those that are not in the list are summed.
    Einsum,
}

/// The call as an expression; with `fallible` one of type `Result<_, DimError>`.
pub fn expand(input: TokenStream, notation: LoopNotation, fallible: bool) -> TokenStream {
    let bases = tokens::bases(input.clone());
    let call = match ast::parse(input, notation) {
        Ok(call) => call,
        Err(error) => return errors::refuse(&error, &bases),
    };
    let expansion = valid::check(&call, notation).and_then(|program| expand::expand(&program, fallible));
    expansion.unwrap_or_else(|error| errors::refuse(&error, &bases))
}
