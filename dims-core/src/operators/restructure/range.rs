//! Ranges of positions along a dim, the arguments of `slice` and similar methods.

use super::Remapped;
use crate::bind::binder::{Position, after, cut};
use crate::error::DimError;
use crate::expr::Remap;
use crate::expr::remap::{Along, term};
use crate::plan::shape::Shape;
use crate::tensors::named::{Named, position};
use crate::tensors::tensor::Computable;
use crate::types::brand::DimInfo;
use core::ops::{Range, RangeFrom, RangeFull, RangeInclusive, RangeTo, RangeToInclusive};
use kernels::memory::axes::Axis;

/// A range of positions along a dim: `1..4`, `..n`, `2..`. Negative positions count from the end.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a range of positions",
    label = "expected a range of integers, such as `1..4`"
)]
pub trait DimRange {
    #[doc(hidden)]
    const SEAL: crate::seal::Seal;
    /// The start, and the exclusive end.
    #[doc(hidden)]
    fn bounds(self, size: usize) -> (i128, i128);
}

macro_rules! ranges {
    ($($range:ident |$r:ident, $size:ident| $start:expr, $end:expr;)*) => {$(
        impl<P: Position> DimRange for $range<P> {
            const SEAL: crate::seal::Seal = crate::seal::SEAL;
            fn bounds(self, $size: usize) -> (i128, i128) {
                let $r = self;
                ($start, $end)
            }
        }
    )*};
}

ranges! {
    Range |r, _size| r.start.to_i128(), r.end.to_i128();
    RangeFrom |r, size| r.start.to_i128(), size as i128;
    RangeTo |r, _size| 0, r.end.to_i128();
    RangeInclusive |r, size| r.start().to_i128(), after(r.end().to_i128(), size as i128);
    RangeToInclusive |r, size| 0, after(r.end.to_i128(), size as i128);
}

impl DimRange for RangeFull {
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    fn bounds(self, size: usize) -> (i128, i128) {
        (0, size as i128)
    }
}

pub(super) fn sliced<A: Computable>(
    tensor: A,
    dim: DimInfo<'_>,
    range: impl DimRange,
    step: usize,
) -> Result<Remapped<A, A::Dims>, DimError> {
    let tensor = tensor.into_named();
    let shape = tensor.unified_shape()?;
    let (offset, inner, len) = within(&shape, dim, range)?;
    if step == 0 {
        return Err(DimError::Shape {
            what: format!("a slice of dim `{}` with a step of 0; it must be at least 1", dim.name),
        });
    }
    let len = len.div_ceil(step);
    // If there is a second element, the step to it is within the dim. Otherwise the step is not
    // used, and may not fit into `isize`.
    let step = if len > 1 || step == 1 { step as isize } else { 0 };
    // The size that a local dim remembers is that of the whole dim, so it need not equal `len`.
    dim.resized().unify(len, None)?;
    let along = Along { offset, inner: Some(inner), terms: term(dim.key(), step, Some(len)) };
    Ok(Named::from_expr(Remap::new(tensor.expr, dim.key(), along)))
}

/// The start of a range along a dim, the dim's size, and the length of the range.
pub(crate) fn within(
    shape: &Shape,
    dim: DimInfo<'_>,
    range: impl DimRange,
) -> Result<(usize, usize, usize), DimError> {
    let size = shape.size(position(shape, dim));
    let (start, end) = range.bounds(size);
    let (axis, offset) = cut(Axis::new(size, 1), start, end, &|| format!("dim `{}`", dim.name))?;
    Ok((offset as usize, size, axis.size))
}
