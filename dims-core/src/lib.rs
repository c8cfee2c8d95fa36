//! The types, expressions and plans of `typed-dims`. Use that crate; this one holds what it re-exports.

#![no_std]
// Memory is accessed where `unsafe_code` is allowed; what else is unsafe says so, and why.
#![deny(unsafe_code)]
// In `impl<A: AsTensor + ?Sized> .. for A`: rustc then shows the message of `AsTensor` where a method is called on something that is not a tensor.
#![allow(clippy::needless_maybe_sized)]
// Without the standard library nobody listens to steps, and what only those need is not used.
#![cfg_attr(not(feature = "std"), allow(clippy::extra_unused_type_parameters, clippy::let_unit_value))]

#[macro_use]
extern crate alloc;
#[cfg(any(feature = "std", test))]
extern crate std;
extern crate typed_dims_kernels as kernels;

pub mod error;
mod seal;

// The layers, from the lowest to the highest: a folder imports from those above it in this list alone (`tests/architecture.rs`). Where a
// folder is private, its modules are named from the root, `crate::brand`.
mod types;
pub use types::brand::{Brand, Declared, Rest};
#[cfg(feature = "onnx")]
#[doc(hidden)]
pub use types::signature;
pub use types::{brand, dim, prime, rank, role, set, size};

#[cfg(feature = "std")]
pub mod mode;

pub mod plan;

#[allow(unsafe_code)]
pub mod storage;

pub mod expr;

mod tensors;
pub use tensors::{named, show, tensor};

pub mod bind;

mod execute;
pub use execute::{assign, order, reduce};

mod creation;
pub(crate) use creation::positions;
pub use creation::{convert, create, init, random};

pub mod batch;

mod operators;
pub use operators::{
    attention, custom, dynamic, elementwise, fold, join, linalg, nn, priming, restructure, scan, scans,
    select, shift, sort, window,
};

pub mod laid;

mod macros;
#[doc(hidden)]
pub use macros::comprehension;
pub use macros::pattern;

// What nothing else imports.
pub mod draw;
#[cfg(any(feature = "safetensors", feature = "npy"))]
pub mod file;
#[cfg(any(feature = "candle", feature = "image", feature = "mdarray", feature = "nalgebra"))]
pub mod foreign;
pub mod grad;
pub mod program;
pub mod stream;
mod training;
#[cfg(feature = "safetensors")]
pub use training::checkpoint;
pub use training::optim;

#[cfg(feature = "blas")]
pub use kernels::blas;
pub use kernels::{ops, scalar};

/// What macros expand to. Not part of the public interface.
#[doc(hidden)]
pub mod __private {
    pub mod batch {
        pub use crate::batch::argument::Batch;
        pub use crate::batch::*;
        pub use crate::error::unwrap;
    }
    pub use crate::bind::Ellipsis;
    pub use crate::brand::digits::*;
    pub use crate::brand::{Brand, Declared, LoopVar, SetElement, keys_of};
    pub use crate::comprehension::*;
    pub use crate::declared_dim_operators;
    pub use crate::dim::{Dim, Id, anchor, tie};
    pub use crate::elementwise::{Elementwise, iota};
    pub use crate::error::DimError;
    pub use crate::linalg::LinearAlgebra;
    pub use crate::reduce::Reductions;
    pub use crate::role::{DeclaredRole, IsDeclared, Role, Undenoted, role_names};
    pub mod pattern {
        pub use crate::bind::source::RankDyn;
        pub use crate::pattern::*;
        pub use crate::rank::*;
    }
    pub use crate::set::Keys;
    #[cfg(feature = "onnx")]
    pub use crate::signature as onnx;
    pub use crate::size::{Dyn, Static};
    pub use crate::storage::axes::OneAxis;
    pub use typenum;
}
