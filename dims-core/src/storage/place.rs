//! Elements that are assigned to.

use crate::error::Origin;
use crate::rank::{Rank, Rank0};
use crate::set::Dims;
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
