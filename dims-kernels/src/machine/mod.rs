//! The machine: instruction sets, threads, and the tuning parameters of each processor.

pub mod isa;
pub(crate) mod params;
pub(crate) mod prefetch;
pub mod threads;
#[cfg(all(target_arch = "x86_64", any(feature = "std", target_feature = "avx2")))]
pub(crate) mod vector;
