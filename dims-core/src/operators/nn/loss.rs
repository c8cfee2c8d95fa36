//! Losses of classes. (Losses of each element by itself, such as `mse_loss`, are [elementwise](crate::elementwise::Elementwise).)

use crate::dim::DimRef;
use crate::error::{DimError, unwrap};
use crate::expr::Unary;
use crate::named::Named;
use crate::rank::Rank;
use crate::reduce::{Evaluated, log_softmax};
use crate::select::Indices;
use crate::select::Take;
use crate::set::shared::Beyond;
use crate::set::{Dims, DimsOf, NoDim, True, Union};
use crate::tensor::{AsTensor, Computable, reference};
use kernels::ops;
use kernels::scalar::{Real, Signed};

/// A loss for each target: the dims `X` of the predictions but the classes, and those of the targets `I`.
pub type ClassLoss<A, I, X> = Named<
    <A as AsTensor>::Elem,
    <X as Union<<I as AsTensor>::Dims>>::Out,
    <<A as AsTensor>::Rank as Rank>::Max<<I as AsTensor>::Rank>,
    Unary<ops::Neg, Take<A, <I as AsTensor>::Expr>>,
>;

/// Targets, as positions along the dim of the classes, for predictions whose other dims are `X`: the targets have no dims but these.
#[diagnostic::on_unimplemented(
    message = "the elements of `{Self}` cannot be indices",
    label = "a tensor of integers is expected here",
    note = "convert them with `.cast::<usize>()`; an array becomes a tensor when it is bound, `ids.at(i)`"
)]
pub trait TargetsOf<X: Dims>: Indices {}

impl<I, X> TargetsOf<X> for I
where
    I: Indices + AsTensor<Dims: Dims<List: Beyond<X::List>>>,
    X: Dims,
    NoDim<Surplus<I, X>>: Targeted<Surplus<I, X>, X>,
{
}

/// The first dim of the targets that is not in `X`, or [`Nothing`](crate::set::Nothing).
type Surplus<I, X> = <<<I as AsTensor>::Dims as Dims>::List as Beyond<<X as Dims>::List>>::Found;

/// The condition that the targets have no dim besides those of the predictions.
#[diagnostic::on_unimplemented(
    message = "dimension `{D}` of the targets is not bound in predictions with dims `{X}` beside the classes",
    label = "the predictions lack `{D}`; where this is another name of one of their dims: `targets.rename({D}, ..)`"
)]
pub trait Targeted<D, X> {}
#[diagnostic::do_not_recommend]
impl<D, X> Targeted<D, X> for True {}

/// Losses of predicted classes. Each yields a loss for every prediction, lazily; `.mean(Batch)` makes one number of them, in one pass.
///
/// ```text
/// logits.cross_entropy(Class, &labels).mean(Batch)
/// ```
pub trait ClassLosses: Computable {
    /// `-ln(softmax(x)[target])` for unnormalised `x` along the dim `classes`: `ln(sum over c of e^x[c]) - x[target]`.
    ///
    /// The targets are positions along `classes`. Their dims are among the other dims of `x`: a dim that `x` lacks would make a loss of
    /// every prediction with every target. A position that is out of range is an error where it is read.
    ///
    /// # Panics
    ///
    /// Where [`try_cross_entropy`](ClassLosses::try_cross_entropy) returns an error.
    #[track_caller]
    fn cross_entropy<C: DimRef + DimsOf<Self::Dims, X>, X: Dims + Union<I::Dims>, I: TargetsOf<X>>(
        &self,
        classes: C,
        target: I,
    ) -> ClassLoss<Evaluated<Self>, I, X>
    where
        Self::Elem: Real,
    {
        unwrap(self.try_cross_entropy(classes, target))
    }

    /// As [`cross_entropy`](ClassLosses::cross_entropy), but what sizes decide is an error.
    fn try_cross_entropy<C: DimRef + DimsOf<Self::Dims, X>, X: Dims + Union<I::Dims>, I: TargetsOf<X>>(
        &self,
        classes: C,
        target: I,
    ) -> Result<ClassLoss<Evaluated<Self>, I, X>, DimError>
    where
        Self::Elem: Real,
    {
        log_softmax(reference::<Self>(&self.borrowed()), classes)?.try_nll_loss(classes, target)
    }

    /// `-x[target]` along the dim `classes`, for `x` that are logarithms of probabilities: the negative log likelihood.
    ///
    /// # Panics
    ///
    /// Where [`try_nll_loss`](ClassLosses::try_nll_loss) returns an error.
    #[track_caller]
    fn nll_loss<C: DimRef + DimsOf<Self::Dims, X>, X: Dims + Union<I::Dims>, I: TargetsOf<X>>(
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
    fn try_nll_loss<C: DimRef + DimsOf<Self::Dims, X>, X: Dims + Union<I::Dims>, I: TargetsOf<X>>(
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
