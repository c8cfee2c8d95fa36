//! New memory for results. With the feature `std`, large tensors that are dropped return their
//! memory to a pool.

use crate::error::Error;
use crate::memory::elements::OutputSlots;
use alloc::vec::Vec;
use core::alloc::Layout;

#[cfg(feature = "std")]
pub use crate::memory::pool::{empty_pool, pool_bytes, pool_limit, set_pool_limit};

/// Results of at least this many bytes ask for huge pages.
#[cfg(all(feature = "std", target_os = "linux"))]
const LARGE: usize = 4 << 20;

/// Memory for `len` elements, or an error instead of an abort.
#[cfg_attr(not(unoptimized), inline(always))]
pub fn reserve<T>(len: usize) -> Result<Vec<T>, Error> {
    #[cfg(feature = "std")]
    if let Some(memory) = super::pool::recycled(len) {
        return Ok(memory);
    }
    // `Vec::try_reserve_exact` is slower: it takes a reference, so the vector would lie in memory.
    let Some(layout) = Layout::array::<T>(len).ok() else { return Err(too_large(len)) };
    if layout.size() == 0 {
        return Ok(Vec::new());
    }
    // SAFETY: the layout's size is not 0.
    let start = unsafe { alloc::alloc::alloc(layout) };
    if start.is_null() {
        return Err(too_large(len));
    }
    #[cfg(all(feature = "std", target_os = "linux"))]
    if layout.size() >= LARGE {
        advise(start, layout.size());
    }
    // SAFETY: the memory was allocated for an array of `len` elements by the global allocator, and
    // the vector is empty.
    Ok(unsafe { Vec::from_raw_parts(start.cast(), 0, len) })
}

/// `len` elements with their default value, or an error instead of an abort. If the default is 0,
/// the allocator can provide zeroed memory, without a pass over it.
pub fn defaults<T: Clone + Default>(len: usize) -> Result<Vec<T>, Error> {
    // If memory is short, `reserve` returns an error, but `vec!` aborts.
    drop(reserve::<T>(len)?);
    Ok(alloc::vec![T::default(); len])
}

/// `len` copies of an element, or an error instead of an abort.
pub fn repeated<T: Clone>(element: T, len: usize) -> Result<Vec<T>, Error> {
    let mut data = reserve(len)?;
    data.resize(len, element);
    Ok(data)
}

#[cold]
fn too_large(len: usize) -> Error {
    Error::TooLarge { elements: len }
}

/// Asks for huge pages between the first and the last boundary of a huge page in the memory.
#[cfg(all(feature = "std", target_os = "linux"))]
#[cold]
fn advise(start: *mut u8, bytes: usize) {
    const HUGE: usize = 2 << 20;
    let skipped = start.align_offset(HUGE);
    let bytes = bytes.saturating_sub(skipped) / HUGE * HUGE;
    if bytes > 0 {
        // SAFETY: the range is page-aligned and within memory that was just allocated; the advice
        // changes only how the memory is mapped, not its contents. The result of the call is
        // ignored, because the advice is optional.
        unsafe { libc::madvise(start.add(skipped).cast(), bytes, libc::MADV_HUGEPAGE) };
    }
}

/// New memory for a result that is written in parts, each slot once.
pub struct InParts<T> {
    data: Vec<T>,
    len: usize,
    given: usize,
}

impl<T: Copy> InParts<T> {
    /// Memory for `len` elements, or an error instead of an abort.
    pub fn of(len: usize) -> Result<Self, Error> {
        Ok(InParts { data: reserve(len)?, len, given: 0 })
    }

    /// All slots.
    pub fn places(&mut self) -> OutputSlots<'_, T> {
        OutputSlots::counted(&mut self.data.spare_capacity_mut()[..self.len], &mut self.given)
    }

    /// The elements.
    ///
    /// # Safety
    ///
    /// The parts did not overlap: no slot was written twice. After each call of
    /// [`OutputSlots::reached`], all positions of its loops were written.
    ///
    /// # Panics
    ///
    /// If not all slots have been written.
    pub unsafe fn finish(mut self) -> Vec<T> {
        assert_eq!(self.given, self.len, "all slots are written");
        // SAFETY: as many values were written as there are slots, and no slot was written twice, as
        // the caller promises.
        unsafe { self.data.set_len(self.len) };
        self.data
    }
}
