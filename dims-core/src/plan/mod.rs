//! Plans: which loops run in which order, over which strides. Plain data, without any type of a dim.
//!
//! An expression first says which sizes its operands have (`Shape`) and with which strides they lie along the
//! loop axes (`Rows`); from that follows the loop nest (`Nest`) or the contraction (`contract`).

pub(crate) mod axes;
pub(crate) mod direct;
pub mod explain;
pub(crate) mod shape;
pub(crate) mod still;
