//! Plans: which loops run in which order, over which strides. Plain data, without any type of a dim.
//!
//! An expression first says which sizes its operands have ([`shape::Shape`]) and with which strides they lie along the
//! loop axes ([`rows::Rows`]); from that follows the loop nest ([`nest::Nest`]) or the contraction ([`contract`]).

pub mod axes;
pub mod contract;
pub mod direct;
pub mod explain;
pub mod nest;
pub mod rows;
pub mod shape;
