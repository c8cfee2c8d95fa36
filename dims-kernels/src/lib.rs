//! The kernels of `typed-dims`: loops over pointers, sizes and strides.
//!
//! Nothing here knows dims. An expression of the crates above is a tree of [loads](load) and [operations](ops); the loops, the threads and the matrix
//! products are here, and those that depend on the element type alone are [compiled](compiled) here for the common types, so that other crates only
//! link them.

#![no_std]

#[macro_use]
extern crate alloc;
#[cfg(any(feature = "std", test))]
extern crate std;

pub mod attention;
#[cfg(feature = "blas")]
pub mod blas;
pub mod compiled;
pub mod contract;
pub mod copy;
pub mod error;
pub mod gemm;
pub mod load;
pub mod loops;
pub mod machine;
pub mod map;
pub mod memory;
pub mod ops;
pub mod reduce;
pub mod scalar;
pub mod scan;
mod seal;
