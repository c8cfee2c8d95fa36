//! The tensor type: an expression with its dims in the type.

pub mod named;
#[cfg(feature = "serde")]
mod serialize;
pub mod show;
pub mod tensor;
