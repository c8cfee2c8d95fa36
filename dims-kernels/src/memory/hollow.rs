//! Memory without computed elements, for functions that are recorded from sizes alone.
//!
//! The memory is reserved, and its pages are touched only by a read. They read as zeros.

use crate::error::Error;
use crate::memory::registry;
use alloc::alloc::alloc_zeroed;
use alloc::vec::Vec;
use core::alloc::Layout;
use core::any::TypeId;
use core::cell::Cell;

std::thread_local! {
    /// Whether results of this thread are hollow.
    static HOLLOW: Cell<bool> = const { Cell::new(false) };
    /// Whether this thread asks for hollow memory.
    static RESERVING: Cell<bool> = const { Cell::new(false) };
}

/// Whether this thread asks for hollow memory, for allocators of tests, which check that nobody reads it.
#[doc(hidden)]
pub fn is_reserving() -> bool {
    RESERVING.get()
}

/// While it lives, results of kernels on this thread are hollow: memory of the right length, to which they write nothing.
pub struct HollowScope {
    before: bool,
}

impl HollowScope {
    /// Begins.
    #[cold]
    pub fn new() -> Self {
        HollowScope { before: HOLLOW.replace(true) }
    }
}

impl Default for HollowScope {
    fn default() -> Self {
        HollowScope::new()
    }
}

impl Drop for HollowScope {
    fn drop(&mut self) {
        HOLLOW.set(self.before);
    }
}

/// Whether results are hollow now. (They are only while a function is recorded, so this costs the test of a flag.)
#[cfg_attr(not(unoptimized), inline(always))]
pub fn is_hollow() -> bool {
    registry::is_active() && of_thread()
}

#[cold]
#[inline(never)]
fn of_thread() -> bool {
    HOLLOW.get()
}

/// Whether all bytes 0 are a value of the type: it is a number or `bool`.
#[cfg_attr(not(unoptimized), inline(always))]
pub(crate) fn has_zero<T: 'static>() -> bool {
    let own = TypeId::of::<T>();
    macro_rules! is_one_of {
        ($($t:ty)*) => { $(own == TypeId::of::<$t>())||* };
    }
    #[cfg(feature = "half")]
    if is_one_of!(half::f16 half::bf16) {
        return true;
    }
    is_one_of!(f32 f64 i8 i16 i32 i64 isize u8 u16 u32 u64 usize bool)
}

/// Hollow memory for `len` elements; `None` for elements that are no real numbers and not `bool`.
pub fn reserved<T: 'static>(len: usize) -> Result<Option<Vec<T>>, Error> {
    if has_zero::<T>() { zeros(len).map(Some) } else { Ok(None) }
}

/// Hollow memory for `len` elements.
///
/// # Panics
///
/// If the elements are no real numbers and not `bool`.
#[cold]
#[inline(never)]
pub(crate) fn zeros<T: 'static>(len: usize) -> Result<Vec<T>, Error> {
    assert!(has_zero::<T>(), "the elements are numbers");
    let layout = Layout::array::<T>(len).map_err(|_| Error::TooLarge { elements: len })?;
    if layout.size() == 0 {
        return Ok(Vec::new());
    }
    RESERVING.set(true);
    // SAFETY: the layout has a size.
    let start = unsafe { alloc_zeroed(layout) };
    RESERVING.set(false);
    if start.is_null() {
        return Err(Error::TooLarge { elements: len });
    }
    // SAFETY: the memory is that of an array of `len` elements, from the global allocator. All bytes are 0, which `has_zero` says is a value.
    Ok(unsafe { Vec::from_raw_parts(start.cast(), len, len) })
}
