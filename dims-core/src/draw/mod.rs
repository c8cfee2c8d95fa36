//! Drawings: heat maps of tensors for the terminal and as SVG, and plans, paths of einsums and
//! recorded programs as SVG.
//!
//! [`Plan::to_svg`](crate::plan::explain::Plan::to_svg) draws a plan,
//! [`EinsumPath::to_svg`](crate::macros::pattern::EinsumPath::to_svg) the path of an einsum, and
//! `to_svg` of a [recorded program](crate::program) its steps. Each SVG is a complete document,
//! which you can write to a file or embed in a page.

mod heat;
mod plan;
mod svg;
mod tree;

pub use heat::{Draw, Flat};

#[cfg(feature = "std")]
pub(crate) use plan::program;
