//! Products of matrices by a BLAS of the user's choice (feature `blas`).
//!
//! A program that links OpenBLAS, BLIS, MKL or Accelerate hands their `cblas_?gemm` over, once, and from then on products of `f32`, `f64`
//! and complex matrices run there. Nothing is linked by this crate itself, so that the feature can be on where there is no BLAS.
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
//! **What runs there.** Products in which rows, columns and sums are one loop each, and neighbours along one of the two axes of each matrix: what
//! CBLAS can be told by a transposition and a leading dimension. Batches of such are one call each. Small products (up to 16 x 16 x 16),
//! windows that overlap, several loops, steps and reversed axes, integers and half precisions stay with the
//! kernels of this crate. `explain` shows the same plan for both.
//!
//! **Threads.** With the feature `rayon` large products are cut for its threads first, and each piece is a call. Either tell the BLAS to use one
//! thread (`OPENBLAS_NUM_THREADS=1`), or rayon (`RAYON_NUM_THREADS=1`); with both at work they get into each other's way.
//!
//! **Numbers.** Each BLAS adds in an order of its own, so the last digits of results differ, also from one machine to the next.

pub use crate::gemm::installed::{AlreadyInstalled, ComplexGemm, Gemm, RealGemm, install, installed};
