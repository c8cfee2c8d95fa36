//! The axis grammar that all pattern macros share.
//!
//! ```text
//! pattern := arrays [ "->" arrays ]
//! arrays  := array { "," array }
//! array   := { axis }
//! axis    := name | "$" dim | number | "..." | "_" | "*" | "(" group { "+" group } ")"
//! group   := { axis }
//! ```
//!
//! A pattern is written as tokens or in a string literal, which cannot contain `$`. [`lex`] turns
//! both into the same [`words`]. In numpy's notation each letter is a name.

pub mod axes;
pub mod call;
pub mod errors;
pub mod lex;
pub mod near;
pub mod operand;
pub mod parse;
pub mod plan;
pub mod words;
