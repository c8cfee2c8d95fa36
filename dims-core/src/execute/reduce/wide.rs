//! Half precisions, computed in single precision.

use crate::error::DimError;
use crate::execute::reduce::{Reduced, eval, sum};
use crate::expr::{Binary, Expr, Unary};
use crate::tensors::named::Named;
use crate::tensors::tensor::{AsTensor, Computable};
use crate::types::dim::DimList;
use crate::types::rank::Rank;
use crate::types::set::Dims;
use core::marker::PhantomData;
use kernels::ops;
use kernels::scalar::{Element, Num, Real};

/// A tensor with the dims of `A` and the elements of an expression, converted to the type in which
/// functions and sums are computed.
pub(crate) type WideOf<A, E> = Named<
    <<A as AsTensor>::Elem as Real>::Wide,
    <A as AsTensor>::Dims,
    <A as AsTensor>::Rank,
    Unary<ops::Widen, E>,
>;

/// Whether a float type is `f16` or `bf16`.
pub(crate) const fn is_half<T: Element>() -> bool {
    size_of::<T>() == 2
}

pub(crate) fn widened<E>(expr: E) -> Unary<ops::Widen, E> {
    Unary { op: ops::Widen, a: expr }
}

#[track_caller]
pub(crate) fn narrowed<T: Real, S: Dims, R: Rank>(
    wide: Named<T::Wide, S, R>,
) -> Result<Named<T, S, R>, DimError> {
    let narrowed = Unary { op: ops::Narrow(PhantomData::<T>), a: wide.expr };
    eval(Named::<T, S, R, _>::from_expr(narrowed))
}

/// The sum of `values`, divided by the sum of `weights`.
///
/// Half precisions cannot count far, and their sums overflow early, so both sums are wider.
#[track_caller]
pub(crate) fn quotient_of_sums<A, D, X>(
    values: &impl Expr<Elem = A::Elem>,
    weights: &impl Expr<Elem = A::Elem>,
) -> Result<Reduced<A::Elem, A, X>, DimError>
where
    A: Computable<Elem: Real>,
    D: DimList,
    X: Dims,
{
    if const { is_half::<A::Elem>() } {
        let total = sum::<WideOf<A, _>, D, X>(&widened(values))?;
        let weight = sum::<WideOf<A, _>, D, X>(&widened(weights))?;
        return narrowed::<A::Elem, X, A::Rank>(quotient(total, &weight)?);
    }
    let total = sum::<Named<A::Elem, A::Dims, A::Rank, _>, D, X>(values)?;
    let weight = sum::<Named<A::Elem, A::Dims, A::Rank, _>, D, X>(weights)?;
    quotient(total, &weight)
}

#[track_caller]
fn quotient<T: Num, X: Dims, R: Rank>(
    sum: Named<T, X, R>,
    weight: &Named<T, X, R>,
) -> Result<Named<T, X, R>, DimError> {
    let quotient = Binary { op: ops::Div, a: sum.expr, b: &weight.expr };
    eval(Named::<T, X, R, _>::from_expr(quotient))
}
