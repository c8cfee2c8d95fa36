//! Type-level computation: dims, their sizes and roles, sets of dims, and the axis blocks of sets.

#[allow(unsafe_code)]
pub mod axes;
pub mod brand;
pub mod condition;
pub mod dim;
pub mod open;
pub mod prime;
pub mod rank;
pub mod role;
pub mod set;
#[cfg(feature = "onnx")]
pub mod signature;
pub mod size;
pub(crate) mod tuples;

pub use kernels::scalar;
