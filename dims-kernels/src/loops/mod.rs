//! Loops: nests over the axes of several operands, loops of matrix products, and the steps that plans consist of.

pub mod axes;
pub mod nest;
#[cfg(all(target_arch = "x86_64", any(feature = "std", target_feature = "avx2")))]
pub(crate) mod panels;
pub(crate) mod products;
pub mod rows;
pub mod steps;
pub mod stride;
