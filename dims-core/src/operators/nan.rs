//! Reductions that ignore NaN: `nansum`, `nanmean`, `nanmax`, `nanmin`, `nanvar`, `nanstd`.

use crate::error::{DimError, unwrap};
use crate::execute::reduce::{Empty, Reduced, eval, reduce, sum};
use crate::expr::{Binary, Expr, Scalar, Select, Unary};
use crate::tensors::named::Named;
use crate::tensors::tensor::{AsTensor, Computable, Evaluable, read_checked};
use crate::types::dim::DimList;
use crate::types::rank::Rank;
use crate::types::set::{Dims, DimsOf};
use kernels::ops;
use kernels::reduce::{Reducer, reducers};
use kernels::scalar::{Num, Real};
use num_traits::Float;

/// A tensor with the dims of `A` and the elements of an expression.
type NumbersOf<A, E> = Named<<A as AsTensor>::Elem, <A as AsTensor>::Dims, <A as AsTensor>::Rank, E>;

/// The sum of the elements that are not NaN.
#[track_caller]
fn sum_of_numbers<A, D, X>(expr: &impl Expr<Elem = A::Elem>) -> Result<Reduced<A::Elem, A, X>, DimError>
where
    A: Computable<Elem: Real>,
    D: DimList,
    X: Dims,
{
    sum::<NumbersOf<A, _>, D, X>(&Unary { op: ops::NanTo(Num::ZERO), a: expr })
}

/// The number of elements that are not NaN.
#[track_caller]
fn count_of_numbers<A, D, X>(expr: &A::Expr) -> Result<Reduced<A::Elem, A, X>, DimError>
where
    A: Computable<Elem: Real>,
    D: DimList,
    X: Dims,
{
    let is_nan = Unary { op: ops::IsNan, a: expr };
    sum::<NumbersOf<A, _>, D, X>(&Select { cond: is_nan, a: Scalar(Num::ZERO), b: Scalar(Num::ONE) })
}

/// A quotient of two results.
#[track_caller]
fn quotient<T: Real, X: Dims, R: Rank>(
    sum: Named<T, X, R>,
    count: &Named<T, X, R>,
) -> Result<Named<T, X, R>, DimError> {
    let quotient = Binary { op: ops::Div, a: sum.expr, b: &count.expr };
    eval(Named::<T, X, R, _>::from_expr(quotient))
}

#[track_caller]
fn mean_of_numbers<A, D, X>(expr: &A::Expr) -> Result<Reduced<A::Elem, A, X>, DimError>
where
    A: Computable<Elem: Real>,
    D: DimList,
    X: Dims,
{
    quotient(sum_of_numbers::<A, D, X>(&expr)?, &count_of_numbers::<A, D, X>(expr)?)
}

#[track_caller]
fn variance_of_numbers<A, D, X>(expr: &A::Expr) -> Result<Reduced<A::Elem, A, X>, DimError>
where
    A: Computable<Elem: Real>,
    D: DimList,
    X: Dims,
{
    let count = count_of_numbers::<A, D, X>(expr)?;
    let mean = quotient(sum_of_numbers::<A, D, X>(&expr)?, &count)?;
    let distance = Binary { op: ops::Sub, a: expr, b: &mean.expr };
    let squares = Unary { op: ops::Square, a: distance };
    quotient(sum_of_numbers::<A, D, X>(&squares)?, &count)
}

/// The greatest or the least number, with NaN replaced by `least_wanted`. NaN if all elements are
/// NaN.
#[track_caller]
fn extremum_of_numbers<A, D, X, Q>(
    expr: &A::Expr,
    least_wanted: A::Elem,
    reducer: Q,
    name: &'static str,
) -> Result<Reduced<A::Elem, A, X>, DimError>
where
    A: Computable<Elem: Real>,
    D: DimList,
    X: Dims,
    Q: Reducer<A::Elem, Out = A::Elem>,
{
    let numbers = Unary { op: ops::NanTo(least_wanted), a: expr };
    let found = reduce::<NumbersOf<A, _>, D, X, Q>(&numbers, reducer, Empty::Refused(name))?;
    let count = count_of_numbers::<A, D, X>(expr)?;
    let has_none = Binary { op: ops::Eq, a: count.expr, b: Scalar(Num::ZERO) };
    let or_nan = Select { cond: has_none, a: Scalar(A::Elem::nan()), b: found.expr };
    eval(Named::<A::Elem, X, A::Rank, _>::from_expr(or_nan))
}

macro_rules! nan_reductions {
    ($($(#[$doc:meta])* $name:ident $try_name:ident |$expr:ident| $body:expr;)*) => {$(
        $(#[$doc])*
        ///
        /// # Panics
        ///
        /// Where the `try_` form returns an error.
        #[track_caller]
        fn $name<D: DimsOf<Self::Dims, X>, X: Dims>(&self, dims: D) -> Reduced<Self::Elem, Self, X>
        where
            Self: Evaluable<Elem: Real>,
        {
            unwrap(self.$try_name(dims))
        }

        #[doc = concat!("As [`", stringify!($name), "`](NanReductions::", stringify!($name), "), but sizes that do not fit are an error.")]
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

/// Reductions that ignore NaN, for data in which NaN marks a missing number. `dims` is one dim or a
/// tuple of dims.
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
/// `(!x.is_nan()).count(Day)` is the number of elements that are not NaN.
pub trait NanReductions: AsTensor {
    nan_reductions! {
        /// The sum of the elements that are not NaN; 0 if all are NaN.
        nansum try_nansum |expr| sum_of_numbers::<Self, D, X>(&expr);
        /// The mean of the elements that are not NaN; NaN if all are NaN.
        nanmean try_nanmean |expr| mean_of_numbers::<Self, D, X>(expr);
        /// The greatest element that is not NaN; NaN if all are NaN. It is an error if there are no
        /// elements.
        nanmax try_nanmax |expr| {
            extremum_of_numbers::<Self, D, X, _>(expr, Self::Elem::neg_infinity(), reducers::Max, "nanmax")
        };
        /// The least element that is not NaN; NaN if all are NaN. It is an error if there are no
        /// elements.
        nanmin try_nanmin |expr| {
            extremum_of_numbers::<Self, D, X, _>(expr, Self::Elem::infinity(), reducers::Min, "nanmin")
        };
        /// The variance of the elements that are not NaN, `mean of (x - mean)^2`; NaN if all are
        /// NaN.
        nanvar try_nanvar |expr| variance_of_numbers::<Self, D, X>(expr);
        /// The standard deviation of the elements that are not NaN, the square root of
        /// [`nanvar`](NanReductions::nanvar).
        nanstd try_nanstd |expr| {
            let variance = variance_of_numbers::<Self, D, X>(expr)?;
            eval(Named::<Self::Elem, X, Self::Rank, _>::from_expr(Unary { op: ops::Sqrt, a: variance.expr }))
        };
    }
}

impl<A: AsTensor + ?Sized> NanReductions for A {}
