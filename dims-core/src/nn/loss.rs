//! Losses of classes. (Losses of each element by itself, such as `mse_loss`, are [elementwise](crate::elementwise::Elementwise).)

use crate::dim::DimRef;
use crate::error::{DimError, unwrap};
use crate::expr::{Take, Unary};
use crate::named::Named;
use crate::ops;
use crate::rank::Rank;
use crate::reduce::{Evaluated, Reductions};
use crate::scalar::{Real, Signed};
use crate::select::Indices;
use crate::set::{Dims, DimsOf, Union};
use crate::tensor::{AsTensor, Computable};

/// A loss for each target: the dims `X` of the predictions but the classes, and those of the targets `I`.
pub type ClassLoss<A, I, X> = Named<
    <A as AsTensor>::Elem,
    <X as Union<<I as AsTensor>::Dims>>::Out,
    <<A as AsTensor>::Rank as Rank>::Max<<I as AsTensor>::Rank>,
    Unary<ops::Neg, Take<A, <I as AsTensor>::Expr>>,
>;

/// Losses of predicted classes. Each yields a loss for every prediction, lazily; `.mean(Batch)` makes one number of them, in one pass.
///
/// ```text
/// logits.cross_entropy(Class, &labels).mean(Batch)
/// ```
pub trait ClassLosses: Computable {
    /// `-ln(softmax(x)[target])` for unnormalised `x` along the dim `classes`: `ln(sum over c of e^x[c]) - x[target]`.
    ///
    /// The targets are positions along `classes`, and do not have that dim themselves. A position that is out of range is an error where it
    /// is read.
    ///
    /// # Panics
    ///
    /// Where [`try_cross_entropy`](ClassLosses::try_cross_entropy) returns an error.
    #[track_caller]
    fn cross_entropy<C: DimRef + DimsOf<Self::Dims, X>, X: Dims + Union<I::Dims>, I: Indices>(
        self,
        classes: C,
        target: I,
    ) -> ClassLoss<Evaluated<Self>, I, X>
    where
        Self::Elem: Real,
    {
        unwrap(self.try_cross_entropy(classes, target))
    }

    /// As [`cross_entropy`](ClassLosses::cross_entropy), but what sizes decide is an error.
    fn try_cross_entropy<C: DimRef + DimsOf<Self::Dims, X>, X: Dims + Union<I::Dims>, I: Indices>(
        self,
        classes: C,
        target: I,
    ) -> Result<ClassLoss<Evaluated<Self>, I, X>, DimError>
    where
        Self::Elem: Real,
    {
        self.try_log_softmax(classes)?.try_nll_loss(classes, target)
    }

    /// `-x[target]` along the dim `classes`, for `x` that are logarithms of probabilities: the negative log likelihood.
    ///
    /// # Panics
    ///
    /// Where [`try_nll_loss`](ClassLosses::try_nll_loss) returns an error.
    #[track_caller]
    fn nll_loss<C: DimRef + DimsOf<Self::Dims, X>, X: Dims + Union<I::Dims>, I: Indices>(
        self,
        classes: C,
        target: I,
    ) -> ClassLoss<Self, I, X>
    where
        Self::Elem: Signed,
    {
        unwrap(self.try_nll_loss(classes, target))
    }

    /// As [`nll_loss`](ClassLosses::nll_loss), but what sizes decide is an error.
    fn try_nll_loss<C: DimRef + DimsOf<Self::Dims, X>, X: Dims + Union<I::Dims>, I: Indices>(
        self,
        classes: C,
        target: I,
    ) -> Result<ClassLoss<Self, I, X>, DimError>
    where
        Self::Elem: Signed,
    {
        let taken = Take::new(self, classes, target.into_named().expr)?;
        Ok(Named::from_expr(Unary { op: ops::Neg, a: taken }))
    }
}

impl<A: Computable> ClassLosses for A {}
