//! Results and views as ndarray arrays.

use crate::plan::shape::volume;
use alloc::vec::Vec;
use kernels::memory::elements::Elements;
use kernels::memory::elements::Reaches;
use ndarray::{Array, ArrayView, Axis, Dimension, IxDyn, RawArrayView, ShapeBuilder};
use smallvec::SmallVec;

/// An array of these elements in standard layout.
///
/// Like `Array::from_shape_vec`, but checks only the number of elements. (For small arrays, the
/// checks of `from_shape_vec` are slow.)
///
/// # Panics
///
/// If the number of elements does not match the shape, or the shape is beyond ndarray's limit.
#[inline]
pub(crate) fn array<T, D: Dimension>(shape: D, data: Vec<T>) -> Array<T, D> {
    let wanted = shape.slice().iter().try_fold(1usize, |len, &size| len.checked_mul(size));
    if wanted != Some(data.len()) || data.is_empty() {
        assert_counted(shape.slice(), data.len());
    }
    // SAFETY: there are as many elements as the shape has, and no overflow in counting them.
    unsafe { Array::from_shape_vec_unchecked(shape, data) }
}

/// Panics unless the sizes multiply to `len`. (If a size is 0, the other sizes must still be within
/// ndarray's limit.)
#[cold]
fn assert_counted(sizes: &[usize], len: usize) {
    assert_eq!(volume(sizes.iter().copied(), 1), Some(len), "the sizes are the shape of the data");
}

/// The elements as an array view along these axes, each a size and a stride. Each position of these
/// axes must be a position of the elements' own axes.
pub(crate) fn view<'a, T, D: Dimension>(
    elements: Elements<'a, T>,
    axes: &[(usize, isize)],
) -> ArrayView<'a, T, D> {
    let (sizes, strides): (SmallVec<[usize; 6]>, SmallVec<[isize; 6]>) = axes.iter().copied().unzip();
    elements.assert_reach(0, &sizes, &strides);
    let start = elements.as_ptr();
    // ndarray takes nonnegative strides; axes with negative strides are reversed afterwards.
    let back =
        |&(size, stride): &(usize, isize)| if stride < 0 { stride * (size as isize - 1).max(0) } else { 0 };
    let empty = axes.iter().any(|&(size, _)| size == 0);
    let first = if empty { start } else { start.wrapping_offset(axes.iter().map(back).sum()) };
    let (mut sizes, mut strides) = (IxDyn::zeros(axes.len()), IxDyn::zeros(axes.len()));
    for (at, &(size, stride)) in axes.iter().enumerate() {
        (sizes[at], strides[at]) = (size, if empty { 0 } else { stride.unsigned_abs() });
    }
    // SAFETY: each position of the axes is a position of the elements' own axes, and the elements
    // are borrowed for `'a`. From the element at the far end of the reversed axes, all others are
    // at nonnegative offsets.
    let mut view = unsafe { RawArrayView::from_shape_ptr(sizes.strides(strides), first).deref_into_view() };
    for (at, _) in axes.iter().enumerate().filter(|(_, (_, stride))| *stride < 0) {
        view.invert_axis(Axis(at));
    }
    view.into_dimensionality().expect("the rank is that of the pattern")
}
