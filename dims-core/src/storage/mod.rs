//! Memory: who owns the elements of a tensor, and where its axes lie in it.

pub(crate) mod array;
pub mod axes;
pub(crate) mod buffer;
pub(crate) mod elements;
#[cfg(any(feature = "image", feature = "mdarray", feature = "nalgebra"))]
mod foreign;
#[cfg(all(feature = "memmap", any(feature = "safetensors", feature = "npy")))]
pub(crate) mod mapped;
pub mod memory;
pub mod owned;
pub mod packed;
pub mod place;
#[cfg(feature = "std")]
mod pool;
pub(crate) mod shared;
pub mod source;
pub mod view;

pub use elements::{Elements, ElementsMut};
pub use owned::Owned;
pub use place::Place;
pub use view::View;
