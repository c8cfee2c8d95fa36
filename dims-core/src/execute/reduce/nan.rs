//! Reductions that leave NaN out: `nansum`, `nanmean`, `nanmax`, `nanmin`, `nanvar`, `nanstd`.

use super::{Empty, Reduced, WideOf, eval, is_half, narrowed, quotient_of_sums, reduce, sum, widened};
use crate::error::DimError;
use crate::expr::{Binary, Expr, Scalar, Select, Unary};
use crate::tensors::named::Named;
use crate::tensors::tensor::{AsTensor, Computable};
use crate::types::dim::DimList;
use crate::types::set::Dims;
use kernels::ops;
use kernels::reduce::Reducer;
use kernels::scalar::{Num, Real};
use num_traits::Float;

/// A tensor with the dims of `A` and the elements of an expression.
type NumbersOf<A, E> = Named<<A as AsTensor>::Elem, <A as AsTensor>::Dims, <A as AsTensor>::Rank, E>;

/// The sum of the elements that are not NaN.
#[track_caller]
pub(super) fn sum_of_numbers<A, D, X>(
    expr: &impl Expr<Elem = A::Elem>,
) -> Result<Reduced<A::Elem, A, X>, DimError>
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

/// The mean of `values` over the positions where `expr` is not NaN. `values` is 0 at the others.
#[track_caller]
fn mean_over_numbers<A, D, X>(
    values: &impl Expr<Elem = A::Elem>,
    expr: &A::Expr,
) -> Result<Reduced<A::Elem, A, X>, DimError>
where
    A: Computable<Elem: Real>,
    D: DimList,
    X: Dims,
{
    let is_nan = Unary { op: ops::IsNan, a: expr };
    let (zero, one) = (Scalar(<A::Elem as Num>::ZERO), Scalar(<A::Elem as Num>::ONE));
    quotient_of_sums::<A, D, X>(values, &Select { cond: is_nan, a: zero, b: one })
}

#[track_caller]
pub(super) fn mean_of_numbers<A, D, X>(expr: &A::Expr) -> Result<Reduced<A::Elem, A, X>, DimError>
where
    A: Computable<Elem: Real>,
    D: DimList,
    X: Dims,
{
    let values = Unary { op: ops::NanTo(<A::Elem as Num>::ZERO), a: expr };
    mean_over_numbers::<A, D, X>(&values, expr)
}

/// The variance of the numbers, or its square root if `ROOT` is set.
#[track_caller]
pub(super) fn variance_of_numbers<A, D, X, const ROOT: bool>(
    expr: &A::Expr,
) -> Result<Reduced<A::Elem, A, X>, DimError>
where
    A: Computable<Elem: Real>,
    D: DimList,
    X: Dims,
{
    if const { is_half::<A::Elem>() } {
        // Squares of half precisions overflow and underflow early.
        let variance = variance_in_own_type::<WideOf<A, _>, D, X, ROOT>(&widened(expr))?;
        return narrowed::<A::Elem, X, A::Rank>(variance);
    }
    variance_in_own_type::<A, D, X, ROOT>(expr)
}

#[track_caller]
fn variance_in_own_type<A, D, X, const ROOT: bool>(expr: &A::Expr) -> Result<Reduced<A::Elem, A, X>, DimError>
where
    A: Computable<Elem: Real>,
    D: DimList,
    X: Dims,
{
    let mean = mean_of_numbers::<A, D, X>(expr)?;
    let distance = Binary { op: ops::Sub, a: expr, b: &mean.expr };
    let squares = Unary { op: ops::Square, a: distance };
    // (The square at an infinite element can be NaN, but that element is a number.)
    let is_nan = Unary { op: ops::IsNan, a: expr };
    let values = Select { cond: is_nan, a: Scalar(<A::Elem as Num>::ZERO), b: squares };
    let variance = mean_over_numbers::<A, D, X>(&values, expr)?;
    if const { !ROOT } {
        return Ok(variance);
    }
    // As for `std`, the slope is 0 where the result is 0. (The slope of the square root alone would
    // be infinite.)
    let is_zero = Binary { op: ops::Eq, a: &variance.expr, b: Scalar(Num::ZERO) };
    let root = Unary { op: ops::Sqrt, a: &variance.expr };
    let root = Select { cond: is_zero, a: Scalar(<A::Elem as Num>::ZERO), b: root };
    eval(Named::<A::Elem, X, A::Rank, _>::from_expr(root))
}

/// The greatest or the least number. `least_wanted` replaces NaN in the comparison. The result is
/// NaN if all elements are NaN.
#[track_caller]
pub(super) fn extremum_of_numbers<A, D, X, Q>(
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
