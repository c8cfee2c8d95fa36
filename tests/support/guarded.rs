//! An allocator whose memory for recordings from sizes cannot be read: a read aborts the process.

use libc::{MAP_ANONYMOUS, MAP_FAILED, MAP_NORESERVE, MAP_PRIVATE, PROT_NONE, SIGSEGV, c_int};
use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};
use typed_dims_kernels::memory::hollow::is_reserving;

/// The system's allocator, except for hollow memory: the memory of results in recordings from
/// sizes. Such results have no elements.
pub struct Guarded;

/// The size of the address range for hollow memory, in bytes. The range uses no physical memory
/// and is never freed.
const ROOM: usize = 1 << 40;
const PAGE: usize = 4096;

static START: OnceLock<usize> = OnceLock::new();
static USED: AtomicUsize = AtomicUsize::new(0);

fn start() -> usize {
    *START.get_or_init(|| {
        // Freed hollow memory must not be reused for other tensors.
        typed_dims_kernels::memory::allocate::set_pool_limit(0);
        // SAFETY: new memory, at an address that the system chooses.
        let room = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                ROOM,
                PROT_NONE,
                MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
                -1,
                0,
            )
        };
        if room == MAP_FAILED {
            std::process::abort();
        }
        // SAFETY: the handler only calls functions that are safe in a signal handler.
        unsafe { libc::signal(SIGSEGV, was_read as *const () as usize) };
        room as usize
    })
}

extern "C" fn was_read(_: c_int) {
    let text =
        b"an element was read that a recording from sizes does not have (or another invalid address)\n";
    // SAFETY: `write` and `abort` may be called in a handler.
    unsafe {
        libc::write(2, text.as_ptr().cast(), text.len());
        libc::abort();
    }
}

fn is_guarded(at: *mut u8) -> bool {
    START.get().is_some_and(|&start| (start..start + ROOM).contains(&(at as usize)))
}

// SAFETY: the memory is the system allocator's, or a part of the range that has no other owner.
unsafe impl GlobalAlloc for Guarded {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's promise.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        if !is_reserving() {
            // SAFETY: the caller's promise.
            return unsafe { System.alloc_zeroed(layout) };
        }
        let size = layout.size().next_multiple_of(PAGE);
        let at = USED.fetch_add(size, Ordering::Relaxed);
        if at + size > ROOM { std::ptr::null_mut() } else { (start() + at) as *mut u8 }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        if !is_guarded(memory) {
            // SAFETY: the caller's promise.
            unsafe { System.dealloc(memory, layout) };
        }
    }

    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        if is_guarded(memory) {
            // Hollow memory has a fixed length. (An allocator must not unwind.)
            std::process::abort();
        }
        // SAFETY: the caller's promise.
        unsafe { System.realloc(memory, layout, size) }
    }
}
