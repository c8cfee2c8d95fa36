//! Prefetching: requests for cache lines before they are needed.

/// Prefetches the cache lines of `len` elements, as if `start` were the start of a cache line. Only
/// the first line of an element larger than a cache line is prefetched.
#[cfg_attr(not(unoptimized), inline(always))]
pub fn prefetch_lines<T>(start: *const T, len: usize) {
    for x in (0..len).step_by(per_line::<T>()) {
        prefetch(start.wrapping_add(x));
    }
}

/// Prefetches `len` elements from `start` on.
#[cfg_attr(not(unoptimized), inline(always))]
pub fn prefetch_row<T>(start: *const T, len: usize) {
    prefetch_lines(start, len);
    // A row that does not start at the start of a cache line may end in one more line.
    prefetch(start.wrapping_add(len.saturating_sub(1)));
}

/// Bytes of a cache line.
pub const LINE: usize = 64;

/// How many elements fit into a cache line, at least one.
pub const fn per_line<T>() -> usize {
    let size = size_of::<T>();
    if size == 0 || size > LINE { 1 } else { LINE / size }
}

/// Prefetches the cache line of `place`. Does nothing on targets other than x86-64.
#[cfg_attr(not(unoptimized), inline(always))]
fn prefetch<T>(place: *const T) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a prefetch is a hint that cannot fault, whatever the address; every x86-64 processor
    // has it.
    unsafe {
        core::arch::x86_64::_mm_prefetch::<{ core::arch::x86_64::_MM_HINT_T0 }>(place.cast())
    };
    #[cfg(not(target_arch = "x86_64"))]
    let _ = place;
}
