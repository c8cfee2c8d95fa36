//! The axis grammar that all pattern macros share.
//!
//! ```text
//! pattern := arrays [ "->" arrays ]
//! arrays  := array { "," array }
//! array   := { axis }
//! axis    := name | number | "..." | "_" | "*" | "(" group { "+" group } ")"
//! group   := { axis }
//! ```
//!
//! A pattern stands among the tokens of the macro's call or in a string literal; [`lex`] makes the same [`words`] of both (and of
//! numpy's notation, where each letter is a name). [`parse`] reads them, [`axes`] gives the axes numbers, and [`plan`] writes the
//! constant that runs. [`call`] reads the other arguments, and [`operand`] refers to operands.

pub mod axes;
pub mod call;
pub mod errors;
pub mod lex;
pub mod near;
pub mod operand;
pub mod parse;
pub mod plan;
pub mod words;
