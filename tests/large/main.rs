//! Inputs larger than those of the property tests: rows of several tiles, and results that bypass
//! the caches.

mod kernels;
mod memory;
