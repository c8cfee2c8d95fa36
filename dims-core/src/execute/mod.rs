//! What makes expressions and steps run: `order`, reductions, assignment, lines along dims, and steps of operators.
//!
//! Three verbs say what runs:
//!
//! * A *tensor* is `eval`ed, as users say: the result is a tensor that owns its elements ([`reduce::eval`]).
//! * An *expression* is `evaluate`d ([`expr::evaluate`](crate::expr::evaluate)): the result is its elements. `evaluate` is a step of recorded programs, and
//!   `evaluate_tensor` the same with elements as tensors own them. `evaluate_unrecorded` is no step. `evaluate_for` is for operations without a
//!   derivative, and refuses the elements of recorded steps.
//! * A *step* of an operator is `execute`d ([`step::execute`]): the result is what the step makes of its operands.

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
