//! Conversions from arrays, constructors, initialization, seeds and random tensors.

pub mod convert;
pub mod create;
pub mod init;
pub(crate) mod positions;
pub mod random;
pub(crate) mod seed;
#[cfg(feature = "std")]
pub(crate) mod undrawn;
