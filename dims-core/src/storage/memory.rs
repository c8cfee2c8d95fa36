//! The memory pool for large tensors.

pub use kernels::memory::pool::{empty_pool, pool_bytes, pool_limit, set_pool_limit};
