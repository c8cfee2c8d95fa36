//! What runs an expression: `order`, reductions, assignment, and lines along dims.

pub mod assign;
pub(crate) mod lines;
pub mod order;
pub mod reduce;
mod sum_into;
