//! Typed tensor programs on XLA.
//!
//! The module [`pjrt`] loads a PJRT plugin at run time, such as the ones that JAX installs for CUDA, ROCm and TPUs, and runs StableHLO
//! programs on it. Nothing of XLA is needed to build this crate.

#![deny(missing_docs)]
#![deny(unsafe_code)]

mod error;
#[cfg(feature = "pjrt")]
pub mod pjrt;

pub use error::XlaError;
