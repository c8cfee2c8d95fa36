//! Elements that are assigned to.

use crate::error::Origin;
use crate::storage::Evaluated;
use crate::storage::axes::AxisBlock;
use crate::storage::view::BoundAxes;
use crate::types::rank::{Rank, Rank0};
use crate::types::set::Dims;
use core::marker::PhantomData;
use kernels::memory::axes::{Axis, is_within};
use kernels::memory::elements::ElementsMut;

/// Exclusively borrowed elements with the dims `S` and the positional axes `R`, for assignment.
///
/// `X` lists the computed indices, as for [`View`](super::View).
pub struct Place<'a, T, S: Dims, R: Rank = Rank0, X = ()> {
    start: *mut T,
    named: S::Axes,
    positional: R::Axes,
    indices: X,
    origin: Origin,
    memory: PhantomData<(&'a mut [T], fn() -> S)>,
}

impl<'a, T: Clone, S: Dims, R: Rank> From<&'a mut Evaluated<T, S, R>> for Place<'a, T, S, R> {
    /// All elements of a tensor.
    #[track_caller]
    fn from(owned: &'a mut Evaluated<T, S, R>) -> Self {
        owned.prepare_change();
        let (named, positional, origin) = (*owned.named(), *owned.positional(), owned.origin());
        // SAFETY: the axes of an owned tensor only reach its elements, and the tensor is borrowed
        // exclusively.
        unsafe { Place::new(owned.as_mut_ptr(), named, positional, (), origin) }
    }
}

impl<'a, T, S: Dims, R: Rank, X> Place<'a, T, S, R, X> {
    /// A place.
    ///
    /// # Safety
    ///
    /// As for `View::new`, with exclusive access for `'a`.
    #[cfg_attr(not(unoptimized), inline(always))]
    pub(crate) unsafe fn new(
        start: *mut T,
        named: S::Axes,
        positional: R::Axes,
        indices: X,
        origin: Origin,
    ) -> Self {
        Place { start, named, positional, indices, origin, memory: PhantomData }
    }

    /// Like [`View::bound`](super::View::bound), for exclusively borrowed elements.
    #[cfg_attr(not(unoptimized), inline(always))]
    pub(crate) fn bound(elements: ElementsMut<'a, T>, read: BoundAxes<S, R, X>, origin: Origin) -> Self {
        let BoundAxes { offset, named, positional, indices } = read;
        let mut elements = elements.moved(offset);
        elements.assert_axes(named.as_slice(), positional.as_slice());
        // SAFETY: as in `View::bound`, each position of the new axes is a position of the old ones.
        // Without indices, different positions are different elements if this holds for the old
        // axes. Indices have the size and the stride of the axis that they select from. The
        // elements are borrowed exclusively for `'a`.
        unsafe { Place::new(elements.as_mut_ptr(), named, positional, indices, origin) }
    }

    /// The elements at the positions `start..start + len` along the `at`th dim.
    ///
    /// # Panics
    ///
    /// If the range is out of bounds.
    pub(crate) fn part(mut self, at: usize, start: usize, len: usize) -> Self {
        let axis = &mut self.named.as_mut_slice()[at];
        assert!(start <= axis.size && len <= axis.size - start, "the part is within the dim");
        // (The axes reach a subset of their previous elements. An empty part may begin after the
        // last element; nothing is accessed.)
        self.start = self.start.wrapping_offset((start as isize).wrapping_mul(axis.stride));
        axis.size = len;
        self
    }

    /// Elements of a tensor, along other axes from the first element in memory.
    ///
    /// # Panics
    ///
    /// If the axes, together with the axes that indices select from, reach beyond the tensor's
    /// elements, or the elements are traced.
    #[track_caller]
    pub(crate) fn within<Y: Dims, Q: Rank>(
        owned: &'a mut Evaluated<T, Y, Q>,
        named: S::Axes,
        positional: R::Axes,
        (indices, selected): (X, &[Axis]),
        origin: Origin,
    ) -> Self
    where
        T: Clone,
    {
        let all = owned.all_mut();
        let axes = named.as_slice().iter().chain(positional.as_slice()).chain(selected);
        assert!(is_within(all.len(), 0, axes.map(Axis::parts)), "the axes do not reach beyond the elements");
        // SAFETY: the axes do not reach beyond the elements, as asserted; the tensor is borrowed
        // exclusively.
        unsafe { Place::new(all.as_mut_ptr(), named, positional, indices, origin) }
    }

    /// All elements of a slice. `order[0]` is the outermost axis.
    ///
    /// # Panics
    ///
    /// If `sizes`, which are in that order, are not the shape of `data`.
    pub(crate) fn in_order(data: &'a mut [T], order: &[usize], sizes: &[usize]) -> Self
    where
        X: Default,
    {
        assert_eq!(R::N, 0, "all axes are those of dims");
        let named = crate::types::axes::in_order(data.len(), order, sizes);
        let positional = R::Axes::filled(Axis::default());
        // SAFETY: the strides count the elements of the slice row by row. The slice is borrowed
        // exclusively for `'a`; there are no indices.
        unsafe { Place::new(data.as_mut_ptr(), named, positional, X::default(), None) }
    }

    /// The elements for plans and kernels, and the computed indices, whose offsets the kernels add.
    #[cfg_attr(not(unoptimized), inline(always))]
    pub(crate) fn elements(&mut self) -> (ElementsMut<'_, T>, &X) {
        // SAFETY: the caller of `new` promised this.
        let elements =
            unsafe { ElementsMut::new(self.start, self.named.as_slice(), self.positional.as_slice()) };
        (elements, &self.indices)
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
