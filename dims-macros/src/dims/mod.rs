//! `dims!`: [`ast`] parses it, [`expand`] writes the expansion.

pub mod ast;
pub mod expand;
