//! What a gradient is taken of.

use crate::error::DimError;
use crate::expr::Expr;
use crate::named::Named;
use crate::rank::Rank0;
use crate::reduce::evaluated;
use crate::set::Dims;
use kernels::scalar::{Element, Real};

/// A loss: one float, as a tensor without dims.
///
/// All results that have no dims and floats as elements; each of the two conditions has a message of its own.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a loss",
    label = "the function must return a tensor of one float, as `.sum(..)` or `.mean(..)` over all dims does",
    note = "a number, as `order(())` yields, carries no gradient: return the tensor itself"
)]
pub trait ScalarLoss: LossTensor<Elem: LossElem, Dims: NoneReduced> {
    #[doc(hidden)]
    fn into_loss(self) -> Result<Named<Self::Elem, ()>, DimError>;
}

impl<L: LossTensor<Elem: LossElem, Dims: NoneReduced>> ScalarLoss for L {
    #[track_caller]
    fn into_loss(self) -> Result<Named<L::Elem, ()>, DimError> {
        let loss = evaluated(self.tensor())?;
        Ok(Named::from_expr(loss.expr.with_dims::<()>(&[], |_| 1)))
    }
}

/// A tensor that a function returns: of any dims and elements, computed or not.
pub trait LossTensor {
    /// The type of its elements.
    type Elem: Element;
    /// Its dims.
    type Dims: Dims;
    /// The expression that computes it.
    #[doc(hidden)]
    type Expr: Expr<Elem = Self::Elem>;
    #[doc(hidden)]
    fn tensor(self) -> Named<Self::Elem, Self::Dims, Rank0, Self::Expr>;
}

#[diagnostic::do_not_recommend]
impl<T: Element, S: Dims, E: Expr<Elem = T>> LossTensor for Named<T, S, Rank0, E> {
    type Elem = T;
    type Dims = S;
    type Expr = E;

    fn tensor(self) -> Self {
        self
    }
}

/// No dims: the loss is reduced.
#[diagnostic::on_unimplemented(
    message = "the loss has the dims `{Self}` left",
    label = "a gradient is that of one number: reduce the loss over these dims, for example `.mean({Self})`"
)]
pub trait NoneReduced {}

#[diagnostic::do_not_recommend]
impl NoneReduced for () {}

/// The element types of losses: floats.
#[diagnostic::on_unimplemented(
    message = "a loss of type `{Self}` has no gradient",
    label = "only floats have gradients: cast integers before computing with them, `.cast::<f32>()`; indices, as of `argmax`, and counts have none"
)]
pub trait LossElem: Real {}

#[diagnostic::do_not_recommend]
impl<T: Real> LossElem for T {}
