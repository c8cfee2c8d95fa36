//! Elements that are assigned to.

use crate::error::Origin;
use crate::rank::{Rank, Rank0};
use crate::set::Dims;
use crate::storage::axes::AxisBlock;
use core::marker::PhantomData;

/// Exclusively borrowed elements with the dims `S` and the positional axes `R`, to assign to.
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

impl<'a, T, S: Dims, R: Rank, X> Place<'a, T, S, R, X> {
    /// A place.
    ///
    /// # Safety
    ///
    /// As for `View::new`, with exclusive access for `'a`.
    #[inline(always)]
    pub(crate) unsafe fn new(
        start: *mut T,
        named: S::Axes,
        positional: R::Axes,
        indices: X,
        origin: Origin,
    ) -> Self {
        Place { start, named, positional, indices, origin, memory: PhantomData }
    }

    /// All elements of a slice, the axis `order[0]` of the dims outermost.
    ///
    /// # Panics
    ///
    /// If `sizes`, which are in that order, are not the shape of `data`.
    pub(crate) fn in_order(data: &'a mut [T], order: &[usize], sizes: &[usize]) -> Self
    where
        X: Default,
    {
        assert_eq!(R::N, 0, "all axes are those of dims");
        let named = super::axes::in_order(data.len(), order, sizes);
        let positional = R::Axes::filled(super::axes::Axis::default());
        // SAFETY: the strides count the elements of the slice, which is borrowed exclusively for `'a`, row by row; there are no indices.
        unsafe { Place::new(data.as_mut_ptr(), named, positional, X::default(), None) }
    }

    /// The element at the origin.
    #[inline(always)]
    pub(crate) fn as_mut_ptr(&mut self) -> *mut T {
        self.start
    }

    /// The axes of the dims, in the order of the set.
    #[inline(always)]
    pub(crate) fn named(&self) -> &S::Axes {
        &self.named
    }

    /// The positional axes.
    #[inline(always)]
    pub(crate) fn positional(&self) -> &R::Axes {
        &self.positional
    }

    /// The computed indices.
    #[inline(always)]
    pub(crate) fn indices(&self) -> &X {
        &self.indices
    }

    #[inline(always)]
    pub(crate) fn origin(&self) -> Origin {
        self.origin
    }
}
