//! The pool of memory that large intermediate results come from and go to.

pub use kernels::memory::pool::{empty_pool, pool_bytes, pool_limit, set_pool_limit};
