//! Memory: the elements of tensors, owned or borrowed, and their axes.

pub(crate) mod array;
pub mod evaluated;
pub mod leaf;
#[cfg(feature = "std")]
pub mod memory;
pub mod packed;
pub mod place;
pub(crate) mod shared;
pub mod source;
pub(crate) mod unchecked;
pub mod view;

pub use crate::types::axes;
pub use evaluated::Evaluated;
pub use place::Place;
pub use view::View;
