//! Memory of elements: allocation, buffers, and access along axes.

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
pub mod runs;
