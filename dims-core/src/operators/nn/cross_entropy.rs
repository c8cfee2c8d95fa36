//! The cross entropy with options: ignored targets, class weights, label smoothing.

use crate::error::{DimError, Origin};
use crate::execute::reduce::{Empty, Reductions, TensorOf, eval, log_softmax, quotient_of_sums, reduce};
use crate::expr::{Binary, Expr, Scalar, Select, Unary};
use crate::operators::select::{Indices, Take};
use crate::plan::shape::Shape;
use crate::storage::Evaluated;
use crate::tensors::named::Named;
use crate::tensors::tensor::{AsTensor, Computable, read_checked, reference};
use crate::types::brand::Brand;
use crate::types::dim::DimRef;
use crate::types::rank::{Rank, Rank0};
use crate::types::set::remove::{Surplus, Within};
use crate::types::set::shared::Covered;
use crate::types::set::{Dims, DimsOf, Fails, FirstWith, NoDim};
use kernels::ops;
use kernels::reduce::reducers;
use kernels::scalar::{Element, IndexInt, Num, Real};
use twins::panicking_twin;

/// Options of [`cross_entropy_with`](super::loss::Losses::cross_entropy_with). `J` is the element
/// type of the targets.
///
/// ```
/// use typed_dims::nn::CrossEntropy;
/// use typed_dims::prelude::*;
///
/// dims! { struct Token; struct Class; }
/// let logits = zeros::<f64, _>((Token.of(3), Class.of(4)));
/// let labels = from_vec(Token.of(3), vec![1, 3, -1]);
/// let weights = from_vec(Class.of(4), vec![1.0, 3.0, 1.0, 1.0]);
///
/// let options = CrossEntropy::new().ignore_index(-1).weights(&weights).label_smoothing(0.1);
/// let losses = logits.cross_entropy_with(Class, &labels, options);
/// assert!((losses.mean(Token).order(()) - 4_f64.ln() * (0.9 + 0.1 * 2.0 * 6.0 / 4.0 / 4.0)).abs() < 1e-12);
///
/// let same = CrossEntropy { label_smoothing: 0.1, ..CrossEntropy::new().ignore_index(-1).weights(&weights) };
/// assert_eq!(logits.cross_entropy_with(Class, &labels, same).each(), losses.each());
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CrossEntropy<J, W = Unweighted> {
    /// Predictions with this target have the loss 0 and do not count in means.
    pub ignore_index: Option<J>,
    /// The share of each target that is spread evenly over all classes, from 0 to 1.
    pub label_smoothing: f64,
    /// The weight of each class: [`Unweighted`], or a tensor with the dim of the classes.
    pub weights: W,
}

/// Gives all classes the weight 1.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Unweighted;

impl<J> CrossEntropy<J> {
    /// The plain cross entropy: no ignored targets, no smoothing, no weights.
    pub fn new() -> Self {
        CrossEntropy { ignore_index: None, label_smoothing: 0.0, weights: Unweighted }
    }
}

impl<J> Default for CrossEntropy<J> {
    fn default() -> Self {
        CrossEntropy::new()
    }
}

impl<J, W> CrossEntropy<J, W> {
    /// Sets the target to ignore.
    #[must_use]
    pub fn ignore_index(self, target: J) -> Self {
        CrossEntropy { ignore_index: Some(target), ..self }
    }

    /// Sets the share of each target that is spread over all classes.
    ///
    /// (C. Szegedy and others, 2016, "Rethinking the Inception architecture for computer vision".)
    #[must_use]
    pub fn label_smoothing(self, share: f64) -> Self {
        CrossEntropy { label_smoothing: share, ..self }
    }

    /// Sets the weight of each class: a tensor whose only dim is that of the classes.
    #[must_use]
    pub fn weights<V>(self, weights: V) -> CrossEntropy<J, V> {
        let CrossEntropy { ignore_index, label_smoothing, .. } = self;
        CrossEntropy { ignore_index, label_smoothing, weights }
    }
}

/// Targets as positions along the dim of the classes, for predictions whose other dims are `X`: a
/// tensor of integers, whose dims are all in `X`.
#[diagnostic::on_unimplemented(
    message = "the elements of `{Self}` cannot be indices",
    label = "a tensor of integers is expected here",
    note = "convert them with `.cast::<usize>()`; an array becomes a tensor when it is bound, `ids.at(i)`"
)]
pub trait ClassTargets<X: Dims>: Indices {
    #[doc(hidden)]
    const SEAL: crate::seal::Seal;
}

impl<I, X> ClassTargets<X> for I
where
    I: Indices + AsTensor<Dims: Dims<List: FirstWith<Fails<Within<X::List>>>>>,
    X: Dims,
    NoDim<Surplus<I::Dims, X>>: Covered<Surplus<I::Dims, X>, X>,
{
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
}

/// Weights of the classes `C`: a tensor of `T` whose only dim is `C`, or [`Unweighted`].
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not have a weight for each class",
    label = "expected a tensor of `{T}` whose only dim is `{C}`, the dim of the classes"
)]
pub trait ClassWeights<T, C: Brand> {
    #[doc(hidden)]
    const SEAL: crate::seal::Seal;
    /// The weights, if there are any. Their number must be `count`, whose origin is `origin`.
    #[doc(hidden)]
    #[track_caller]
    fn evaluate(self, count: usize, origin: Origin) -> Result<Option<Named<T, (C,)>>, DimError>;
}

#[diagnostic::do_not_recommend]
impl<T, C: Brand> ClassWeights<T, C> for Unweighted {
    const SEAL: crate::seal::Seal = crate::seal::SEAL;

    fn evaluate(self, _: usize, _: Origin) -> Result<Option<Named<T, (C,)>>, DimError> {
        Ok(None)
    }
}

#[diagnostic::do_not_recommend]
impl<T, C: Brand, A: Computable<Elem = T, Dims = (C,), Rank = Rank0>> ClassWeights<T, C> for A {
    const SEAL: crate::seal::Seal = crate::seal::SEAL;

    fn evaluate(self, count: usize, origin: Origin) -> Result<Option<Named<T, (C,)>>, DimError> {
        // (`Take` does not compare the number of weights with the number of classes.)
        let (weights, mut shape) = (self.into_named(), Shape::new::<(C,), Rank0>());
        shape.unify(0, count, origin)?;
        weights.unify(&mut shape)?;
        eval(weights).map(Some)
    }
}

/// The rank of losses: the greater of the ranks of the predictions and the targets.
pub type LossRank<A, I> = <<A as AsTensor>::Rank as Rank>::Max<<I as AsTensor>::Rank>;

/// A loss for each prediction, and its weight in a mean.
#[derive(Clone, Debug)]
pub struct WeightedLosses<T: Element, X: Dims, R: Rank = Rank0> {
    each: Named<T, X, R>,
    weights: Named<T, X, R>,
}

impl<T: Real, X: Dims, R: Rank> WeightedLosses<T, X, R> {
    /// The weighted loss of each prediction: PyTorch's `reduction='none'`.
    pub fn each(&self) -> &Named<T, X, R> {
        &self.each
    }

    /// The weight of each prediction: that of the target class, or 0 if the target is ignored.
    pub fn weights(&self) -> &Named<T, X, R> {
        &self.weights
    }

    /// The sum of the losses along these dims: PyTorch's `reduction='sum'`.
    ///
    /// # Panics
    ///
    /// If a size given with a dim differs from its size in the losses.
    #[panicking_twin]
    pub fn try_sum<D: DimsOf<X, Y>, Y: Dims>(&self, dims: D) -> Result<Named<T, Y, R>, DimError> {
        self.each.try_sum(dims)
    }

    /// The weighted mean along these dims: the sum of the losses divided by the sum of their
    /// weights. This is PyTorch's mean. It is NaN if all targets are ignored.
    ///
    /// # Panics
    ///
    /// If a size given with a dim differs from its size in the losses.
    #[panicking_twin]
    pub fn try_mean<D: DimsOf<X, Y>, Y: Dims>(&self, dims: D) -> Result<Named<T, Y, R>, DimError> {
        let each = read_checked(&self.each, &dims)?;
        quotient_of_sums::<Named<T, X, R>, D, Y>(&*each, &self.weights.expr)
    }
}

/// See [`Losses::try_cross_entropy_with`](super::loss::Losses::try_cross_entropy_with).
#[track_caller]
pub(super) fn weighted_losses<A, C, X, I, W>(
    predictions: &A,
    classes: C,
    target: I,
    options: CrossEntropy<I::Elem, W>,
) -> Result<WeightedLosses<A::Elem, X, LossRank<A, I>>, DimError>
where
    A: Computable<Elem: Real>,
    C: DimRef + DimsOf<A::Dims, X>,
    X: Dims,
    I: ClassTargets<X>,
    W: ClassWeights<A::Elem, C::Brand>,
{
    let CrossEntropy { ignore_index, label_smoothing, weights } = options;
    if !(0.0..=1.0).contains(&label_smoothing) {
        return Err(unfit("cross_entropy", "label smoothing", label_smoothing, "it must be between 0 and 1"));
    }
    let (predictions, target) = (predictions.borrowed(), target.into_named());
    let predictions = reference::<A>(&predictions);
    // The sizes are unified here, because a message about sizes of intermediate results could not
    // say where the operands come from.
    let mut shape = Shape::new::<A::Dims, LossRank<A, I>>();
    predictions.expr.unify::<A::Dims, LossRank<A, I>>(&mut shape)?;
    target.expr.unify::<A::Dims, LossRank<A, I>>(&mut shape)?;
    shape.finish()?;
    let at = A::Dims::KEYS.position(&classes.info().key()).expect("the predictions have the classes");
    let (count, origin) = shape.known(at);
    let weights = weights.evaluate(count, origin)?;
    let logs: TensorOf<A> = log_softmax(predictions, classes)?;
    let target = eval(target)?;
    let counted = eval(counted(&target, ignore_index))?;
    let index = eval(where_counted(&counted, &target.expr, I::Elem::default()))?;
    let weight = match &weights {
        Some(weights) => {
            let own = Take::by_labels(weights.clone(), classes, &index.expr)?;
            eval(where_counted(&counted, own, A::Elem::ZERO))?
        }
        None => eval(where_counted(&counted, Scalar(A::Elem::ONE), A::Elem::ZERO))?,
    };
    let taken = Unary { op: ops::Neg, a: Take::by_labels(logs.clone(), classes, &index.expr)? };
    let own = eval(LossOf::<A, X, I, _>::from_expr(Binary { op: ops::Mul, a: taken, b: &weight.expr }))?;
    // (The weights may lack dims of the losses, so they are broadcast.)
    let is_loss = Binary { op: ops::Eq, a: &own.expr, b: &own.expr };
    let all = Select { cond: is_loss, a: &weight.expr, b: &weight.expr };
    let weights_of_all = eval(LossOf::<A, X, I, _>::from_expr(all))?;
    let each = if label_smoothing == 0.0 {
        own
    } else {
        let spread = mean_of_logs::<A, C, X>(&logs, weights.as_ref().map(|weights| &weights.expr))?;
        let share = |share: f64| Scalar(number::<A::Elem>(share));
        eval(LossOf::<A, X, I, _>::from_expr(Binary {
            op: ops::Sub,
            a: Binary { op: ops::Mul, a: own.expr, b: share(1.0 - label_smoothing) },
            b: Binary { op: ops::Mul, a: spread.expr, b: share(label_smoothing) },
        }))?
    };
    // (A product with the weight 0 can be NaN.)
    let zero = Scalar(A::Elem::ZERO);
    let each = LossOf::<A, X, I, _>::from_expr(Select { cond: &counted.expr, a: each.expr, b: zero });
    Ok(WeightedLosses { each: eval(each)?, weights: weights_of_all })
}

/// A tensor with one element for each prediction.
type LossOf<A, X, I, E = Evaluated<<A as AsTensor>::Elem, X, LossRank<A, I>>> =
    Named<<A as AsTensor>::Elem, X, LossRank<A, I>, E>;

/// Which targets are not ignored.
fn counted<T: IndexInt, S: Dims, R: Rank>(
    target: &Named<T, S, R>,
    ignored: Option<T>,
) -> impl Computable<Elem = bool, Dims = S, Rank = R> {
    let is_any = ignored.is_none();
    let other = Binary { op: ops::Ne, a: &target.expr, b: Scalar(ignored.unwrap_or_default()) };
    Named::<bool, S, R, _>::from_expr(Binary { op: ops::Or, a: other, b: Scalar(is_any) })
}

/// `value` where targets count, `other` elsewhere.
fn where_counted<'e, T: Element, S: Dims, R: Rank, E: Expr<Elem = T> + 'e>(
    counted: &'e Named<bool, S, R>,
    value: E,
    other: T,
) -> impl Computable<Elem = T, Dims = S, Rank = R> + 'e {
    Named::<T, S, R, _>::from_expr(Select { cond: &counted.expr, a: value, b: Scalar(other) })
}

/// The mean, over the classes, of the logarithms times their weights. (The sum can be too large for
/// half precisions.)
#[track_caller]
fn mean_of_logs<A, C, X>(
    logs: &TensorOf<A>,
    weights: Option<&Evaluated<A::Elem, (C::Brand,), Rank0>>,
) -> Result<Named<A::Elem, X, A::Rank>, DimError>
where
    A: Computable<Elem: Real>,
    C: DimRef + DimsOf<A::Dims, X>,
    X: Dims,
{
    match weights {
        Some(weights) => {
            let product = Binary { op: ops::Mul, a: &logs.expr, b: weights };
            let product = eval(Named::<A::Elem, A::Dims, A::Rank, _>::from_expr(product))?;
            reduce::<TensorOf<A>, C, X, _>(&product.expr, reducers::Mean, Empty::Allowed)
        }
        None => reduce::<TensorOf<A>, C, X, _>(&logs.expr, reducers::Mean, Empty::Allowed),
    }
}

/// Converts a number to the element type.
fn number<T: Real>(value: f64) -> T {
    T::from(value).expect("an `f64` can be rounded to any float type")
}

/// The error for a setting that is out of range.
#[cold]
pub(super) fn unfit<T: Real>(loss: &str, setting: &str, value: T, range: &str) -> DimError {
    DimError::Shape { what: format!("`{loss}` with the {setting} {value:?}: {range}") }
}
