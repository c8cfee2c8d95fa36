//! The listener of a thread, which is notified when tensors release memory.

use core::cell::Cell;

/// Called with the address and the size in bytes of memory that no tensor uses any more.
pub type FreedListener = fn(usize, usize);

std::thread_local! {
    static LISTENER: Cell<Option<FreedListener>> = const { Cell::new(None) };
}

/// Whether this thread has a listener.
#[cfg_attr(not(unoptimized), inline(always))]
pub fn is_listening() -> bool {
    LISTENER.get().is_some()
}

/// Sets this thread's listener, and returns the previous one.
pub fn set_listener(listener: Option<FreedListener>) -> Option<FreedListener> {
    LISTENER.replace(listener)
}

/// Tells the listener that no tensor uses these elements any more.
#[cfg_attr(not(unoptimized), inline(always))]
pub fn freed<T>(start: *const T, len: usize) {
    if let Some(listener) = LISTENER.get() {
        tell(listener, start.addr(), len * size_of::<T>());
    }
}

#[cold]
#[inline(never)]
fn tell(listener: FreedListener, address: usize, bytes: usize) {
    if bytes > 0 {
        listener(address, bytes);
    }
}
