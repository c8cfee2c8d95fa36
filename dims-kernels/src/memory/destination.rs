//! Where a routine writes its results, one behind the other.

use crate::error::Error;
use crate::memory::allocate::reserve;
use crate::memory::freed::Freed;
#[cfg(feature = "std")]
use crate::memory::hollow;
use alloc::vec::Vec;
use core::mem::MaybeUninit;
use core::slice::from_raw_parts_mut;

/// The memory of a result. A routine that gets one returns the elements if the memory is new, else an empty vector.
pub enum Destination<'d, T> {
    /// New memory for so many elements.
    New(usize),
    /// New memory for this number of elements, which are not computed: see [`hollow`].
    #[cfg(feature = "std")]
    Hollow(usize),
    /// Memory of the caller, whose elements are overwritten.
    Given(&'d mut [T]),
    /// Memory of elements that are no longer needed. The routine may read each of them, at the position at which it is written.
    Reused(&'d Freed<T>),
}

impl<T> Destination<'_, T> {
    /// New memory for `len` results of a step.
    #[cfg_attr(not(unoptimized), inline(always))]
    pub fn of_step(len: usize) -> Self {
        #[cfg(feature = "std")]
        if hollow::is_hollow() {
            return Destination::Hollow(len);
        }
        Destination::New(len)
    }

    /// How many results there are.
    #[cfg_attr(not(unoptimized), inline(always))]
    pub fn len(&self) -> usize {
        match self {
            Destination::New(len) => *len,
            #[cfg(feature = "std")]
            Destination::Hollow(len) => *len,
            Destination::Given(places) => places.len(),
            Destination::Reused(freed) => freed.len(),
        }
    }

    /// Whether there are no results.
    #[cfg_attr(not(unoptimized), inline(always))]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl<T: Copy + 'static> Destination<'_, T> {
    /// Calls `write` with a pointer to the first of the [`len`](Destination::len) places.
    ///
    /// For [hollow](Destination::Hollow) memory, `write` is not called. Other results must not depend on the call.
    ///
    /// # Safety
    ///
    /// `write` gives each place a value, or returns an error. It reads no place to which it has not written, unless the memory is reused.
    #[cfg_attr(not(unoptimized), inline(always))]
    pub unsafe fn write(self, write: impl FnOnce(*mut T) -> Result<(), Error>) -> Result<Vec<T>, Error> {
        let mut new = Vec::new();
        let (start, len) = match self {
            #[cfg(feature = "std")]
            Destination::Hollow(len) if hollow::has_zero::<T>() => return hollow::zeros(len),
            Destination::Given(places) => (places.as_mut_ptr(), 0),
            Destination::Reused(freed) => (freed.start(), 0),
            own => {
                let len = own.len();
                new = reserve(len)?;
                (new.as_mut_ptr(), len)
            }
        };
        write(start)?;
        // SAFETY: `len` is that of new memory, and each place was written, as the caller promises; else it is 0.
        unsafe { new.set_len(len) };
        Ok(new)
    }

    /// As [`write`](Destination::write), for routines that write over nothing they read: `fill` gets all places.
    ///
    /// # Panics
    ///
    /// If the memory is reused.
    ///
    /// # Safety
    ///
    /// `fill` gives each place a value, or returns an error.
    #[cfg_attr(not(unoptimized), inline(always))]
    pub unsafe fn fill(
        self,
        fill: impl FnOnce(&mut [MaybeUninit<T>]) -> Result<(), Error>,
    ) -> Result<Vec<T>, Error> {
        assert!(
            !matches!(self, Destination::Reused(_)),
            "only passes over all elements write over what they read"
        );
        let len = self.len();
        // SAFETY: there are `len` places, of new memory or of a slice that is borrowed exclusively; `fill` writes all of them, as the caller promises. (Of a slice it
        // writes elements alone, which are initialised.)
        unsafe { self.write(|start| fill(from_raw_parts_mut(start.cast(), len))) }
    }

    /// Each result is the value of `element` for its number.
    ///
    /// # Panics
    ///
    /// If the memory is reused.
    #[cfg_attr(not(unoptimized), inline(always))]
    pub fn from_fn(self, element: impl Fn(usize) -> T) -> Result<Vec<T>, Error> {
        let fill = |places: &mut [MaybeUninit<T>]| {
            for (at, place) in places.iter_mut().enumerate() {
                place.write(element(at));
            }
            Ok(())
        };
        // SAFETY: each place is written.
        unsafe { self.fill(fill) }
    }
}
