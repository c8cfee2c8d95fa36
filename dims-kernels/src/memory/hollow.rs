//! Memory without computed elements, for functions that are recorded from sizes alone.
//!
//! Kernels do not write this memory. Reads return zeros.

use crate::error::Error;
use crate::memory::registry;
use alloc::alloc::alloc_zeroed;
use alloc::vec::Vec;
use core::alloc::Layout;
use core::any::TypeId;
use core::cell::Cell;

std::thread_local! {
    /// Whether this thread has a `HollowScope`.
    static HOLLOW: Cell<bool> = const { Cell::new(false) };
    static RESERVING: Cell<bool> = const { Cell::new(false) };
    /// Whether this thread has reserved hollow memory.
    static RESERVED: Cell<bool> = const { Cell::new(false) };
}

/// Whether this thread may have hollow memory: a function was recorded from sizes.
#[cold]
pub fn may_exist() -> bool {
    RESERVED.get()
}

/// Whether this thread is allocating hollow memory. Allocators in tests use this to check that
/// hollow memory is not read.
#[doc(hidden)]
pub fn is_reserving() -> bool {
    RESERVING.get()
}

/// While this value exists and a function is recorded, results of kernels on this thread are
/// hollow, if they are `bool`s or real numbers of at most 64 bits.
pub struct HollowScope {
    before: bool,
}

impl HollowScope {
    /// Starts the scope.
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

/// Whether results on this thread are hollow. They can only be hollow while some memory is marked,
/// so otherwise this costs one atomic load.
#[cfg_attr(not(unoptimized), inline(always))]
pub fn is_hollow() -> bool {
    registry::is_active() && of_thread()
}

#[cold]
#[inline(never)]
fn of_thread() -> bool {
    HOLLOW.get()
}

/// Whether the type is `bool` or a real number of at most 64 bits. All-zero bytes are a value of
/// these types.
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

/// Hollow memory for `len` elements; `None` if they are neither `bool`s nor real numbers of at most
/// 64 bits.
pub fn reserved<T: 'static>(len: usize) -> Result<Option<Vec<T>>, Error> {
    if has_zero::<T>() { zeros(len).map(Some) } else { Ok(None) }
}

/// Hollow memory for `len` elements.
///
/// # Panics
///
/// If the elements are neither `bool`s nor real numbers of at most 64 bits.
#[cold]
#[inline(never)]
pub(crate) fn zeros<T: 'static>(len: usize) -> Result<Vec<T>, Error> {
    assert!(has_zero::<T>(), "hollow elements are `bool`s or real numbers of at most 64 bits");
    let layout = Layout::array::<T>(len).map_err(|_| Error::TooLarge { elements: len })?;
    if layout.size() == 0 {
        return Ok(Vec::new());
    }
    RESERVED.set(true);
    RESERVING.set(true);
    // SAFETY: the layout's size is not 0.
    let start = unsafe { alloc_zeroed(layout) };
    RESERVING.set(false);
    if start.is_null() {
        return Err(Error::TooLarge { elements: len });
    }
    // SAFETY: the memory was allocated for an array of `len` elements by the global allocator. All
    // bytes are 0, which is a value of the type, as `has_zero` says.
    Ok(unsafe { Vec::from_raw_parts(start.cast(), len, len) })
}
