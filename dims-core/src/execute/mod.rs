//! What makes expressions and steps run: `order`, reductions, assignment, lines along dims, and steps of operators.

pub mod assign;
pub(crate) mod attention;
pub(crate) mod lines;
pub(crate) mod loops;
pub mod order;
pub(crate) mod parts;
pub(crate) mod place;
pub mod reduce;
pub(crate) mod scatter;
pub(crate) mod step;
mod sum_into;
mod written;
