//! The kernels of `typed-dims`: loops over pointers, sizes and strides.
//!
//! Kernels do not know dims; only messages, plans and recordings name them. The crates that build
//! on this one express a computation as a tree of [loads](load) and [operations](ops); the loops,
//! the threads and the matrix products are here. Some routines that depend only on the element type
//! are [`compiled`] here for the common types, so other crates only link them.
//!
//! # Preconditions
//!
//! A function that takes [elements](memory::elements) and a [nest](loops::nest) reads the elements
//! along the nest's rows of strides. The caller promises that these rows stay within the elements;
//! only builds with debug assertions check it. `typed-dims-core` derives rows and elements from the
//! same axes, so they always fit. A program that uses this crate directly must ensure that they do.

#![no_std]
// Readers of this documentation work on the kernels, so it may link to private items.
#![allow(rustdoc::private_intra_doc_links)]

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
pub mod program;
pub mod random;
pub mod reduce;
pub mod scalar;
pub mod scan;
pub mod sort_key;
pub mod step;
#[cfg(feature = "std")]
pub mod trace;
