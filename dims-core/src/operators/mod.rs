//! The operators, each over all other dims of a tensor.

pub mod attention;
mod borrow;
pub mod custom;
pub mod dynamic;
pub mod elementwise;
pub mod fold;
pub mod interpolate;
pub mod join;
pub mod linalg;
pub mod nan;
pub mod nn;
pub mod priming;
pub mod restructure;
pub mod scan;
pub mod scans;
pub mod select;
pub mod shift;
pub mod sort;
pub mod window;
