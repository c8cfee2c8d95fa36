//! Pictures: tensors as heat maps, for the terminal and as SVG, and plans as SVG.
//!
//! A plan is drawn by [`Plan::to_svg`](crate::plan::explain::Plan::to_svg), the path of an einsum by
//! [`EinsumPath::to_svg`](crate::macros::pattern::EinsumPath::to_svg). All of them are whole documents: write them to a file, or put them into a page.

mod heat;
mod plan;
mod svg;
mod tree;

pub use heat::{Draw, Flat};

#[cfg(feature = "std")]
pub(crate) use plan::program;
