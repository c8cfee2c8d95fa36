//! Inputs larger than those of random cases: several tiles, and larger than the caches.

mod kernels;
mod memory;
