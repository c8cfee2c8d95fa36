//! Inputs larger than those of random cases: several tiles, and more than caches hold.

mod kernels;
mod memory;
