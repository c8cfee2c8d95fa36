//! Moves the elements of a tensor to other positions along a dim.

use crate::error::DimError;
use crate::execute::reduce::{TensorOf, eval};
use crate::execute::step::RowBlocks;
use crate::tensors::named::Named;
use crate::tensors::tensor::Computable;
use crate::types::brand::DimInfo;
use crate::types::dim::DimList;
use crate::types::rank::Rank;
use crate::types::set::Dims;
use alloc::sync::Arc;
use core::panic::Location;
use kernels::memory::runs::RowRun;
use kernels::scalar::Element;
use kernels::step::moves::{MoveRows, REARRANGEMENT};
use smallvec::SmallVec;

/// Moves the rows of each block, so that the dim has the size `len`. `runs` lists the old rows that
/// a new block consists of. New rows without an old row are filled with `fill`.
#[track_caller]
pub(super) fn moved<T: Element, S: Dims, R: Rank>(
    blocks: RowBlocks<T>,
    dim: DimInfo<'_>,
    len: usize,
    runs: &[RowRun],
    fill: T,
) -> Result<Named<T, S, R>, DimError> {
    let sizes = [blocks.outer(), blocks.size(), blocks.inner()];
    moved_as(blocks, dim, len, sizes, runs, fill)
}

/// Moves the rows of each block, so that the dim has the size `len`. The new row `at` is the old
/// row `from(at)`.
#[track_caller]
pub(super) fn moved_by<T: Element, S: Dims, R: Rank>(
    mut blocks: RowBlocks<T>,
    dim: DimInfo<'_>,
    len: usize,
    from: &dyn Fn(usize) -> usize,
) -> Result<Named<T, S, R>, DimError> {
    blocks.check_volume::<S, R>(len)?;
    let runs = blocks.runs::<S, R>(len, from)?;
    moved(blocks, dim, len, &runs, T::default())
}

/// Repeats the elements along a dim `times` times: `a b a b` or, if `each` is set, `a a b b`.
#[track_caller]
pub(super) fn repeated<A: Computable>(
    tensor: A,
    dim: DimInfo<'_>,
    times: usize,
    each: bool,
) -> Result<TensorOf<A>, DimError> {
    let blocks = RowBlocks::of(tensor, dim)?;
    let (outer, size, inner) = (blocks.outer(), blocks.size(), blocks.inner());
    let len = size
        .checked_mul(times)
        .ok_or_else(|| DimError::TooLarge { dims: format!("dim `{}` = {size}, {times} times", dim.name) })?;
    // What is repeated counts as one row: all elements along the dim, or one of them.
    let (outer, inner) = if each { (outer * size, inner) } else { (outer, size * inner) };
    moved_as(blocks, dim, len, [outer, 1, inner], &[RowRun::new(0, times, 0)], A::Elem::default())
}

/// Moves the rows of each block. There are `outer` blocks of `size` rows, and each row has `inner`
/// elements.
#[track_caller]
fn moved_as<T: Element, S: Dims, R: Rank>(
    mut blocks: RowBlocks<T>,
    dim: DimInfo<'_>,
    len: usize,
    [outer, size, inner]: [usize; 3],
    runs: &[RowRun],
    fill: T,
) -> Result<Named<T, S, R>, DimError> {
    dim.resized().unify(len, None)?;
    blocks.check_volume::<S, R>(len)?;
    let sources = if outer * inner == 0 { Arc::default() } else { runs.into() };
    blocks.execute(&MoveRows { name: REARRANGEMENT, outer, size, inner, sources, fill }, len)
}

/// An operator that changes the sizes of dims one after the other.
pub(super) trait ResizeDim<T> {
    /// The tensor with another size along `dim`, the dim at the position `at` of the operator's
    /// dims.
    #[track_caller]
    fn resized<S: Dims, R: Rank>(
        &self,
        tensor: &Named<T, S, R>,
        dim: DimInfo<'_>,
        at: usize,
    ) -> Result<Named<T, S, R>, DimError>;
}

/// Applies an operator along each dim. The sizes of a dim and its prime may differ until the last
/// dim is done; in the result, they must be the same.
#[track_caller]
pub(super) fn one_by_one<A: Computable>(
    tensor: A,
    dims: &impl DimList,
    by: &impl ResizeDim<A::Elem>,
) -> Result<TensorOf<A>, DimError> {
    let mut tensor = eval(tensor)?;
    // The steps run in a loop and not in the closure, because the location of a step in a closure
    // would be in this file.
    let mut all: SmallVec<[DimInfo<'_>; 4]> = SmallVec::new();
    dims.each(|dim| all.push(dim));
    for (at, dim) in all.into_iter().enumerate() {
        tensor = by.resized(&tensor, dim, at)?;
    }
    let result: TensorOf<A> = Named::from_expr(tensor.expr.with_origin(Some(Location::caller())));
    result.unified_shape()?;
    Ok(result)
}
