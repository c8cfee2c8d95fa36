//! Tensors that borrow their elements, such as the result of binding an array to dims.

use crate::error::Origin;
use crate::storage::axes::{AxisBlock, permuted};
use crate::types::rank::{Rank, Rank0};
use crate::types::set::Dims;
use core::marker::PhantomData;
use kernels::memory::axes::Axis;
use kernels::memory::elements::Elements;

/// Borrowed elements, with a size and a stride for each dim of `S` and for each of the positional
/// axes `R`.
///
/// `X` lists the computed indices, as in `w.at((ids.at(i), j))`; it is `()` if there are none.
pub struct View<'a, T, S: Dims, R: Rank = Rank0, X = ()> {
    start: *const T,
    named: S::Axes,
    positional: R::Axes,
    indices: X,
    origin: Origin,
    memory: PhantomData<(&'a [T], fn() -> S)>,
}

// SAFETY: a view is like `&[T]`, which may go to another thread because `T` is `Sync`; the indices
// are `Send`.
unsafe impl<T: Sync, S: Dims, R: Rank, X: Send> Send for View<'_, T, S, R, X> {}
// SAFETY: a shared reference to a view is like `&&[T]`, a shared reference to its elements; the
// indices are `Sync`.
unsafe impl<T: Sync, S: Dims, R: Rank, X: Sync> Sync for View<'_, T, S, R, X> {}

impl<T, S: Dims, R: Rank, X: Clone> Clone for View<'_, T, S, R, X> {
    fn clone(&self) -> Self {
        View { indices: self.indices.clone(), ..*self }
    }
}

impl<T, S: Dims, R: Rank, X: Copy> Copy for View<'_, T, S, R, X> {}

/// The result of applying binders to a source's axes: the offset of the first element, the axes,
/// and the computed indices.
pub(crate) struct BoundAxes<S: Dims, R: Rank, X> {
    pub(crate) offset: isize,
    pub(crate) named: S::Axes,
    pub(crate) positional: R::Axes,
    pub(crate) indices: X,
}

impl<'a, T, S: Dims, R: Rank, X> View<'a, T, S, R, X> {
    /// A view.
    ///
    /// # Safety
    ///
    /// If no axis is empty, then for every position of the axes, and every in-range value of those
    /// `indices` that are computed for each element, `start` offset by the strides is a valid
    /// element for `'a`.
    #[cfg_attr(not(unoptimized), inline(always))]
    pub(crate) unsafe fn new(
        start: *const T,
        named: S::Axes,
        positional: R::Axes,
        indices: X,
        origin: Origin,
    ) -> Self {
        View { start, named, positional, indices, origin, memory: PhantomData }
    }

    /// A view of `elements` along the axes that binders make of the elements' own axes.
    #[cfg_attr(not(unoptimized), inline(always))]
    pub(crate) fn bound(elements: Elements<'a, T>, read: BoundAxes<S, R, X>, origin: Origin) -> Self {
        let BoundAxes { offset, named, positional, indices } = read;
        let elements = elements.moved(offset);
        elements.assert_axes(named.as_slice(), positional.as_slice());
        // SAFETY: binders make axes of the old ones (by slicing, splitting, diagonals, other steps,
        // or sums of dims), or add axes of size 1 or stride 0. `offset` leads to the first element.
        // So each position of the new axes is a position of the old ones. Indices have the size and
        // the stride of the axis that they select from.
        unsafe { View::new(elements.as_ptr(), named, positional, indices, origin) }
    }

    /// All elements of a slice. `order[0]` is the outermost axis.
    ///
    /// # Panics
    ///
    /// If `sizes`, which are in that order, are not the shape of `data`.
    #[cfg(any(feature = "npy", feature = "safetensors"))]
    pub(crate) fn in_order(data: &'a [T], order: &[usize], sizes: &[usize]) -> Self
    where
        X: Default,
    {
        assert_eq!(R::N, 0, "all axes are those of dims");
        let named = crate::types::axes::in_order(data.len(), order, sizes);
        let positional = R::Axes::filled(Axis::default());
        // SAFETY: the strides count the elements of the slice row by row. The slice is borrowed for
        // `'a`; there are no indices.
        unsafe { View::new(data.as_ptr(), named, positional, X::default(), None) }
    }

    /// The elements for plans and kernels, which add the offsets of computed indices.
    #[cfg_attr(not(unoptimized), inline(always))]
    pub(crate) fn elements(&self) -> Elements<'a, T> {
        // SAFETY: the caller of `new` promised this.
        unsafe { Elements::new(self.start, self.named.as_slice(), self.positional.as_slice()) }
    }

    /// The axes of the dims, in the order of the set.
    #[cfg_attr(not(unoptimized), inline(always))]
    pub(crate) fn named(&self) -> &S::Axes {
        &self.named
    }

    #[cfg_attr(not(unoptimized), inline(always))]
    pub(crate) fn positional(&self) -> &R::Axes {
        &self.positional
    }

    #[cfg_attr(not(unoptimized), inline(always))]
    pub(crate) fn indices(&self) -> &X {
        &self.indices
    }

    #[cfg_attr(not(unoptimized), inline(always))]
    pub(crate) fn origin(&self) -> Origin {
        self.origin
    }
}

impl<'a, T, S: Dims, R: Rank> View<'a, T, S, R> {
    /// Elements whose axes are `own`, with these axes in another order and possibly new broadcast
    /// axes: see [`permuted`]. The positional axes are `positional`.
    ///
    /// # Panics
    ///
    /// If `from` does not name each axis once, or the number of positional axes is not that of `R`.
    #[inline]
    pub(crate) fn permuted(
        elements: Elements<'a, T>,
        (own, positional): (&[Axis], &[Axis]),
        from: &[usize],
        sizes: impl Fn(usize) -> usize,
        origin: Origin,
    ) -> Self {
        let named: S::Axes = permuted(own, from, sizes);
        let mut kept = R::Axes::filled(Axis::default());
        kept.as_mut_slice().copy_from_slice(positional);
        // SAFETY: these are all axes of the elements in another order, and broadcast axes, so each
        // position is that of an element. If a broadcast axis is empty, nothing is read.
        unsafe { View::new(elements.as_ptr(), named, kept, (), origin) }
    }

    #[cfg_attr(not(unoptimized), inline(always))]
    pub(crate) fn view(&self) -> Self {
        *self
    }

    /// The elements with other dims along the same axes.
    ///
    /// # Panics
    ///
    /// As for [`permuted`](View::permuted).
    #[inline]
    pub(crate) fn with_dims<X: Dims>(
        &self,
        from: &[usize],
        sizes: impl Fn(usize) -> usize,
    ) -> View<'a, T, X, R> {
        let own = (self.named.as_slice(), self.positional.as_slice());
        View::permuted(self.elements(), own, from, sizes, self.origin)
    }

    /// The elements at the position `at` of the last dims. The first dims, `X`, remain.
    ///
    /// # Panics
    ///
    /// If the position is out of range.
    pub(crate) fn at_last<X: Dims>(&self, at: &[usize]) -> View<'a, T, X, R> {
        let (kept, last) = self.named.as_slice().split_at(X::Axes::LEN);
        assert_eq!(last.len(), at.len(), "a position for each removed dim");
        let mut start = self.start;
        for (axis, &at) in last.iter().zip(at) {
            assert!(at < axis.size, "the position is within its axis");
            // (As in `Evaluated::at_last`, the product may wrap.)
            start = start.wrapping_offset((at as isize).wrapping_mul(axis.stride));
        }
        let mut named = X::Axes::filled(Axis::default());
        named.as_mut_slice().copy_from_slice(kept);
        // SAFETY: the removed axes have fixed positions, so each position of the remaining axes is
        // a position of this view.
        unsafe { View::new(start, named, self.positional, (), self.origin) }
    }
}
