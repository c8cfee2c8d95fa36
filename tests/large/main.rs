//! Inputs larger than those of random cases: rows of several tiles, and results that bypass the
//! caches.

mod kernels;
mod memory;
