//! Runs expressions and steps of operators: `order`, reductions, assignment, work along lines.
//!
//! Three verbs name what runs:
//!
//! * A *tensor* is `eval`ed, as in the public interface: the result is a tensor that owns its
//!   elements (`reduce::eval`).
//! * An *expression* is `evaluate`d (`expr::evaluate`): the result is its elements. `evaluate`
//!   records a step if an operand is traced. `evaluate_tensor` does the same, but returns the
//!   elements as the storage of a tensor. `evaluate_unrecorded` records no step. `evaluate_for` is
//!   for operations without a derivative: it returns an error if the elements are traced.
//! * A *step* of an operator is `execute`d (`step::execute`), which returns the step's results.

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
