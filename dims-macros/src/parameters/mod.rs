//! `#[derive(Parameters)]`: finds the fields of a struct that have trainable tensors.

mod ast;
mod expand;

pub use expand::expand;
