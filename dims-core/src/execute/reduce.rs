//! Reductions and softmax: what users call.

mod along;
mod combine;
mod cosine;
mod sum;

use crate::error::{DimError, unwrap};
use crate::expr::Expr;
use crate::expr::evaluate::{at_once, computed, laid_out, laid_out_in};
use crate::expr::step::ExprStep;
use crate::plan::axes::AxisList;
use crate::plan::shape::Shape;
use crate::storage::Evaluated;
use crate::tensors::named::Named;
use crate::tensors::tensor::{AsTensor, Computable, Evaluable, NamedOf, checked, read_checked};
use crate::types::rank::Rank;
use crate::types::set::{Dims, DimsOf};
use core::marker::PhantomData;
use kernels::loops::axes::Order;
use kernels::reduce::reducers;
use kernels::scalar::*;
use kernels::scan;

pub(crate) use along::{along, along_axes, log_softmax};
pub(crate) use combine::{Empty, combined, fused, reduced_in, run};
pub(crate) use cosine::cosine;
pub(crate) use sum::{contracted_but, is_product, product_dims, sum};

/// What reducing a tensor `A` yields: a tensor of `U` with the dims `X` that are left.
pub type Reduced<U, A, X> = Named<U, X, <A as AsTensor>::Rank>;

/// A tensor with the dims that it had.
pub type TensorOf<A> = Named<<A as AsTensor>::Elem, <A as AsTensor>::Dims, <A as AsTensor>::Rank>;

/// [`Reductions::try_eval`], where the types need not say that each dim has a size.
#[inline]
#[track_caller]
pub(crate) fn evaluated<A: Computable>(tensor: A) -> Result<TensorOf<A>, DimError> {
    match at_once(tensor.into_named().expr) {
        Ok(data) => Ok(Named::from_expr(data)),
        Err(expr) => planned_eval(NamedOf::<A>::from_expr(expr)),
    }
}

/// The values of a tensor, traced no more.
#[track_caller]
fn detached<A: Computable>(tensor: A) -> Result<TensorOf<A>, DimError> {
    let tensor = tensor.into_named();
    let shape = tensor.unified_shape()?;
    let order = AxisList::in_memory_of::<A::Dims, A::Rank>().as_slice();
    let step = ExprStep::of_recorded::<A::Elem, A::Dims, A::Rank, A::Expr>(&tensor.expr, &shape)?;
    let scope = step.scope();
    let data = computed::<A::Dims, A::Rank, _>(tensor.expr, &shape, order)?;
    drop(scope);
    let data = step.detach(data, order);
    Ok(Named::from_expr(Evaluated::laid_out(data, &shape.sizes_in(order))))
}

/// [`Reductions::try_eval`], planned in full.
#[track_caller]
fn planned_eval<T: Element, S: Dims, R: Rank, E: Expr<Elem = T>>(
    tensor: Named<T, S, R, E>,
) -> Result<Named<T, S, R>, DimError> {
    // (Not by way of `unified_shape`: the shape would be moved through its `Result`.)
    let mut shape = Shape::new::<S, R>();
    tensor.unify(&mut shape)?;
    Ok(Named::from_expr(laid_out::<S, R, _>(tensor.expr, &shape)?))
}

// The bound of the dims is written in each line, not in the macro, because rustc quotes it from there.
macro_rules! reductions {
    ($($(#[$doc:meta])* $name:ident $try_name:ident [$($dims:tt)*] [$($bound:tt)*] $out:ty, $reducer:expr, $empty:expr;)*) => {$(
        $(#[$doc])*
        ///
        /// # Panics
        ///
        /// Where the `try_` form returns an error.
        #[track_caller]
        #[inline]
        fn $name<$($dims)*>(&self, dims: D) -> Reduced<$out, Self, X>
        where
            Self: Evaluable<Elem: $($bound)*>,
        {
            unwrap(self.$try_name(dims))
        }

        #[doc = concat!("As [`", stringify!($name), "`](Reductions::", stringify!($name), "), but what sizes decide is an error.")]
        #[inline]
        #[track_caller]
        fn $try_name<$($dims)*>(&self, dims: D) -> Result<Reduced<$out, Self, X>, DimError>
        where
            Self: Evaluable<Elem: $($bound)*>,
        {
            run::<Self, D, X, _>(&*read_checked(self, &dims)?, $reducer, $empty)
        }
    )*};
}

/// Operations along dims, for tensors and references to tensors.
///
/// `dims` is one dim or a tuple of them; the result has the others, `X` (rustc infers it). A reduction runs at once, in one pass over the whole
/// expression, whose elements are never stored. It borrows the tensor; operations whose result has as many elements as the tensor take it, and
/// reuse its memory.
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
pub trait Reductions: AsTensor {
    /// The sum: `out[..] = sum over dims of x[.., dims]`; 0 where there is nothing to add.
    ///
    /// Where the expression is a product of tensors, this is a contraction: `(a * b).sum(k)` is a matrix product if `a` and
    /// `b` have dims of their own besides `k`, and a product of more tensors is contracted pair by pair. Integers wrap
    /// around. Sums of floats are accumulated pairwise, except inside of
    /// matrix products, whose kernels add in the order of their blocks. [`sum_into`](crate::execute::assign::OrderInto::sum_into) writes to an array that
    /// is there.
    ///
    /// ```
    /// use typed_dims::prelude::*;
    ///
    /// let (a, b) = (ndarray::array![[1.0, 2.0], [3.0, 4.0]], ndarray::array![[0.5], [1.0]]);
    /// dims!(i, j, k);
    /// assert_eq!(a.at((i, k)).sum(k).order(i), ndarray::array![3.0, 7.0]);
    /// assert_eq!((a.at((i, k)) * b.at((k, j))).sum(k).order((i, j)), ndarray::array![[2.5], [5.5]]); // a @ b
    /// ```
    ///
    /// # Panics
    ///
    /// Where [`try_sum`](Reductions::try_sum) returns an error.
    #[track_caller]
    #[cfg_attr(not(unoptimized), inline(always))]
    #[rustfmt::skip] // rustc quotes the line
    fn sum<D: DimsOf<Self::Dims, X>, X: Dims>(&self, dims: D) -> Reduced<Self::Elem, Self, X> where Self: Evaluable<Elem: Num> {
        unwrap(self.try_sum(dims))
    }

    /// As [`sum`](Reductions::sum), but what sizes decide is an error.
    #[cfg_attr(not(unoptimized), inline(always))]
    #[track_caller]
    fn try_sum<D: DimsOf<Self::Dims, X>, X: Dims>(
        &self,
        dims: D,
    ) -> Result<Reduced<Self::Elem, Self, X>, DimError>
    where
        Self: Evaluable<Elem: Num>,
    {
        sum::<Self, D, X>(&*read_checked(self, &dims)?)
    }

    reductions! {
        /// The product; 1 where there is nothing to multiply.
        prod try_prod [D: DimsOf<Self::Dims, X>, X: Dims] [Num] Self::Elem, reducers::Prod, Empty::Allowed;
        /// The mean, `sum / count`; not-a-number where there is nothing.
        mean try_mean [D: DimsOf<Self::Dims, X>, X: Dims] [Analytic] Self::Elem, reducers::Mean, Empty::Allowed;
        /// The greatest element; not-a-number if there is one among them. Nothing to choose from is an error.
        max try_max [D: DimsOf<Self::Dims, X>, X: Dims] [Ordered] Self::Elem, reducers::Max, Empty::Refused("max");
        /// The least element; not-a-number if there is one among them. Nothing to choose from is an error.
        min try_min [D: DimsOf<Self::Dims, X>, X: Dims] [Ordered] Self::Elem, reducers::Min, Empty::Refused("min");
        /// The index of the greatest element, of the first if there are several; for a tuple of dims the index into all of
        /// them, the last dim fastest. Nothing to choose from is an error.
        argmax try_argmax [D: DimsOf<Self::Dims, X>, X: Dims] [Ordered] usize, reducers::ArgExtremum::<true>, Empty::Refused("argmax");
        /// The index of the least element, as for `argmax`.
        argmin try_argmin [D: DimsOf<Self::Dims, X>, X: Dims] [Ordered] usize, reducers::ArgExtremum::<false>, Empty::Refused("argmin");
        /// The variance of a whole population, `mean of (x - mean)^2`; see [`var_with`](Reductions::var_with) for others.
        var try_var [D: DimsOf<Self::Dims, X>, X: Dims] [Real] Self::Elem, reducers::Variance::<_, false> { ddof: Num::ZERO }, Empty::Allowed;
        /// The standard deviation, the square root of the variance.
        std try_std [D: DimsOf<Self::Dims, X>, X: Dims] [Real] Self::Elem, reducers::Variance::<_, true> { ddof: Num::ZERO }, Empty::Allowed;
        /// `ln(sum of e^x)`, without overflow; minus infinity where there is nothing.
        logsumexp try_logsumexp [D: DimsOf<Self::Dims, X>, X: Dims] [Real] Self::Elem, reducers::LogSumExp(PhantomData), Empty::Allowed;
    }

    /// Whether any element is true; false where there is none.
    ///
    /// # Panics
    ///
    /// Where [`try_any`](Reductions::try_any) returns an error.
    #[track_caller]
    fn any<D: DimsOf<Self::Dims, X>, X: Dims>(&self, dims: D) -> Reduced<bool, Self, X>
    where
        Self: Evaluable<Elem = bool>,
    {
        unwrap(self.try_any(dims))
    }

    /// As [`any`](Reductions::any), but what sizes decide is an error.
    #[track_caller]
    fn try_any<D: DimsOf<Self::Dims, X>, X: Dims>(&self, dims: D) -> Result<Reduced<bool, Self, X>, DimError>
    where
        Self: Evaluable<Elem = bool>,
    {
        run::<Self, D, X, _>(&*read_checked(self, &dims)?, reducers::Any, Empty::Allowed)
    }

    /// Whether all elements are true; true where there is none.
    ///
    /// # Panics
    ///
    /// Where [`try_all`](Reductions::try_all) returns an error.
    #[track_caller]
    fn all<D: DimsOf<Self::Dims, X>, X: Dims>(&self, dims: D) -> Reduced<bool, Self, X>
    where
        Self: Evaluable<Elem = bool>,
    {
        unwrap(self.try_all(dims))
    }

    /// As [`all`](Reductions::all), but what sizes decide is an error.
    #[track_caller]
    fn try_all<D: DimsOf<Self::Dims, X>, X: Dims>(&self, dims: D) -> Result<Reduced<bool, Self, X>, DimError>
    where
        Self: Evaluable<Elem = bool>,
    {
        run::<Self, D, X, _>(&*read_checked(self, &dims)?, reducers::All, Empty::Allowed)
    }

    /// How many elements are true.
    ///
    /// # Panics
    ///
    /// Where [`try_count`](Reductions::try_count) returns an error.
    #[track_caller]
    fn count<D: DimsOf<Self::Dims, X>, X: Dims>(&self, dims: D) -> Reduced<usize, Self, X>
    where
        Self: Evaluable<Elem = bool>,
    {
        unwrap(self.try_count(dims))
    }

    /// As [`count`](Reductions::count), but what sizes decide is an error.
    #[track_caller]
    fn try_count<D: DimsOf<Self::Dims, X>, X: Dims>(
        &self,
        dims: D,
    ) -> Result<Reduced<usize, Self, X>, DimError>
    where
        Self: Evaluable<Elem = bool>,
    {
        run::<Self, D, X, _>(&*read_checked(self, &dims)?, reducers::Count, Empty::Allowed)
    }

    /// The variance with `ddof` taken off the count: `sum of (x - mean)^2 / (count - ddof)`; 1 gives the unbiased estimate
    /// for a sample.
    ///
    /// # Panics
    ///
    /// Where [`try_var_with`](Reductions::try_var_with) returns an error.
    #[track_caller]
    fn var_with<D: DimsOf<Self::Dims, X>, X: Dims>(
        &self,
        dims: D,
        ddof: Self::Elem,
    ) -> Reduced<Self::Elem, Self, X>
    where
        Self: Evaluable<Elem: Real>,
    {
        unwrap(self.try_var_with(dims, ddof))
    }

    /// As [`var_with`](Reductions::var_with), but what sizes decide is an error.
    #[track_caller]
    fn try_var_with<D: DimsOf<Self::Dims, X>, X: Dims>(
        &self,
        dims: D,
        ddof: Self::Elem,
    ) -> Result<Reduced<Self::Elem, Self, X>, DimError>
    where
        Self: Evaluable<Elem: Real>,
    {
        run::<Self, D, X, _>(
            &*read_checked(self, &dims)?,
            reducers::Variance::<_, false> { ddof },
            Empty::Allowed,
        )
    }

    /// `e^x / sum over dims of e^x`, without overflow: over one dim, or over all of a tuple of dims at once.
    ///
    /// ```
    /// use typed_dims::prelude::*;
    ///
    /// dims! { struct Row; struct Class = 2; }
    /// let logits = from_vec((Row.of(2), Class), vec![0.0, 0.0, 1000.0, 0.0]);
    /// assert_eq!((&logits).softmax(Class).order((Row, Class)), ndarray::array![[0.5, 0.5], [1.0, 0.0]]);
    /// assert_eq!(logits.softmax((Row, Class)).order((Row, Class)), ndarray::array![[0.0, 0.0], [1.0, 0.0]]);
    /// ```
    ///
    /// # Panics
    ///
    /// Where [`try_softmax`](Reductions::try_softmax) returns an error.
    #[track_caller]
    fn softmax<D: DimsOf<Self::Dims, X>, X: Dims>(self, dims: D) -> TensorOf<Self>
    where
        Self: Evaluable<Elem: Real>,
    {
        unwrap(self.try_softmax(dims))
    }

    /// As [`softmax`](Reductions::softmax), but what sizes decide is an error.
    #[track_caller]
    fn try_softmax<D: DimsOf<Self::Dims, X>, X: Dims>(self, dims: D) -> Result<TensorOf<Self>, DimError>
    where
        Self: Evaluable<Elem: Real>,
    {
        along::<_, D, _>(checked(self, &dims)?, scan::Softmax::<false>)
    }

    /// `x - ln(sum over dims of e^x)`, over one dim or a tuple of dims: the logarithm of the softmax, without loss where that is small.
    ///
    /// # Panics
    ///
    /// Where [`try_log_softmax`](Reductions::try_log_softmax) returns an error.
    #[track_caller]
    fn log_softmax<D: DimsOf<Self::Dims, X>, X: Dims>(self, dims: D) -> TensorOf<Self>
    where
        Self: Evaluable<Elem: Real>,
    {
        unwrap(self.try_log_softmax(dims))
    }

    /// As [`log_softmax`](Reductions::log_softmax), but what sizes decide is an error.
    #[track_caller]
    fn try_log_softmax<D: DimsOf<Self::Dims, X>, X: Dims>(self, dims: D) -> Result<TensorOf<Self>, DimError>
    where
        Self: Evaluable<Elem: Real>,
    {
        log_softmax(self, dims)
    }

    /// The elements in memory of their own: dims in the order of the set, then the positional axes.
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
    /// If operands have different sizes for one dim, or an index is out of range.
    #[track_caller]
    #[inline]
    #[rustfmt::skip] // rustc quotes the line
    fn eval(self) -> TensorOf<Self> where Self: Evaluable {
        unwrap(self.try_eval())
    }

    /// The values of the tensor, in a tensor of their own that is a constant to gradients: none is taken through it.
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
    /// If operands have different sizes for one dim, or an index is out of range.
    #[track_caller]
    #[rustfmt::skip] // rustc quotes the line
    fn detach(self) -> TensorOf<Self> where Self: Evaluable {
        unwrap(self.try_detach())
    }

    /// As [`detach`](Reductions::detach), but what sizes decide is an error.
    #[track_caller]
    fn try_detach(self) -> Result<TensorOf<Self>, DimError>
    where
        Self: Evaluable,
    {
        detached(self)
    }

    /// As [`eval`](Reductions::eval), but what sizes decide is an error.
    #[cfg_attr(not(unoptimized), inline(always))]
    #[track_caller]
    fn try_eval(self) -> Result<TensorOf<Self>, DimError>
    where
        Self: Evaluable,
    {
        evaluated(self)
    }

    /// As [`eval`](Reductions::eval), but the elements lie in the order in which the dims are named here, the last one fastest.
    ///
    /// It is the same tensor, but how it lies decides how fast it is read: a matrix of weights that is used often is read best with the
    /// dims first that are summed.
    ///
    /// ```text
    /// w                            (Inner, Width), neighbours along Width
    /// w.eval_in((Width, Inner))    (Inner, Width), neighbours along Inner
    /// ```
    ///
    /// # Panics
    ///
    /// As [`eval`](Reductions::eval).
    #[track_caller]
    fn eval_in<D: DimsOf<Self::Dims, ()>>(self, dims: D) -> TensorOf<Self>
    where
        Self: Evaluable,
    {
        unwrap(self.try_eval_in(dims))
    }

    /// As [`eval_in`](Reductions::eval_in), but what sizes decide is an error.
    #[track_caller]
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
        Ok(Named::from_expr(laid_out_in::<Self::Dims, Self::Rank, _>(tensor.expr, &shape, &order)?))
    }
}

impl<A: AsTensor + ?Sized> Reductions for A {}
