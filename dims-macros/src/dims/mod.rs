//! The `dims!` macro.

pub mod ast;
pub mod expand;
