//! `#[derive(Parameters)]`: which fields of a struct have tensors to be learned.

mod ast;
mod expand;

pub use expand::expand;
