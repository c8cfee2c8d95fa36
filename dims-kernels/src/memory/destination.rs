//! Where a routine writes its results.

use crate::error::Error;
use crate::memory::allocate::reserve;
use crate::memory::freed::Freed;
#[cfg(feature = "std")]
use crate::memory::hollow;
use alloc::vec::Vec;
use core::mem::MaybeUninit;
use core::slice::from_raw_parts_mut;

/// The memory of a result. A routine returns the elements if the memory is new, and otherwise an
/// empty vector.
pub enum Destination<'d, T> {
    /// New memory for this number of elements.
    New(usize),
    /// New memory for this number of elements. `bool`s and real numbers of at most 64 bits are not
    /// computed: see [`hollow`].
    #[cfg(feature = "std")]
    Hollow(usize),
    /// Memory of the caller, which is overwritten.
    Given(&'d mut [T]),
    /// The memory of elements that are no longer needed. The routine may read an element only at
    /// the position that it is about to write.
    Reused(&'d Freed<T>),
}

impl<T> Destination<'_, T> {
    /// New memory for the `len` elements of a step's result.
    #[cfg_attr(not(unoptimized), inline(always))]
    pub fn of_step(len: usize) -> Self {
        #[cfg(feature = "std")]
        if hollow::is_hollow() {
            return Destination::Hollow(len);
        }
        Destination::New(len)
    }

    /// The number of elements.
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

    /// Whether there are no elements.
    #[cfg_attr(not(unoptimized), inline(always))]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl<T: Copy + 'static> Destination<'_, T> {
    /// Calls `write` with a pointer to the first of the [`len`](Destination::len) slots.
    ///
    /// For [hollow](Destination::Hollow) memory of elements that are not computed, `write` is not
    /// called, so it must have no other effects that matter.
    ///
    /// # Safety
    ///
    /// `write` gives each slot a value, or returns an error. It does not read slots before it
    /// writes them, unless the memory is reused.
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
        // SAFETY: `len` is 0 unless the memory is new. In new memory, all slots were written, as
        // the caller promises.
        unsafe { new.set_len(len) };
        Ok(new)
    }

    /// Like [`write`](Destination::write), for routines that do not overwrite their operands:
    /// `fill` gets all slots.
    ///
    /// # Panics
    ///
    /// If the memory is reused.
    ///
    /// # Safety
    ///
    /// `fill` gives each slot a value, or returns an error. It never makes a slot uninitialized.
    #[cfg_attr(not(unoptimized), inline(always))]
    pub unsafe fn fill(
        self,
        fill: impl FnOnce(&mut [MaybeUninit<T>]) -> Result<(), Error>,
    ) -> Result<Vec<T>, Error> {
        assert!(!matches!(self, Destination::Reused(_)), "this routine must not overwrite its operands");
        let len = self.len();
        // SAFETY: there are `len` slots, in new memory or in a slice that is borrowed exclusively.
        // As the caller promises, `fill` writes all slots unless it fails. Even then, it makes no
        // slot uninitialized, so the elements of a given slice stay valid.
        unsafe { self.write(|start| fill(from_raw_parts_mut(start.cast(), len))) }
    }

    /// Computes each element as `element` of its index.
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
        // SAFETY: all slots are written.
        unsafe { self.fill(fill) }
    }
}
