//! `#[derive(Load)]`: which array of a file of weights each field of a struct is.

mod ast;
mod expand;

pub use ast::LoadInput;
pub use expand::expand;
