//! Matrix products by a BLAS of the user's choice (feature `blas`).
//!
//! A program links OpenBLAS, BLIS, MKL or Accelerate, and installs the `cblas_?gemm` functions
//! once. They then compute products of `f32`, `f64` and complex matrices. This crate itself links
//! no BLAS, so the feature can be enabled on machines without a BLAS. Programs that depend on
//! `typed-dims` import this module as `typed_dims::blas`.
//!
//! ```no_run
//! // Cargo.toml: typed-dims = { features = ["blas"] }, blas-src = { features = ["openblas"] }
//! // extern crate blas_src;
//! use typed_dims_kernels::blas::{self, Gemm};
//!
//! // SAFETY: the CBLAS that is linked has 32-bit integers.
//! unsafe { blas::install(Gemm::linked()) }.expect("installed once, at the start");
//! ```
//!
//! **What the BLAS computes.** Products in which rows, columns and sums are one loop each, and each
//! matrix is contiguous along one of its two axes: layouts that CBLAS can express by a
//! transposition and a leading dimension. Some other products are packed, or split into several, to
//! meet these conditions. A batch makes one call for each product. Products of half precisions are
//! computed in `f32`, so the BLAS computes them too. This crate still computes the rest, and small
//! products (at most 16 * 16 * 16 multiplications). `explain` does not show whether the BLAS
//! computes a product.
//!
//! **Threads.** With the feature `rayon`, large products are first split among rayon's threads, and
//! each piece is one call. Limit either the BLAS (`OPENBLAS_NUM_THREADS=1`) or rayon
//! (`RAYON_NUM_THREADS=1`) to one thread; otherwise they compete for cores.
//!
//! **Numbers.** Each BLAS adds in its own order, so the last digits of results can differ between
//! libraries and machines.

pub use crate::gemm::installed::{AlreadyInstalled, ComplexGemm, Gemm, RealGemm, install, installed};
