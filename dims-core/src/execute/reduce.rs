//! Methods for reductions and scans.

mod along;
mod combine;
mod cosine;
mod differences;
mod nan;
mod sum;
mod wide;

use crate::error::{DimError, unwrap};
use crate::expr::Expr;
use crate::expr::evaluate::{eval_unplanned, evaluate_tensor, evaluate_tensor_in, evaluate_unrecorded};
use crate::expr::step::ExprStep;
use crate::plan::axes::AxisList;
use crate::plan::shape::Shape;
use crate::storage::Evaluated;
use crate::tensors::named::Named;
use crate::tensors::tensor::{AsTensor, Computable, Evaluable, NamedOf, Truths, checked, read_checked};
use crate::types::dim::DimRef;
use crate::types::rank::Rank;
use crate::types::set::{Dims, DimsOf};
use crate::types::size::Resizable;
use core::marker::PhantomData;
use differences::differences;
use kernels::loops::axes::Order;
use kernels::reduce::reducers;
use kernels::scalar::*;
use kernels::scan;
use nan::{extremum_of_numbers, mean_of_numbers, sum_of_numbers, variance_of_numbers};
use num_traits::Float;
use twins::panicking_twin;

pub(crate) use along::{along, along_axes, log_softmax};
pub(crate) use combine::{Empty, combined, fused, product_dims, reduce, reduced_in};
pub(crate) use cosine::cosine;
pub(crate) use sum::{TwoFactors, contracted_but, factors_of, is_product, sum, sum_of_factors};
pub(crate) use wide::{WideOf, is_half, narrowed, quotient_of_sums, widened};

/// The result of reducing a tensor `A`: a tensor of `U` with the remaining dims `X`.
pub type Reduced<U, A, X> = Named<U, X, <A as AsTensor>::Rank>;

/// A tensor with the dims of `A` that owns its elements.
pub type TensorOf<A> = Named<<A as AsTensor>::Elem, <A as AsTensor>::Dims, <A as AsTensor>::Rank>;

/// [`Reductions::try_eval`] without the bound that each dim has a size.
#[inline]
#[track_caller]
pub(crate) fn eval<A: Computable>(tensor: A) -> Result<TensorOf<A>, DimError> {
    match eval_unplanned(tensor.into_named().expr) {
        Ok(data) => Ok(Named::from_expr(data)),
        Err(expr) => eval_planned(NamedOf::<A>::from_expr(expr)),
    }
}

/// The values of a tensor, as a constant for gradients.
#[track_caller]
fn detached<A: Computable>(tensor: A) -> Result<TensorOf<A>, DimError> {
    let tensor = tensor.into_named();
    let shape = tensor.unified_shape()?;
    let order = AxisList::in_memory_of::<A::Dims, A::Rank>().as_slice();
    let step = ExprStep::of_recorded::<A::Elem, A::Dims, A::Rank, A::Expr>(&tensor.expr, &shape)?;
    let scope = step.scope();
    let data = evaluate_unrecorded::<A::Dims, A::Rank, _>(tensor.expr, &shape, order)?;
    drop(scope);
    let data = step.detach(data, order);
    Ok(Named::from_expr(Evaluated::laid_out(data, &shape.sizes_in(order))))
}

/// [`Reductions::try_eval`], by the general path.
#[track_caller]
fn eval_planned<T: Element, S: Dims, R: Rank, E: Expr<Elem = T>>(
    tensor: Named<T, S, R, E>,
) -> Result<Named<T, S, R>, DimError> {
    // (Not by `unified_shape`, which would move the shape through its `Result`.)
    let mut shape = Shape::new::<S, R>();
    tensor.unify(&mut shape)?;
    Ok(Named::from_expr(evaluate_tensor::<S, R, _>(tensor.expr, &shape)?))
}

// The bound of the dims is on each line, not in the macro, because rustc quotes it.
macro_rules! reductions {
    ($($(#[$doc:meta])* $try_name:ident [$($dims:tt)*] [$($bound:tt)*] $out:ty, $reducer:expr, $empty:expr;)*) => {$(
        $(#[$doc])*
        #[panicking_twin]
        #[inline]
        fn $try_name<$($dims)*>(&self, dims: D) -> Result<Reduced<$out, Self, X>, DimError>
        where
            Self: Evaluable<Elem: $($bound)*>,
        {
            reduce::<Self, D, X, _>(&*read_checked(self, &dims)?, $reducer, $empty)
        }
    )*};
}

macro_rules! nan_reductions {
    ($($(#[$doc:meta])* $name:ident $try_name:ident |$expr:ident| $body:expr;)*) => {$(
        $(#[$doc])*
        ///
        /// # Panics
        ///
        /// If the `try_` form returns an error.
        #[track_caller]
        fn $name<D: DimsOf<Self::Dims, X>, X: Dims>(&self, dims: D) -> Reduced<Self::Elem, Self, X>
        where
            Self: Evaluable<Elem: Real>,
        {
            unwrap(self.$try_name(dims))
        }

        #[doc = concat!("Like [`", stringify!($name), "`](Reductions::", stringify!($name), "), but sizes that do not match are an error.")]
        #[track_caller]
        fn $try_name<D: DimsOf<Self::Dims, X>, X: Dims>(
            &self,
            dims: D,
        ) -> Result<Reduced<Self::Elem, Self, X>, DimError>
        where
            Self: Evaluable<Elem: Real>,
        {
            let $expr = &*read_checked(self, &dims)?;
            $body
        }
    )*};
}

// The bound of the dim and `self` are on each line, not in the macro, because rustc quotes them.
macro_rules! scans {
    ($($(#[$doc:meta])* $try_name:ident($this:ident, dim) [$($dim:tt)*] [$bound:ident] $work:expr;)*) => {$(
        $(#[$doc])*
        #[panicking_twin]
        fn $try_name<$($dim)*>($this, dim: D) -> Result<TensorOf<Self>, DimError>
        where
            Self: Evaluable<Elem: $bound>,
        {
            along::<_, D, _>(checked($this, &dim)?, $work)
        }
    )*};
}

/// Operations along dims, for tensors and references to tensors.
///
/// `dims` is a dim or a tuple of dims; the result of a reduction has the other dims, `X`, which
/// rustc infers. A reduction runs immediately, and borrows the tensor. Unless it is a contraction
/// (see [`sum`](Reductions::sum)) or skips NaN, it is one pass over the whole expression, whose
/// elements are not stored. Operations whose result is as large as the tensor take it by value, so
/// that they can reuse its memory.
///
/// ```
/// use typed_dims::prelude::*;
///
/// let a = ndarray::array![[3.0, 1.0], [2.0, 6.0]];
/// dims!(i, j);
/// let x = a.at((i, j));
/// assert_eq!(x.max(j).order(i), ndarray::array![3.0, 6.0]);
/// assert_eq!(x.argmax(j).order(i), ndarray::array![0, 1]);
/// assert_eq!((x - x.mean(j)).abs().sum((i, j)).order(()), 6.0);
/// assert!(x.gt(0.0).all((i, j)).order(()));
/// ```
///
/// `nansum` and the other methods that begin with `nan` treat NaN as a missing number, and skip it.
/// All except `nansum` take several passes over the expression. To count the elements that are not
/// NaN, write `(!x.is_nan()).count(Day)`.
///
/// ```
/// use typed_dims::prelude::*;
///
/// dims! { struct Row; struct Day; }
/// let x = from_vec((Row.of(2), Day.of(3)), vec![1.0, f64::NAN, 3.0, f64::NAN, 5.0, 5.0]);
/// assert_eq!(x.nansum(Day).order(Row), ndarray::array![4.0, 10.0]);
/// assert_eq!(x.nanmean(Day).order(Row), ndarray::array![2.0, 5.0]);
/// assert_eq!(x.nanmax(Day).order(Row), ndarray::array![3.0, 5.0]);
/// assert_eq!(x.nanstd(Day).order(Row), ndarray::array![1.0, 0.0]);
/// ```
///
/// In the result of a scan, each element depends on the elements up to its position along a dim.
/// Scans and `diff` run immediately, and their results have the dims of the tensor.
///
/// ```text
/// x           3 1 4 1 5
/// cumsum      3 4 8 9 14
/// cumprod     3 3 12 12 60
/// cummax      3 3 4 4 5
/// diff        -2 3 -3 4
/// ```
pub trait Reductions: AsTensor {
    /// The sum: `out[..] = sum over dims of x[.., dims]`; 0 without elements.
    ///
    /// A product of tensors is contracted if that saves work: `(a * b).sum(k)` is a matrix product
    /// if `a` and `b` both have `k` and each has a dim that the other lacks. A product of more
    /// tensors is contracted pair by pair. A factor without the summed dims may be multiplied in
    /// after the sum, so the sum of the other factors can overflow: store the product (`eval`) to
    /// avoid this. Integers wrap around. Floats are summed pairwise, except inside matrix products,
    /// whose kernels add in the order of their blocks.
    /// [`sum_into`](crate::execute::order::OrderExt::sum_into) writes to an existing array.
    ///
    /// ```
    /// use typed_dims::prelude::*;
    ///
    /// let (a, b) = (ndarray::array![[1.0, 2.0], [3.0, 4.0]], ndarray::array![[0.5], [1.0]]);
    /// dims!(i, j, k);
    /// assert_eq!(a.at((i, k)).sum(k).order(i), ndarray::array![3.0, 7.0]);
    /// assert_eq!((a.at((i, k)) * b.at((k, j))).sum(k).order((i, j)), ndarray::array![[2.5], [5.5]]); // a @ b
    /// ```
    #[panicking_twin]
    #[cfg_attr(not(unoptimized), inline(always))]
    #[rustfmt::skip] // rustc quotes the next line in errors
    fn try_sum<D: DimsOf<Self::Dims, X>, X: Dims>(&self, dims: D) -> Result<Reduced<Self::Elem, Self, X>, DimError> where Self: Evaluable<Elem: Num> {
        sum::<Self, D, X>(&*read_checked(self, &dims)?)
    }

    reductions! {
        /// The product; 1 without elements.
        try_prod [D: DimsOf<Self::Dims, X>, X: Dims] [Num] Self::Elem, reducers::Prod, Empty::Allowed;
        /// The mean, `sum / count`; NaN without elements.
        try_mean [D: DimsOf<Self::Dims, X>, X: Dims] [Analytic] Self::Elem, reducers::Mean, Empty::Allowed;
        /// The largest element; NaN if any element is NaN. It is an error if there are no elements.
        try_max [D: DimsOf<Self::Dims, X>, X: Dims] [Ordered] Self::Elem, reducers::Max, Empty::Refused("max");
        /// The smallest element; NaN if any element is NaN. It is an error if there are no
        /// elements.
        try_min [D: DimsOf<Self::Dims, X>, X: Dims] [Ordered] Self::Elem, reducers::Min, Empty::Refused("min");
        /// The index of the first occurrence of the largest element, or of the first NaN if there
        /// is any. For a tuple of dims, the index is row-major over the tuple. It is an error if
        /// there are no elements.
        try_argmax [D: DimsOf<Self::Dims, X>, X: Dims] [Ordered] usize, reducers::ArgExtremum::<true>, Empty::Refused("argmax");
        /// Like [`argmax`](Reductions::argmax), for the smallest element.
        try_argmin [D: DimsOf<Self::Dims, X>, X: Dims] [Ordered] usize, reducers::ArgExtremum::<false>, Empty::Refused("argmin");
        /// The variance of a whole population, `mean of (x - mean)^2`; see
        /// [`var_with`](Reductions::var_with) for the variance of a sample.
        try_var [D: DimsOf<Self::Dims, X>, X: Dims] [Real] Self::Elem, reducers::Variance { ddof: Num::ZERO, root: false }, Empty::Allowed;
        /// The standard deviation, the square root of the variance.
        try_std [D: DimsOf<Self::Dims, X>, X: Dims] [Real] Self::Elem, reducers::Variance { ddof: Num::ZERO, root: true }, Empty::Allowed;
        /// `ln(sum of e^x)`, without overflow; minus infinity without elements.
        try_logsumexp [D: DimsOf<Self::Dims, X>, X: Dims] [Real] Self::Elem, reducers::LogSumExp(PhantomData), Empty::Allowed;
    }

    /// Whether any element is true; false without elements.
    #[panicking_twin]
    fn try_any<D: DimsOf<Self::Dims, X>, X: Dims>(&self, dims: D) -> Result<Reduced<bool, Self, X>, DimError>
    where
        Self: Evaluable + Truths,
    {
        reduce::<Self, D, X, _>(&*read_checked(self, &dims)?, reducers::Any, Empty::Allowed)
    }

    /// Whether all elements are true; true without elements.
    #[panicking_twin]
    fn try_all<D: DimsOf<Self::Dims, X>, X: Dims>(&self, dims: D) -> Result<Reduced<bool, Self, X>, DimError>
    where
        Self: Evaluable + Truths,
    {
        reduce::<Self, D, X, _>(&*read_checked(self, &dims)?, reducers::All, Empty::Allowed)
    }

    /// The number of elements that are true.
    #[panicking_twin]
    fn try_count<D: DimsOf<Self::Dims, X>, X: Dims>(
        &self,
        dims: D,
    ) -> Result<Reduced<usize, Self, X>, DimError>
    where
        Self: Evaluable + Truths,
    {
        reduce::<Self, D, X, _>(&*read_checked(self, &dims)?, reducers::Count, Empty::Allowed)
    }

    /// The variance with `ddof` subtracted from the count:
    /// `sum of (x - mean)^2 / max(count - ddof, 0)`. A `ddof` of 1 gives the unbiased estimate for a
    /// sample.
    #[panicking_twin]
    fn try_var_with<D: DimsOf<Self::Dims, X>, X: Dims>(
        &self,
        dims: D,
        ddof: Self::Elem,
    ) -> Result<Reduced<Self::Elem, Self, X>, DimError>
    where
        Self: Evaluable<Elem: Real>,
    {
        reduce::<Self, D, X, _>(
            &*read_checked(self, &dims)?,
            reducers::Variance { ddof, root: false },
            Empty::Allowed,
        )
    }

    /// `e^x / sum over dims of e^x`, without overflow: over one dim, or over all of a tuple of dims
    /// at once.
    ///
    /// ```
    /// use typed_dims::prelude::*;
    ///
    /// dims! { struct Row; struct Class = 2; }
    /// let logits = from_vec((Row.of(2), Class), vec![0.0, 0.0, 1000.0, 0.0]);
    /// assert_eq!((&logits).softmax(Class).order((Row, Class)), ndarray::array![[0.5, 0.5], [1.0, 0.0]]);
    /// assert_eq!(logits.softmax((Row, Class)).order((Row, Class)), ndarray::array![[0.0, 0.0], [1.0, 0.0]]);
    /// ```
    #[panicking_twin]
    fn try_softmax<D: DimsOf<Self::Dims, X>, X: Dims>(self, dims: D) -> Result<TensorOf<Self>, DimError>
    where
        Self: Evaluable<Elem: Real>,
    {
        along::<_, D, _>(checked(self, &dims)?, scan::Softmax::<false>)
    }

    /// `x - ln(sum over dims of e^x)`, over one dim or a tuple of dims: the logarithm of the
    /// softmax, without loss of precision for small values.
    #[panicking_twin]
    fn try_log_softmax<D: DimsOf<Self::Dims, X>, X: Dims>(self, dims: D) -> Result<TensorOf<Self>, DimError>
    where
        Self: Evaluable<Elem: Real>,
    {
        log_softmax(self, dims)
    }

    nan_reductions! {
        /// The sum of the elements that are not NaN, or 0 if all are NaN.
        nansum try_nansum |expr| sum_of_numbers::<Self, D, X>(&expr);
        /// The mean of the elements that are not NaN, or NaN if all are NaN.
        nanmean try_nanmean |expr| mean_of_numbers::<Self, D, X>(expr);
        /// The greatest element that is not NaN, or NaN if all are NaN. It is an error if there are
        /// no elements.
        nanmax try_nanmax |expr| {
            extremum_of_numbers::<Self, D, X, _>(expr, Self::Elem::neg_infinity(), reducers::Max, "nanmax")
        };
        /// The least element that is not NaN, or NaN if all are NaN. It is an error if there are no
        /// elements.
        nanmin try_nanmin |expr| {
            extremum_of_numbers::<Self, D, X, _>(expr, Self::Elem::infinity(), reducers::Min, "nanmin")
        };
        /// The variance of the elements that are not NaN, `mean of (x - mean)^2`, or NaN if all are
        /// NaN.
        nanvar try_nanvar |expr| variance_of_numbers::<Self, D, X, false>(expr);
        /// The standard deviation of the elements that are not NaN, the square root of
        /// [`nanvar`](Reductions::nanvar).
        nanstd try_nanstd |expr| variance_of_numbers::<Self, D, X, true>(expr);
    }

    scans! {
        /// The running sum along a dim: `out[i] = x[0] + .. + x[i]`.
        try_cumsum(self, dim) [D: DimRef + DimsOf<Self::Dims, X>, X: Dims] [Num] scan::Cumulate;
        /// The running product along a dim: `out[i] = x[0] * .. * x[i]`.
        try_cumprod(self, dim) [D: DimRef + DimsOf<Self::Dims, X>, X: Dims] [Num] scan::CumulateProduct;
        /// The greatest element so far: `out[i] = max(x[0], .., x[i])`; NaN from the first NaN on.
        try_cummax(self, dim) [D: DimRef + DimsOf<Self::Dims, X>, X: Dims] [Ordered] scan::CumulateBest::<true>;
        /// The least element so far: `out[i] = min(x[0], .., x[i])`; NaN from the first NaN on.
        try_cummin(self, dim) [D: DimRef + DimsOf<Self::Dims, X>, X: Dims] [Ordered] scan::CumulateBest::<false>;
        /// `out[i] = ln(e^x[0] + .. + e^x[i])`, without overflow.
        try_logcumsumexp(self, dim) [D: DimRef + DimsOf<Self::Dims, X>, X: Dims] [Real] scan::CumulateLogSumExp;
    }

    /// The differences of neighbors along a dim, `out[i] = x[i + 1] - x[i]`. The result has one
    /// element fewer along this dim. An empty dim stays empty.
    #[panicking_twin]
    fn try_diff<D: DimRef + DimsOf<Self::Dims, X> + Resizable, X: Dims>(
        self,
        dim: D,
    ) -> Result<TensorOf<Self>, DimError>
    where
        Self: Evaluable<Elem: Num>,
    {
        differences::<Self, D>(self, dim)
    }

    /// Computes and stores the elements. In memory, the dims of a `Rest` come first, then the other
    /// dims in the order of the set, then the positional axes.
    ///
    /// ```
    /// use typed_dims::prelude::*;
    ///
    /// let a = ndarray::array![1.0, 2.0];
    /// dims!(i);
    /// let squares = (a.at(i) * a.at(i)).eval();           // runs here, once
    /// assert_eq!((&squares + &squares).order(i), ndarray::array![2.0, 8.0]);
    /// ```
    ///
    /// # Panics
    ///
    /// If the sizes of operands conflict, an index is out of range, or the result does not fit into
    /// memory.
    #[panicking_twin]
    #[cfg_attr(not(unoptimized), inline(always))]
    #[rustfmt::skip] // rustc quotes the next line in errors
    fn try_eval(self) -> Result<TensorOf<Self>, DimError> where Self: Evaluable {
        eval(self)
    }

    /// The values of the tensor as a new tensor that is a constant for gradients.
    ///
    /// ```
    /// use typed_dims::grad::grad;
    /// use typed_dims::prelude::*;
    ///
    /// dims! { pub struct In; }
    /// let x = from_vec(In.of(2), vec![1.0, 2.0]);
    /// let dx = grad(|x| (x.detach() * x).sum(In), &x);            // not 2 x
    /// assert_eq!(dx.order(In), ndarray::array![1.0, 2.0]);
    /// ```
    ///
    /// # Panics
    ///
    /// If the sizes of operands conflict, an index is out of range, or the result does not fit into
    /// memory.
    #[panicking_twin]
    #[rustfmt::skip] // rustc quotes the next line in errors
    fn try_detach(self) -> Result<TensorOf<Self>, DimError> where Self: Evaluable {
        detached(self)
    }

    /// Like [`eval`](Reductions::eval), but with the elements stored in the order of `dims`, then
    /// of the positional axes; the last axis is the fastest.
    ///
    /// The order in memory affects speed: if a matrix of weights is used often, put the summed dims
    /// first (in this example, `Width`).
    ///
    /// ```text
    /// w                            (Inner, Width), neighbors along Width
    /// w.eval_in((Width, Inner))    (Inner, Width), neighbors along Inner
    /// ```
    ///
    /// # Panics
    ///
    /// As for [`eval`](Reductions::eval), and if a size given with a dim differs from its size in
    /// the tensor.
    #[panicking_twin]
    fn try_eval_in<D: DimsOf<Self::Dims, ()>>(self, dims: D) -> Result<TensorOf<Self>, DimError>
    where
        Self: Evaluable,
    {
        let tensor = self.into_named();
        let mut shape = Shape::new::<Self::Dims, Self::Rank>();
        tensor.unify(&mut shape)?;
        shape.check_all_given(&dims)?;
        let named = D::KEYS.as_slice().len();
        let mut order = Order::from_slice(const { &AxisList::of(D::KEYS, Self::Dims::KEYS) }.as_slice());
        order.extend(named..named + Self::Rank::N);
        Ok(Named::from_expr(evaluate_tensor_in::<Self::Dims, Self::Rank, _>(tensor.expr, &shape, &order)?))
    }
}

impl<A: AsTensor + ?Sized> Reductions for A {}
