//! Plans of the matrix products of a pair of operands: which loops are rows, columns, sums and
//! batch, and which kernel runs them.

#[cfg(x86_vectors)]
pub(crate) mod panels;
pub(crate) mod products;
