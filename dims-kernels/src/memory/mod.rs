//! Memory: elements along axes, buffers that own them, and where new memory comes from.

pub mod allocate;
pub mod axes;
pub mod buffer;
pub mod destination;
pub mod elements;
pub mod freed;
pub mod held;
#[cfg(feature = "std")]
pub mod hollow;
#[cfg(feature = "std")]
pub mod listener;
#[cfg(feature = "std")]
pub mod pool;
#[cfg(feature = "std")]
pub mod registry;
