//! The machine: instruction sets, threads, and the tuning parameters of each processor.

pub mod isa;
#[cfg(x86_vectors)]
pub mod level;
pub(crate) mod params;
pub(crate) mod prefetch;
pub mod threads;
#[cfg(x86_vectors)]
pub(crate) mod vector;
