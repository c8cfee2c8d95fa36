//! The memory pool for large intermediate results.

pub use kernels::memory::pool::{empty_pool, pool_bytes, pool_limit, set_pool_limit};
