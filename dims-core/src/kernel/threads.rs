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
///
/// The caller's thread is one of them. Were it to wait while others work, one of those would have to be woken first, and that one would wake the next:
/// each takes as long as a result of a megabyte.
#[cfg(feature = "rayon")]
pub fn each<W: Send, Out: Send>(work: Vec<W>, f: impl Fn(W) -> Out + Send + Sync) -> Vec<Out> {
    use std::sync::{Mutex, PoisonError};
    let helpers = work.len().min(threads()).saturating_sub(1);
    let mut results: Vec<Option<Out>> = work.iter().map(|_| None).collect();
    let queue = Mutex::new(work.into_iter().zip(&mut results));
    let run = || {
        loop {
            // (Nobody panics while the queue is locked.)
            let next = queue.lock().unwrap_or_else(PoisonError::into_inner).next();
            let Some((work, result)) = next else { break };
            *result = Some(f(work));
        }
    };
    rayon::in_place_scope(|scope| {
        for _ in 0..helpers {
            scope.spawn(|_| run());
        }
        run();
    });
    drop(queue);
    results.into_iter().map(|result| result.expect("each piece of work was done")).collect()
}

/// Calls `f` with each piece of work, and returns the results in order.
#[cfg(not(feature = "rayon"))]
pub fn each<W, Out>(work: Vec<W>, f: impl Fn(W) -> Out) -> Vec<Out> {
    work.into_iter().map(f).collect()
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
