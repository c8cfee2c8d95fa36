//! Who is told, on this thread, which memory tensors no longer have.

use core::cell::Cell;

/// What is called with the address and the bytes of memory that no tensor has any more.
pub type FreedListener = fn(usize, usize);

std::thread_local! {
    static LISTENER: Cell<Option<FreedListener>> = const { Cell::new(None) };
}

/// Whether anybody listens on this thread.
#[cfg_attr(not(unoptimized), inline(always))]
pub fn is_listening() -> bool {
    LISTENER.get().is_some()
}

/// Who listens on this thread from now on. Returns who did so before.
pub fn set_listener(listener: Option<FreedListener>) -> Option<FreedListener> {
    LISTENER.replace(listener)
}

/// Tells that no tensor has these elements any more.
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
