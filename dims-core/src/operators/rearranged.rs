//! Moves the elements of a tensor to other positions along a dim.

use crate::error::DimError;
use crate::execute::reduce::TensorOf;
use crate::execute::step::RowBlocks;
use crate::tensors::tensor::Computable;
use crate::types::brand::DimInfo;
use kernels::step::moves::MoveRows;

/// Changes the size of a tensor along a dim from `size` to `len(size)`. The new element at `at` is
/// the old one at `from(at, size)`, or `fill` if `from` returns `None`.
#[track_caller]
pub(super) fn rearranged<A: Computable>(
    tensor: A,
    dim: DimInfo<'_>,
    len: impl FnOnce(usize) -> Result<usize, DimError>,
    from: impl Fn(usize, usize) -> Option<usize>,
    fill: A::Elem,
) -> Result<TensorOf<A>, DimError> {
    let mut blocks = RowBlocks::of(tensor, dim)?;
    let (outer, size, inner) = (blocks.outer(), blocks.size(), blocks.inner());
    let len = len(size)?;
    dim.resized().unify(len, None)?;
    blocks.check_volume::<A::Dims, A::Rank>(len)?;
    let len_of_rows = if outer * inner == 0 { 0 } else { len };
    let sources = blocks.table::<A::Dims, A::Rank, _>(len, (0..len_of_rows).map(|at| from(at, size)))?;
    blocks.execute(&MoveRows { name: "rearrangement", outer, size, inner, sources, fill }, len)
}
