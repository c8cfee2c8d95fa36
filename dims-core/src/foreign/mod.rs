//! Conversions between tensors and the arrays, matrices, images and tensors of other crates.

#[cfg(feature = "candle")]
pub mod candle;
#[cfg(feature = "image")]
pub mod image;
#[cfg(feature = "mdarray")]
pub mod mdarray;
#[cfg(feature = "nalgebra")]
pub mod nalgebra;
#[cfg(any(feature = "image", feature = "mdarray", feature = "nalgebra"))]
#[allow(unsafe_code)]
mod source;
