//! `#[derive(Load)]`: maps the fields of a struct to arrays in a file of weights.

mod ast;
mod expand;

pub use ast::LoadInput;
pub use expand::expand;
