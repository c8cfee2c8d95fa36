//! Typed tensor programs on XLA.
//!
//! The module [`pjrt`] loads a PJRT plugin at run time, such as the ones that JAX installs for CUDA, ROCm and TPUs, and runs StableHLO
//! programs on it. Nothing of XLA is needed to build this crate.

#![deny(missing_docs)]
#![deny(unsafe_code)]

#[cfg(feature = "pjrt")]
pub mod engine;
mod error;
pub mod mesh;
#[cfg(feature = "pjrt")]
pub mod pjrt;
pub mod stablehlo;

#[cfg(feature = "pjrt")]
pub use engine::{OnDevice, Run, RunOptions};
pub use error::XlaError;
pub use mesh::{Mesh, MeshAxis, Sharding};
#[cfg(feature = "pjrt")]
pub use pjrt::{Pjrt, PjrtOptions};
pub use stablehlo::Precision;
