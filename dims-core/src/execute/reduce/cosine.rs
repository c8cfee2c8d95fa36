//! The cosine of the angle between vectors.

use crate::error::DimError;
use crate::execute::reduce::{Empty, WideOf, is_half, narrowed, reduce, sum, widened};
use crate::expr::evaluate::evaluate_tensor;
use crate::expr::step::{ExprStep, is_heard};
use crate::expr::{Binary, Expr, Scalar};
use crate::plan::shape::Shape;
use crate::tensors::named::Named;
use crate::tensors::tensor::{AsTensor, Computable, read_checked};
use crate::types::dim::DimList;
use crate::types::rank::Rank;
use crate::types::set::{Dims, Union};
use kernels::ops;
use kernels::reduce::reducers;
use kernels::scalar::{Num, Real};

/// The number of positional axes of two tensors that are broadcast together.
type JointRank<A, B> = <<A as AsTensor>::Rank as Rank>::Max<<B as AsTensor>::Rank>;

/// The elements of two tensors, combined by `O` into elements of type `T`; `U` is the union of
/// their dims.
type Both<'a, O, T, A, B, U> =
    Named<T, U, JointRank<A, B>, Binary<O, &'a <A as AsTensor>::Expr, &'a <B as AsTensor>::Expr>>;

/// `(sum of a * b) / (norm of a * norm of b)` over the dims `D`. A norm below `eps` is replaced by
/// `eps`. `U` is the union of the tensors' dims, and `X` are the dims of `U` without those of `D`.
///
/// This is one pass, unless an operand is traced: the derivative needs a product and two norms.
#[track_caller]
pub(crate) fn cosine<A, B, D, U, X>(
    a: &A::Expr,
    b: B::Expr,
    dims: &D,
    eps: A::Elem,
) -> Result<Named<A::Elem, X, JointRank<A, B>>, DimError>
where
    A: Computable<Elem: Real, Dims: Union<B::Dims, Out = U>>,
    B: Computable<Elem = A::Elem>,
    D: DimList,
    U: Dims,
    X: Dims,
{
    let b = &b;
    if is_heard() {
        let product: Both<'_, ops::Mul, A::Elem, A, B, U> = Named::from_expr(Binary { op: ops::Mul, a, b });
        read_checked(&product, dims)?;
        let shape = product.unified_shape()?;
        if ExprStep::of::<A::Elem, U, JointRank<A, B>, _>(&product.expr, &shape)?.is_some() {
            if const { is_half::<A::Elem>() } {
                // The sum of products, and the product of norms, overflow and underflow early.
                let (a, b) = (widened(a), widened(b));
                let wide = composed::<WideOf<A, _>, WideOf<B, _>, D, U, X>(&a, &b, eps.widen())?;
                return narrowed::<A::Elem, X, JointRank<A, B>>(wide);
            }
            return composed::<A, B, D, U, X>(a, b, eps);
        }
    }
    let pairs: Both<'_, ops::Pair, (A::Elem, A::Elem), A, B, U> =
        Named::from_expr(Binary { op: ops::Pair, a, b });
    reduce::<Both<'_, ops::Pair, _, A, B, U>, D, X, _>(
        &*read_checked(&pairs, dims)?,
        reducers::Cosine(eps),
        Empty::Allowed,
    )
}

#[track_caller]
fn composed<A, B, D, U, X>(
    a: &A::Expr,
    b: &B::Expr,
    eps: A::Elem,
) -> Result<Named<A::Elem, X, JointRank<A, B>>, DimError>
where
    A: Computable<Elem: Real, Dims: Union<B::Dims, Out = U>>,
    B: Computable<Elem = A::Elem>,
    D: DimList,
    U: Dims,
    X: Dims,
{
    let dot = sum::<Both<'_, ops::Mul, A::Elem, A, B, U>, D, X>(&Binary { op: ops::Mul, a, b })?;
    let left = Binary { op: ops::LeftOperand, a, b };
    let left = reduce::<Both<'_, _, A::Elem, A, B, U>, D, X, _>(&left, reducers::Norm, Empty::Allowed)?;
    let right = Binary { op: ops::Replace, a, b };
    let right = reduce::<Both<'_, _, A::Elem, A, B, U>, D, X, _>(&right, reducers::Norm, Empty::Allowed)?;
    let left = Binary { op: ops::Maximum, a: left.expr, b: Scalar(eps) };
    let right = Binary { op: ops::Maximum, a: right.expr, b: Scalar(eps) };
    let cosine = Binary { op: ops::Div, a: dot.expr, b: Binary { op: ops::Mul, a: left, b: right } };
    let mut shape = Shape::new::<X, JointRank<A, B>>();
    cosine.unify::<X, JointRank<A, B>>(&mut shape)?;
    shape.finish()?;
    Ok(Named::from_expr(evaluate_tensor::<X, JointRank<A, B>, _>(cosine, &shape)?))
}
