//! Typed tensor programs on XLA: on GPUs, TPUs, CPUs and meshes of devices.
//!
//! A program that [`record`](typed_dims::program::record()) has made is lowered to
//! [StableHLO](stablehlo), compiled by a [PJRT plugin](pjrt) that is loaded at run time, and called
//! with typed values:
//!
//! ```no_run
//! use typed_dims::prelude::*;
//! use typed_dims::program::record;
//! use typed_dims_xla::Pjrt;
//!
//! dims! { pub struct Row; pub struct Col; }
//! type Matrix = Tensor<f32, (Row, Col)>;
//!
//! let x: Matrix = ones((Row.of(2), Col.of(3)));
//! let program = record(|x: &Matrix| x.softmax(Col), &x)?;
//! let engine = Pjrt::find()?;
//! let run = engine.compile(&program)?;
//! let y = run.call(&x)?;
//! assert_eq!(y.to_host()?.size(Col), 3);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! XLA is not needed to build this crate. Without the feature `pjrt`, the crate lowers programs and
//! plans the communication between the devices of a mesh, but cannot run programs.

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
pub use engine::{ComparedCollectives, Comparison, OnDevice, Run, RunOptions};
pub use error::XlaError;
pub use mesh::{Along, CollectiveKind, Mesh, MeshAxis, Plan, PlannedCollective, ShardRules, Sharding};
#[cfg(feature = "pjrt")]
pub use pjrt::{Pjrt, PjrtOptions};
pub use stablehlo::{AttentionKernel, Precision};
