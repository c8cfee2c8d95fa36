//! Losses: the results of the functions that are differentiated.

use crate::error::DimError;
use crate::execute::reduce::eval;
use crate::expr::Expr;
use crate::grad::inputs::OfEach;
use crate::grad::variables::Elements;
use crate::tensors::named::Named;
use crate::types::brand::Rest;
use crate::types::rank::Rank0;
use crate::types::set::Dims;
use alloc::sync::Arc;
use kernels::memory::buffer::Buffer;
use kernels::scalar::{Element, Num, Real};
use kernels::trace::Held;

/// A loss: one float, as a tensor without dims.
///
/// If the inputs `P` have the extra dims `Rest<B>` of a batch, the loss may have them too. Then
/// there is one loss and one gradient for each example.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a loss",
    label = "the function must return a tensor of one float, such as `.sum(..)` or `.mean(..)` over all dims",
    note = "a number from `order(())` carries no gradient: return the tensor itself"
)]
pub trait ScalarLoss<P = ()>: LossTensor<Elem: LossElem, Dims: NoneReduced<P>> {
    #[doc(hidden)]
    const SEAL: crate::seal::Seal;
    #[doc(hidden)]
    fn into_loss(self) -> Result<LossInMemory<Self::Elem, Self::Dims>, DimError>;
}

impl<P, L: LossTensor<Elem: LossElem, Dims: NoneReduced<P>>> ScalarLoss<P> for L {
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    #[track_caller]
    fn into_loss(self) -> Result<LossInMemory<L::Elem, L::Dims>, DimError> {
        let loss = eval(self.tensor())?;
        let elements = Elements::of(&loss.expr);
        let mut one = alloc::vec![L::Elem::ZERO; elements.held.len()];
        for number in 0..elements.sizes().iter().product() {
            one[elements.at(number)] = L::Elem::ONE;
        }
        Ok(LossInMemory { held: elements.held, one: Buffer::from(one).held(), tensor: loss })
    }
}

/// An evaluated loss.
pub struct LossInMemory<T, S: Dims> {
    /// The memory of `tensor`.
    pub(super) held: Arc<dyn Held>,
    /// The cotangent of the memory: 1 for each element of `tensor`.
    pub(super) one: Arc<dyn Held>,
    pub(super) tensor: Named<T, S>,
}

/// The element of a loss: the last one if there are several, and `None` if there are none.
pub(super) fn number_of<T: Element, S: Dims>(loss: &Named<T, S>) -> Option<T> {
    let elements = Elements::of(&loss.expr);
    let last = elements.sizes().iter().product::<usize>().checked_sub(1)?;
    Some(loss.expr.all()[elements.at(last)])
}

/// A tensor or expression without positional axes, as the result of a function.
pub trait LossTensor {
    #[doc(hidden)]
    const SEAL: crate::seal::Seal;
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
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    type Elem = T;
    type Dims = S;
    type Expr = E;

    fn tensor(self) -> Self {
        self
    }
}

/// The dims of a loss: none, or `Rest<B>` if the gradient is taken with respect to tensors of
/// [each example](OfEach).
#[diagnostic::on_unimplemented(
    message = "the loss has the dims `{Self}` left",
    label = "the loss must be one number: reduce it over these dims, for example by `.mean(..)`",
    note = "only `grad`, `loss_and_grad` and `loss_and_grad_with` take a loss with `Rest<B>`, and only with respect to tensors with `Rest<B>`; for a struct, differentiate with respect to its tensors, or write a struct with \
            fields `Tensor<f32, (.., Rest<B>)>`: see \"Per-example gradients\" in the guide"
)]
pub trait NoneReduced<P = ()> {
    #[doc(hidden)]
    const SEAL: crate::seal::Seal;
}

#[diagnostic::do_not_recommend]
impl<P> NoneReduced<P> for () {
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
}

/// The extra dims of a batch. The losses of the examples are independent, so the gradient of each
/// is a part of the gradient of their sum.
#[diagnostic::do_not_recommend]
impl<B: Dims, P: OfEach<B>> NoneReduced<P> for (Rest<B>,) {
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
}

/// The element types of losses: floats.
#[diagnostic::on_unimplemented(
    message = "a loss of type `{Self}` has no gradient",
    label = "only floats have gradients: cast integers before computing with them, `.cast::<f32>()`; indices, as of `argmax`, and counts have none"
)]
pub trait LossElem: Real {
    #[doc(hidden)]
    const SEAL: crate::seal::Seal;
}

#[diagnostic::do_not_recommend]
impl<T: Real> LossElem for T {
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
}
