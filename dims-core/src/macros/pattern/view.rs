//! Rearrangements without copying.

use super::args::{Arg, End, unify};
use super::data::{GivenSize, Pattern, Slot};
use super::einsum::too_large;
use super::input::{ArrayElements, BorrowedOrOwned};
use super::rank::{AnyRank, OutRank};
use crate::error::DimError;
use crate::plan::shape::volume;
use crate::storage::array::view;
use kernels::scalar::Element;
use ndarray::ArrayView;
use smallvec::SmallVec;

/// The dimension type of a view.
type Nd<O, Rest> = <<O as OutRank<Rest>>::Rank as AnyRank>::Nd;

/// A view of an array along other axes.
pub fn rearrange_view<'a, O: OutRank<Rest>, T: Element, Rest: AnyRank>(
    pattern: &'static Pattern,
    operand: (Arg<ArrayElements<'a, T>, (), Rest>, End),
    given: &[GivenSize],
) -> Result<ArrayView<'a, T, Nd<O, Rest>>, DimError> {
    let values = (operand.0.values, End);
    if values.0.list.is_some() {
        let what = "a list of arrays is not one array in memory, so there is no view of it: use `rearrange!`";
        return Err(DimError::Shape { what: what.into() });
    }
    let (shapes, layout) = unify::<T, ()>(pattern, given, &values)?;
    let sizes = layout.shape(pattern.output)?;
    volume(sizes.iter().copied(), 1).ok_or_else(|| too_large(pattern, &sizes))?;
    let own: SmallVec<[isize; 8]> = values.0.axes.iter().map(|axis| axis.stride).collect();
    let mut row: SmallVec<[isize; 8]> = SmallVec::from_elem(0, layout.sizes.len());
    layout.spread(pattern.inputs[0], &[], shapes[0].positional(), &own, &mut row)?;
    let mut axes: SmallVec<[(usize, isize); 6]> = SmallVec::new();
    layout.order(pattern.output);
    for slot in pattern.output {
        let loops = layout.loops_of(slot, 0);
        if matches!(slot, Slot::Rest) {
            axes.extend(loops.iter().map(|&axis| (layout.sizes[axis], row[axis])));
            continue;
        }
        let parts = loops.iter().map(|&axis| (layout.sizes[axis], row[axis]));
        axes.push(merged(parts).ok_or_else(|| apart(pattern))?);
    }
    let BorrowedOrOwned::Borrowed(elements) = values.0.held else {
        unreachable!("only lists are put together")
    };
    Ok(view(elements, &axes))
}

#[cold]
fn apart(pattern: &Pattern) -> DimError {
    let what = format!(
        "the axes of a group in `{}` are not adjacent in memory, so there is no view of them as one axis: use `rearrange!`, which copies",
        pattern.text
    );
    DimError::Shape { what }
}

/// Merges several axes into one, the last one fastest, if their strides allow it.
fn merged(parts: impl DoubleEndedIterator<Item = (usize, isize)> + Clone) -> Option<(usize, isize)> {
    let size: usize = parts.clone().map(|(size, _)| size).product();
    if size == 0 {
        return Some((0, 0));
    }
    let mut whole: Option<(usize, isize)> = None;
    for (size, stride) in parts.rev().filter(|&(size, _)| size != 1) {
        whole = match whole {
            None => Some((size, stride)),
            Some((inner, step)) if stride == step.wrapping_mul(inner as isize) => Some((inner * size, step)),
            Some(_) => return None,
        };
    }
    Some(whole.unwrap_or((1, 0)))
}
