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
use core::panic::Location;
use kernels::scalar::Element;
use kernels::step::moves::{MoveRows, REARRANGEMENT};

/// Changes the size of a tensor along a dim from `size` to `len(size)`. The new element at `at` is
/// the old one at `from(size)(at)`, or `fill` if that is `None`.
#[track_caller]
pub(super) fn rearranged<A: Computable, F: Fn(usize) -> Option<usize>>(
    tensor: A,
    dim: DimInfo<'_>,
    len: impl FnOnce(usize) -> Result<usize, DimError>,
    from: impl FnOnce(usize) -> F,
    fill: A::Elem,
) -> Result<TensorOf<A>, DimError> {
    moved(RowBlocks::of(tensor, dim)?, dim, len, from, fill)
}

/// Like [`rearranged`], for one of the dims of [`one_by_one`].
#[track_caller]
pub(super) fn rearranged_in_turn<T: Element, S: Dims, R: Rank, F: Fn(usize) -> Option<usize>>(
    tensor: &Named<T, S, R>,
    dim: DimInfo<'_>,
    len: impl FnOnce(usize) -> Result<usize, DimError>,
    from: impl FnOnce(usize) -> F,
    fill: T,
) -> Result<Named<T, S, R>, DimError> {
    moved(RowBlocks::one_of_several(tensor, dim)?, dim, len, from, fill)
}

#[track_caller]
fn moved<T: Element, S: Dims, R: Rank, F: Fn(usize) -> Option<usize>>(
    blocks: RowBlocks<T>,
    dim: DimInfo<'_>,
    len: impl FnOnce(usize) -> Result<usize, DimError>,
    from: impl FnOnce(usize) -> F,
    fill: T,
) -> Result<Named<T, S, R>, DimError> {
    let (outer, size, inner) = (blocks.outer(), blocks.size(), blocks.inner());
    let len = len(size)?;
    let rows = if outer * inner == 0 { 0 } else { len };
    rows_moved(blocks, dim, len, [outer, size, inner], (0..rows).map(from(size)), fill)
}

/// Repeats the elements along a dim `times` times: all in turn or, if `each`, each before the next.
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
    let rows = if outer * inner == 0 { 0 } else { times };
    let sources = (0..rows).map(|_| Some(0));
    rows_moved(blocks, dim, len, [outer, 1, inner], sources, A::Elem::default())
}

/// Moves rows, such that the dim has the size `len`. There are `outer` blocks of `size` rows of
/// `inner` elements. `sources` has the old row for each row of a new block.
#[track_caller]
fn rows_moved<T: Element, S: Dims, R: Rank>(
    mut blocks: RowBlocks<T>,
    dim: DimInfo<'_>,
    len: usize,
    [outer, size, inner]: [usize; 3],
    sources: impl ExactSizeIterator<Item = Option<usize>>,
    fill: T,
) -> Result<Named<T, S, R>, DimError> {
    dim.resized().unify(len, None)?;
    blocks.check_volume::<S, R>(len)?;
    let sources = blocks.table::<S, R, _>(len, sources)?;
    blocks.execute(&MoveRows { name: REARRANGEMENT, outer, size, inner, sources, fill }, len)
}

/// Changes the sizes of dims one after the other. `resized` gets the tensor so far, the dim, and its
/// position among `dims`. Only the result must have the same size for a dim and its prime.
#[track_caller]
pub(super) fn one_by_one<A: Computable>(
    tensor: A,
    dims: &impl DimList,
    mut resized: impl FnMut(&TensorOf<A>, DimInfo<'_>, usize) -> Result<TensorOf<A>, DimError>,
) -> Result<TensorOf<A>, DimError> {
    let mut tensor = eval(tensor)?;
    let (mut at, mut failed) = (0, None);
    dims.each(|dim| {
        if failed.is_none() {
            match resized(&tensor, dim, at) {
                Ok(next) => tensor = next,
                Err(error) => failed = Some(error),
            }
        }
        at += 1;
    });
    if let Some(error) = failed {
        return Err(error);
    }
    // (Inside the closure, `Location::caller` would return a line of this file.)
    let result: TensorOf<A> = Named::from_expr(tensor.expr.with_origin(Some(Location::caller())));
    result.unified_shape()?;
    Ok(result)
}
