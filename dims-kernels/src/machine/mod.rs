//! The machine: instruction sets, vectors, prefetching, threads, and the tuning parameters of
//! families of processors.

pub mod isa;
#[cfg(x86_vectors)]
pub mod level;
pub(crate) mod params;
pub(crate) mod prefetch;
pub mod threads;
#[cfg(x86_vectors)]
pub(crate) mod vector;
