//! The operators. Each is batched over all dims that it does not name.

pub mod attention;
mod borrow;
pub mod custom;
pub mod dynamic;
pub mod elementwise;
pub mod interpolate;
pub mod join;
pub mod linalg;
pub mod nn;
pub mod priming;
mod rearranged;
pub mod restructure;
pub mod scan;
pub mod select;
pub mod shift;
pub mod sort;
pub mod window;
