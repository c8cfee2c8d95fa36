//! The runtime of the pattern macros: a pattern as plain data, applied to operands whose dims and
//! axes are loops of one loop nest.
//!
//! A macro parses its pattern at compile time, and expands to a constant [`Pattern`] and one call.
//! rustc checks the rank of each operand ([`rank`]), and computes the type of the result. At run
//! time, the sizes of all axes are determined and compared once ([`solve`]), the operands' strides
//! are mapped to the loops of the pattern (`layout`), and the kernels run.

pub mod args;
pub mod arrays;
pub mod data;
pub(crate) mod direct;
pub mod einsum;
pub mod input;
pub(crate) mod join;
pub(crate) mod layout;
pub mod operand;
pub mod pack;
pub mod parts;
pub mod path;
pub mod product;
pub mod rank;
pub mod reductions;
pub mod sizes;
pub mod solve;
pub mod transform;
pub mod view;

pub use args::*;
pub use data::{Pattern, Piece, Slot, Term};
pub use einsum::einsum;
pub use input::Input;
pub use pack::{Many, PackPattern, PackedShape, Several, listed_shape, pack, packed_shape, unpack};
pub use parts::list;
pub use path::{EinsumPath, PathStep, einsum_path};
pub use rank::{Fixed, Spread};
pub use sizes::parse_shape;
pub use solve::dim_size;
pub use transform::{rearrange, reduce, reduce_by};
pub use view::rearrange_view;

use crate::error::DimError;

/// Panics with the error's text. (It returns any type and not `!`: with `!` in one branch, rustc
/// would infer `!` for a result whose type is not known yet, such as `einsum!("i,->i", a, 2.0)`.)
#[track_caller]
#[cfg_attr(not(unoptimized), inline(always))]
pub fn fail<T>(error: &DimError) -> T {
    crate::error::fail(error)
}

/// The names used in the constant of a pattern.
pub mod plan {
    pub use super::data::Slot::{Axis, Group, Rest, Sum};
    pub use super::data::{Pattern, PatternLoops, Piece, Term};
    pub use ::core::option::Option::{None, Some};
}
