//! The matrices and images of other crates, from and to tensors.

#[cfg(feature = "image")]
pub mod image;
#[cfg(feature = "nalgebra")]
pub mod nalgebra;
