//! `#[derive(Parameters)]`: names and visits the tensors in the fields of a struct.

mod ast;
mod expand;

pub use expand::expand;
