//! Plans: the loops of an operation, their order and strides.
//!
//! An expression first unifies the sizes of its operands (`Shape`) and writes their strides along
//! the loop axes (`Rows`). The loop nest (`Nest`) or the contraction (`contract`) follows from
//! these.

pub(crate) mod axes;
pub(crate) mod direct;
pub mod explain;
pub(crate) mod shape;
pub(crate) mod still;
