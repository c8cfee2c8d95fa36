//! The types, expressions and plans of `typed-dims`. Use that crate, which re-exports this one.

#![no_std]
// Modules that access memory allow `unsafe_code`.
#![deny(unsafe_code)]
// `?Sized` in `impl<A: AsTensor + ?Sized> .. for A` makes rustc show the message of `AsTensor` when
// a method is called on something that is not a tensor.
#![allow(clippy::needless_maybe_sized)]
// Without `std` there are no listeners for steps, so some type parameters are unused, and some
// values are `()`.
#![cfg_attr(not(feature = "std"), allow(clippy::extra_unused_type_parameters, clippy::let_unit_value))]

#[macro_use]
extern crate alloc;
#[cfg(any(feature = "std", test))]
extern crate std;

pub mod error;
mod seal;

// The layers, from the lowest to the highest: a folder imports only from those above it in this
// list (`tests/architecture`).
pub mod types;

#[cfg(feature = "std")]
pub mod mode;

pub mod plan;

#[allow(unsafe_code)]
pub mod storage;

pub mod expr;

pub mod tensors;

pub mod bind;

pub mod execute;

pub mod creation;

pub mod batch;

pub mod operators;

pub mod laid;

#[doc(hidden)]
pub mod macros;

// The layers above do not import the modules below. Of these modules, only `program` and `training`
// import others.
pub mod draw;
#[cfg(any(feature = "safetensors", feature = "npy"))]
pub mod file;
#[cfg(any(feature = "candle", feature = "image", feature = "mdarray", feature = "nalgebra"))]
pub mod foreign;
pub mod grad;
pub mod program;
pub mod stream;
pub mod training;

#[cfg(feature = "blas")]
pub use kernels::blas;
pub use kernels::ops;

/// Items that macros expand to. Not part of the public interface.
#[doc(hidden)]
pub mod __private {
    pub mod batch {
        pub use crate::batch::argument::Batch;
        pub use crate::batch::*;
        pub use crate::error::unwrap;
    }
    pub use crate::bind::{self, Ellipsis};
    pub use crate::declared_dim_operators;
    pub use crate::error::{self, DimError};
    pub use crate::execute::reduce::Reductions;
    #[cfg(feature = "safetensors")]
    pub use crate::file;
    pub use crate::macros::comprehension::*;
    pub use crate::operators::elementwise::{Elementwise, iota};
    pub use crate::operators::linalg::LinearAlgebra;
    pub use crate::storage::axes::OneAxis;
    pub use crate::types::brand::digits::*;
    pub use crate::types::brand::{Brand, Declared, LoopVar, SetElement, keys_of};
    pub use crate::types::dim::{Dim, Id, anchor, tie};
    pub use crate::types::role::{DeclaredRole, IsDeclared, Role, Undenoted, role_names};
    pub use crate::types::set::Keys;
    #[cfg(feature = "onnx")]
    pub use crate::types::signature as onnx;
    pub use crate::types::size::{Dyn, Static};
    pub use crate::{creation, execute, grad, operators, program, tensors, types};
    pub use ndarray;
    pub use typenum;
    pub mod pattern {
        pub use crate::bind::source::RankDyn;
        pub use crate::macros::pattern::*;
        pub use crate::types::rank::*;
    }
}
