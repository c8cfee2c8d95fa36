//! Work on several threads: rayon's pool, if the feature `rayon` is on and the work is worth it.
//!
//! Parts of a result are independent, so what is computed does not depend on how many threads there are.

use alloc::vec::Vec;

/// Less work than this many elements (or multiplications / 64) stays on the caller's thread: handing it over costs microseconds.
const WORTHWHILE: usize = 1 << 16;

/// Into how many parts work on `elements` elements should be split.
#[inline]
pub fn parts(elements: usize) -> usize {
    if elements < 2 * WORTHWHILE { 1 } else { threads().min(elements / WORTHWHILE) }
}

#[cfg(feature = "rayon")]
fn threads() -> usize {
    rayon::current_num_threads()
}

#[cfg(not(feature = "rayon"))]
fn threads() -> usize {
    1
}

/// Calls `f` with each piece of work, on as many threads as there are, and returns the results in order.
pub fn each<W: Send, Out: Send>(work: Vec<W>, f: impl Fn(W) -> Out + Send + Sync) -> Vec<Out> {
    #[cfg(feature = "rayon")]
    {
        use rayon::prelude::*;
        work.into_par_iter().map(f).collect()
    }
    #[cfg(not(feature = "rayon"))]
    {
        work.into_iter().map(f).collect()
    }
}

/// Carries what raw pointers keep from being sent to another thread.
pub struct Carried<T>(T);

impl<T> Carried<T> {
    /// Wraps a value.
    ///
    /// # Safety
    ///
    /// Another thread may use the value: what its pointers reach is `Sync` where it is shared, and `Send` where it is exclusive.
    pub unsafe fn new(value: T) -> Self {
        Carried(value)
    }

    /// The value, on the other thread.
    pub fn into_inner(self) -> T {
        self.0
    }
}

// SAFETY: by the contract of `new`.
unsafe impl<T> Send for Carried<T> {}
