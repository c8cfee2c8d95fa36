//! Losses.

use crate::error::DimError;
use crate::execute::reduce::{TensorOf, log_softmax};
use crate::expr::operand::Subset;
use crate::expr::{Binary, Operand, Unary};
pub use crate::operators::nn::cross_entropy::{
    ClassTargets, ClassWeights, CrossEntropy, LossRank, Unweighted, WeightedLosses,
};
use crate::operators::nn::cross_entropy::{unfit, weighted_losses};
use crate::operators::select::Take;
use crate::tensors::named::Named;
use crate::tensors::tensor::{AsTensor, Computable, reference};
use crate::types::dim::DimRef;
use crate::types::rank::Rank;
use crate::types::set::{Dims, DimsOf};
use kernels::ops;
use kernels::scalar::{Num, Real, Signed};
use twins::panicking_twin;

/// The elementwise loss `O` of the predictions `A` and the targets `Y`. It has the dims of `A`.
pub type Loss<O, A, Y> = Named<
    <A as AsTensor>::Elem,
    <A as AsTensor>::Dims,
    <<A as AsTensor>::Rank as Rank>::Max<<Y as Operand<<A as AsTensor>::Elem>>::Rank>,
    Binary<O, <A as AsTensor>::Expr, <Y as Operand<<A as AsTensor>::Elem>>::Expr>,
>;

/// The classification loss of the predictions `A` with the targets `I`. It has the dims `X`: those
/// of `A` without the dim of the classes.
pub type ClassLoss<A, I, X> = Named<
    <A as AsTensor>::Elem,
    X,
    <<A as AsTensor>::Rank as Rank>::Max<<I as AsTensor>::Rank>,
    Unary<ops::Neg, Take<A, <I as AsTensor>::Expr>>,
>;

// `self` and the bound of the targets are written on each line of the invocation and not in the
// macro, because rustc quotes the place where they are written.
macro_rules! losses {
    ($($(#[$doc:meta])* $method:ident($this:ident, target) $op:ident [$($target:tt)*] [$bound:ident];)*) => {$(
        $(#[$doc])*
        #[cfg_attr(not(unoptimized), inline(always))]
        fn $method<$($target)*>($this, target: Y) -> Loss<ops::$op, Self, Y>
        where
            Self: Computable<Elem: $bound>,
        {
            elementwise(ops::$op, $this, target)
        }
    )*};
}

#[cfg_attr(not(unoptimized), inline(always))]
fn elementwise<O, A: AsTensor, Y: Operand<A::Elem>>(op: O, predictions: A, targets: Y) -> Loss<O, A, Y> {
    Named::from_expr(Binary { op, a: predictions.into_named().expr, b: targets.into_expr() })
}

/// Losses of predictions `x` with the targets `y`.
///
/// The methods do not reduce over examples: each yields one loss per prediction. Reduce the losses
/// with `.mean(Batch)` or `.sum(Batch)`. The classification losses,
/// [`cross_entropy`](Losses::cross_entropy), [`cross_entropy_with`](Losses::cross_entropy_with) and
/// [`nll_loss`](Losses::nll_loss), have the dims of `x` without that of the classes. The other
/// losses are computed element by element, in the pass that reduces them, and have the dims of `x`.
/// For one loss per example, reduce over its features: `.mean(Feat)`, or `.sum(Class)` for
/// [`kl_div_loss`](Losses::kl_div_loss).
///
/// Targets must not have dims that the losses lack; otherwise every prediction would be compared
/// with every target. They can lack dims of the predictions. For the elementwise losses, the target
/// can be a single number. If predictions and targets have different sizes for a dim, computing the
/// losses is an error.
///
/// ```
/// use typed_dims::prelude::*;
///
/// dims! { struct Batch; struct Feat; struct Class; }
/// let predicted = from_vec((Batch.of(2), Feat.of(2)), vec![1.0, 2.0, 3.0, 4.0]);
/// let wanted = from_vec((Batch.of(2), Feat.of(2)), vec![1.0, 0.0, 3.0, 3.0]);
/// assert_eq!(predicted.mse_loss(&wanted).mean(Feat).order(Batch), ndarray::array![2.0, 0.5]);
///
/// let logits = zeros::<f64, _>((Batch.of(2), Class.of(4)));
/// let labels = from_vec(Batch.of(2), vec![3, 1]);
/// assert_eq!(logits.cross_entropy(Class, &labels).mean(Batch).order(()), f64::ln(4.0));
/// ```
pub trait Losses: AsTensor {
    losses! {
        /// The squared error, `(x - y)^2`.
        mse_loss(self, target) SquaredError [Y: Subset<Self::Elem, Self::Dims>] [Num];
        /// The absolute error, `|x - y|`.
        l1_loss(self, target) AbsoluteError [Y: Subset<Self::Elem, Self::Dims>] [Real];
        /// The binary cross entropy of probabilities `x` and targets `y` from 0 to 1,
        /// `-(y * ln(x) + (1 - y) * ln(1 - x))`. Each logarithm is clamped to at least -100, as in
        /// PyTorch. For logits, use [`bce_with_logits_loss`](Losses::bce_with_logits_loss), which
        /// needs no such limit.
        bce_loss(self, target) Bce [Y: Subset<Self::Elem, Self::Dims>] [Real];
        /// [`bce_loss`](Losses::bce_loss) of `sigmoid(x)`, but without its limit:
        /// `ln(1 + e^x) - x * y`, computed without loss of precision where the sigmoid is near 0 or
        /// 1.
        bce_with_logits_loss(self, target) BceWithLogits [Y: Subset<Self::Elem, Self::Dims>] [Real];
        /// `y * (ln(y) - x)`, and 0 where `y` is 0 and `x` is not NaN. `x` are logarithms of
        /// probabilities, and `y` are probabilities. `.sum(Class)` is the Kullback-Leibler
        /// divergence of the distributions over `Class`: S. Kullback, R. A. Leibler, 1951, "On
        /// information and sufficiency".
        kl_div_loss(self, target) KlDiv [Y: Subset<Self::Elem, Self::Dims>] [Real];
    }

    /// `(x - y)^2 / 2` where `|x - y| <= delta`, and `delta * (|x - y| - delta / 2)` elsewhere.
    /// (P. J. Huber, 1964, "Robust estimation of a location parameter".)
    ///
    /// # Panics
    ///
    /// If `delta` is not greater than 0.
    #[panicking_twin(but = "a `delta` that is not greater than 0 is an error")]
    #[cfg_attr(not(unoptimized), inline(always))]
    fn try_huber_loss<Y: Subset<Self::Elem, Self::Dims>>(
        self,
        target: Y,
        delta: Self::Elem,
    ) -> Result<Loss<ops::Huber<Self::Elem>, Self, Y>, DimError>
    where
        Self: Computable<Elem: Real>,
    {
        if delta > Self::Elem::ZERO {
            Ok(elementwise(ops::Huber(delta), self, target))
        } else {
            Err(unfit("huber_loss", "delta", delta, "it must be greater than 0"))
        }
    }

    /// [`huber_loss`](Losses::huber_loss) with `delta = beta`, divided by `beta`; the absolute
    /// error if `beta` is 0. (R. Girshick, 2015, "Fast R-CNN".)
    ///
    /// # Panics
    ///
    /// If `beta` is negative or NaN.
    #[panicking_twin(but = "a `beta` that is negative or NaN is an error")]
    #[cfg_attr(not(unoptimized), inline(always))]
    fn try_smooth_l1_loss<Y: Subset<Self::Elem, Self::Dims>>(
        self,
        target: Y,
        beta: Self::Elem,
    ) -> Result<Loss<ops::SmoothL1<Self::Elem>, Self, Y>, DimError>
    where
        Self: Computable<Elem: Real>,
    {
        if beta >= Self::Elem::ZERO {
            Ok(elementwise(ops::SmoothL1(beta), self, target))
        } else {
            Err(unfit("smooth_l1_loss", "beta", beta, "it must be 0 or more"))
        }
    }

    /// `-ln(softmax(x)[target])` for unnormalized `x` along the dim `classes`:
    /// `ln(sum over c of e^x[c]) - x[target]`.
    ///
    /// The targets are positions along `classes`. A position that is out of range is an error when
    /// it is read.
    #[panicking_twin]
    fn try_cross_entropy<C: DimRef + DimsOf<Self::Dims, X>, X: Dims, I: ClassTargets<X>>(
        &self,
        classes: C,
        target: I,
    ) -> Result<ClassLoss<TensorOf<Self>, I, X>, DimError>
    where
        Self: Computable<Elem: Real>,
    {
        log_softmax(reference::<Self>(&self.borrowed()), classes)?.try_nll_loss(classes, target)
    }

    /// [`cross_entropy`](Losses::cross_entropy) with [options](CrossEntropy): ignored targets,
    /// class weights, label smoothing.
    ///
    /// With the weight `w[c]` of each class (1 unless weights are given) and the smoothing `e` over
    /// `n` classes, the loss of a prediction is
    /// `(1 - e) * w[target] * -l[target] + e / n * sum over c of w[c] * -l[c]`, where `l` is
    /// `log_softmax(x)`. It is 0 if the target is ignored. [`mean`](WeightedLosses::mean) of the
    /// result divides the sum of the losses by the sum of `w[target]` over the targets that are not
    /// ignored, as `torch.nn.functional.cross_entropy` does.
    ///
    /// ```
    /// use typed_dims::nn::CrossEntropy;
    /// use typed_dims::prelude::*;
    ///
    /// dims! { struct Token; struct Class; }
    /// let logits = zeros::<f64, _>((Token.of(3), Class.of(4)));
    /// let labels = from_vec(Token.of(3), vec![1, 3, -1]);
    /// let losses = logits.cross_entropy_with(Class, &labels, CrossEntropy::new().ignore_index(-1));
    /// assert_eq!(losses.each().view().order(Token), ndarray::array![f64::ln(4.0), f64::ln(4.0), 0.0]);
    /// assert_eq!(losses.mean(Token).order(()), f64::ln(4.0)); // of two tokens
    /// ```
    ///
    /// # Errors
    ///
    /// If sizes differ, a target that is not ignored is out of range, or the smoothing is not
    /// between 0 and 1.
    #[panicking_twin]
    fn try_cross_entropy_with<C, X, I, W>(
        &self,
        classes: C,
        target: I,
        options: CrossEntropy<I::Elem, W>,
    ) -> Result<WeightedLosses<Self::Elem, X, LossRank<Self, I>>, DimError>
    where
        Self: Computable<Elem: Real>,
        C: DimRef + DimsOf<Self::Dims, X>,
        X: Dims,
        I: ClassTargets<X>,
        W: ClassWeights<Self::Elem, C::Brand>,
    {
        weighted_losses(self, classes, target, options)
    }

    /// The negative log likelihood, `-x[target]` along the dim `classes`, where `x` are logarithms
    /// of probabilities.
    ///
    /// The targets are positions along `classes`. A position that is out of range is an error when
    /// it is read.
    #[panicking_twin]
    fn try_nll_loss<C: DimRef + DimsOf<Self::Dims, X>, X: Dims, I: ClassTargets<X>>(
        self,
        classes: C,
        target: I,
    ) -> Result<ClassLoss<Self, I, X>, DimError>
    where
        Self: Computable<Elem: Signed>,
    {
        let taken = Take::by_labels(self, classes, target.into_named().expr)?;
        Ok(Named::from_expr(Unary { op: ops::Neg, a: taken }))
    }
}

impl<A: AsTensor + ?Sized> Losses for A {}
