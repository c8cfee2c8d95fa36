//! Running expressions and steps: `order`, reductions, assignment, lines along dims, and steps of
//! operators.
//!
//! Three verbs name what runs:
//!
//! * A *tensor* is `eval`ed, as in the public interface: the result is a tensor that owns its
//!   elements (`reduce::eval`).
//! * An *expression* is `evaluate`d (`expr::evaluate`): the result is its
//!   elements. `evaluate` is a step of recorded programs; `evaluate_tensor` is the same, with the
//!   elements as tensors own them. `evaluate_unrecorded` records no step. `evaluate_for` is for
//!   operations without a derivative: elements of recorded steps are an error.
//! * A *step* of an operator is `execute`d (`step::execute`): the result is that of the step.

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
