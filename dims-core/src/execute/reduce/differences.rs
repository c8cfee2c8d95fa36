//! Differences of neighbors along a dim.

use crate::error::DimError;
use crate::execute::reduce::TensorOf;
use crate::expr::evaluate::evaluate_tensor;
use crate::expr::remap::{Along, term};
use crate::expr::{Binary, Expr, Remap};
use crate::plan::shape::Shape;
use crate::tensors::named::{Named, position};
use crate::tensors::tensor::Computable;
use crate::types::dim::DimRef;
use core::panic::Location;
use kernels::ops;
use kernels::scalar::Num;

/// See [`diff`](crate::execute::reduce::Reductions::diff).
#[track_caller]
pub(super) fn differences<A: Computable<Elem: Num>, D: DimRef>(
    tensor: A,
    dim: D,
) -> Result<TensorOf<A>, DimError> {
    let tensor = tensor.into_named();
    let shape = tensor.unified_shape()?;
    let info = dim.info();
    let size = shape.size(position(&shape, info));
    let len = size.saturating_sub(1);
    info.resized().unify(len, Some(Location::caller()))?;
    let from = |offset| {
        let terms = term(info.key(), 1, Some(len));
        Along { offset, inner: Some(size), terms }
    };
    let expr = &tensor.expr;
    let later = Remap::<_, A::Dims, A::Rank>::new(expr, info.key(), from(size.min(1)));
    let earlier = Remap::<_, A::Dims, A::Rank>::new(expr, info.key(), from(0));
    let differences = Binary { op: ops::Sub, a: later, b: earlier };
    let mut shape = Shape::new::<A::Dims, A::Rank>();
    differences.unify::<A::Dims, A::Rank>(&mut shape)?;
    shape.finish()?;
    Ok(Named::from_expr(evaluate_tensor::<A::Dims, A::Rank, _>(differences, &shape)?))
}
