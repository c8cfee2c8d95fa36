//! Plans of the matrix products of a pair of operands: which loops are rows, columns, sums and batch, and which kernel runs them.

#[cfg(all(target_arch = "x86_64", any(feature = "std", target_feature = "avx2")))]
pub(crate) mod panels;
pub(crate) mod products;
