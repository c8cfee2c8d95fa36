//! Prefetching: asking for lines of memory before they are needed.

/// Asks the memory for as many lines as `len` elements fill, the first of which has the one at `start`.
#[inline(always)]
pub fn fetch_lines<T>(start: *const T, len: usize) {
    for x in (0..len).step_by(per_line::<T>()) {
        fetch(start.wrapping_add(x));
    }
}

/// Asks the memory for `len` elements from `start` on.
#[inline(always)]
pub fn fetch_row<T>(start: *const T, len: usize) {
    fetch_lines(start, len);
    // A row that does not start with a line ends in one more.
    fetch(start.wrapping_add(len.saturating_sub(1)));
}

/// Bytes that come from memory together.
pub const LINE: usize = 64;

/// How many elements begin in them, one at least.
pub const fn per_line<T>() -> usize {
    let size = size_of::<T>();
    if size == 0 || size > LINE { 1 } else { LINE / size }
}

/// Asks the memory for what lies at `place`.
#[inline(always)]
fn fetch<T>(place: *const T) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a hint, which cannot fault wherever it points; every x86-64 has it.
    unsafe {
        core::arch::x86_64::_mm_prefetch::<{ core::arch::x86_64::_MM_HINT_T0 }>(place.cast())
    };
    #[cfg(not(target_arch = "x86_64"))]
    let _ = place;
}
