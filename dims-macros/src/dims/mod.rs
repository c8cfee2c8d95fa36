//! `dims!`: parsed into [`ast`], written out by [`expand`].

pub mod ast;
pub mod expand;
