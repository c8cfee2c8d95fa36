//! The types, expressions, plans and kernels of `typed-dims`. Use that crate; this one holds what it re-exports.

#![no_std]
// Memory is accessed in `storage` and `kernel` alone; what else is unsafe says so, and why.
#![deny(unsafe_code)]

#[macro_use]
extern crate alloc;
#[cfg(any(feature = "std", test))]
extern crate std;
extern crate typed_dims_kernels as kernels;

pub mod assign;
pub mod attention;
pub mod batch;
pub mod bind;
mod borrow;
pub mod brand;
#[doc(hidden)]
pub mod comprehension;
pub mod convert;
pub mod create;
pub mod custom;
pub mod dim;
pub mod draw;
pub mod dynamic;
pub mod elementwise;
pub mod error;
pub mod expr;
#[cfg(any(feature = "safetensors", feature = "npy"))]
pub mod file;
#[cfg(any(feature = "candle", feature = "image", feature = "mdarray", feature = "nalgebra"))]
pub mod foreign;
pub mod join;
pub mod laid;
pub mod linalg;
mod lines;
pub mod named;
pub mod nn;
pub mod noise;
pub mod order;
pub mod pattern;
pub mod plan;
#[cfg(feature = "rand")]
pub mod random;
pub mod rank;
pub mod reduce;
pub mod restructure;
pub mod role;
pub mod scan;
pub mod scans;
mod seal;
pub mod select;
#[cfg(feature = "serde")]
mod serialize;
pub mod set;
pub mod shift;
pub mod show;
#[cfg(feature = "onnx")]
#[doc(hidden)]
pub mod signature;
pub mod size;
pub mod sort;
#[allow(unsafe_code)]
pub mod storage;
pub mod stream;
mod sum_into;
pub mod tensor;
mod tuples;
pub mod window;

pub use brand::{Brand, Declared, Rest};
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
    pub use crate::brand::{Brand, Declared, Element, LoopVar, digits, keys_of};
    pub use crate::comprehension::*;
    pub use crate::declared_dim_operators;
    pub use crate::dim::{Dim, anchor, tie};
    pub use crate::elementwise::{Elementwise, iota};
    pub use crate::error::DimError;
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
    pub use generativity::Id;
    pub use typenum;
}
