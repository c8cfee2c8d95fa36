//! What a gradient is taken of.

use crate::error::DimError;
use crate::expr::Expr;
use crate::named::Named;
use crate::rank::Rank0;
use crate::reduce::evaluated;
use crate::set::Dims;
use kernels::scalar::Real;

/// A loss: one float, as a tensor without dims.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a loss",
    label = "a loss is a tensor of one float: reduce it over all of its dims, `.sum(..)` or `.mean(..)`",
    note = "a number, as `order(())` yields, has left the program of which gradients are taken"
)]
pub trait ScalarLoss {
    /// The type of the float.
    type Elem: Real;
    #[doc(hidden)]
    fn into_loss(self) -> Result<Named<Self::Elem, ()>, DimError>;
}

#[diagnostic::do_not_recommend]
impl<T: LossElem, S: Dims + NoneReduced, E: Expr<Elem = T>> ScalarLoss for Named<T, S, Rank0, E> {
    type Elem = T;

    #[track_caller]
    fn into_loss(self) -> Result<Named<T, ()>, DimError> {
        let loss = evaluated(self)?;
        Ok(Named::from_expr(loss.expr.with_dims::<()>(&[], |_| 1)))
    }
}

/// No dims: the loss is reduced.
#[diagnostic::on_unimplemented(
    message = "the loss has the dims `{Self}` left",
    label = "a gradient is taken of one number: reduce the loss over them, for example `.mean({Self})`"
)]
pub trait NoneReduced {}

#[diagnostic::do_not_recommend]
impl NoneReduced for () {}

/// The element types of losses: floats.
#[diagnostic::on_unimplemented(
    message = "a loss of `{Self}` has no gradient",
    label = "floats are needed here: cast what it is computed of, `.cast::<f32>()`"
)]
pub trait LossElem: Real {}

#[diagnostic::do_not_recommend]
impl<T: Real> LossElem for T {}
