//! Work on several threads: rayon's pool, if the feature `rayon` is on and there is enough work.
//!
//! Parts of a result are independent, so most results do not depend on the number of threads.
//! Rounding may depend on it in matrix products, where the size of a thread's share decides which
//! kernel runs, and in decompositions of large matrices, which `faer` runs on several threads.

use crate::error::Error;
use alloc::boxed::Box;
use alloc::vec::Vec;
#[cfg(feature = "rayon")]
use core::sync::atomic::{AtomicUsize, Ordering};

/// The least number of elements per thread, because passing work to another thread costs
/// microseconds. For matrix products and decompositions, callers count many multiplications as one
/// element.
const WORTHWHILE: usize = 1 << 16;

/// The number of parts to split work on `elements` elements into.
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

/// Calls `f` once with each piece of work, on all available threads, and returns the results in the
/// order of the pieces.
///
/// The caller's thread takes part.
///
/// If `f` panics, the other threads go on, and the panic is resumed when all are done. Pieces that
/// no thread has taken are dropped; finished results are leaked.
#[cfg(feature = "rayon")]
pub fn each<W: Send, Out: Send>(mut work: Vec<W>, f: impl Fn(W) -> Out + Sync) -> Vec<Out> {
    // (This is compiled once per kernel, so code that does not depend on the kernel is in
    // `numbered`. Pieces are taken by number, because a chain of iterators compiles to more code.)
    let len = work.len();
    let mut results = Vec::<Out>::with_capacity(len);
    // SAFETY: pieces and results are `Send`, and each of them is used by one thread.
    let (from, to) =
        unsafe { (SharedPlaces::new(work.as_mut_ptr()), SharedPlaces::new(results.as_mut_ptr())) };
    // SAFETY: each of the first `len` pieces is moved out once, by its number, or dropped by
    // `left`.
    unsafe { work.set_len(0) };
    let left = RemainingPieces { next: AtomicUsize::new(0), first: from.place(0), len };
    // SAFETY: there are `len` pieces, and room for `len` results.
    numbered(len, &left.next, &|at| unsafe { to.place(at).write(f(from.place(at).read())) });
    // SAFETY: a result was written for each number.
    unsafe { results.set_len(len) };
    results
}

/// A fallible piece of work for a thread.
pub type Job<'j> = Box<dyn FnOnce() -> Result<(), Error> + Send + 'j>;

/// Runs all jobs, on all available threads, and returns the error of the first job in the list that
/// fails.
pub fn run(jobs: Vec<Job<'_>>) -> Result<(), Error> {
    each(jobs, |job| job()).into_iter().collect()
}

/// The pieces of work that no thread has taken: those from the number `next` on.
#[cfg(feature = "rayon")]
struct RemainingPieces<W> {
    next: AtomicUsize,
    first: *mut W,
    len: usize,
}

#[cfg(feature = "rayon")]
impl<W> Drop for RemainingPieces<W> {
    fn drop(&mut self) {
        let next = *self.next.get_mut();
        if next < self.len {
            let rest = core::ptr::slice_from_raw_parts_mut(self.first.wrapping_add(next), self.len - next);
            // SAFETY: each thread has moved out the pieces whose numbers it has taken from `next`,
            // and all threads have left. The other pieces are still in the vector, whose length is
            // 0, so it does not drop them.
            unsafe { core::ptr::drop_in_place(rest) };
        }
    }
}

/// Calls `f` with the numbers below `len`, each taken once from `next`. A number that was taken is
/// never given back, even if `f` panics.
#[cfg(feature = "rayon")]
fn numbered(len: usize, next: &AtomicUsize, f: &(dyn Fn(usize) + Sync)) {
    helped::call(len.min(threads()).saturating_sub(1), &|| {
        loop {
            let at = next.fetch_add(1, Ordering::Relaxed);
            if at >= len {
                break;
            }
            f(at);
        }
    });
}

/// Memory slots, each used by one thread at a time.
#[cfg(feature = "rayon")]
struct SharedPlaces<T>(*mut T);

#[cfg(feature = "rayon")]
impl<T> SharedPlaces<T> {
    /// # Safety
    ///
    /// No slot is used by two threads at a time, and values that move between threads through a
    /// slot are `Send`.
    unsafe fn new(first: *mut T) -> Self {
        SharedPlaces(first)
    }

    fn place(&self, at: usize) -> *mut T {
        self.0.wrapping_add(at)
    }
}

// SAFETY: by the contract of `new`.
#[cfg(feature = "rayon")]
unsafe impl<T> Sync for SharedPlaces<T> {}

/// A call that threads of rayon's pool join if they come in time.
///
/// A caller outside of the pool takes part at once. In `rayon::scope`, it would sleep until threads
/// of the pool have woken up and done all the work.
#[cfg(feature = "rayon")]
mod helped {
    use std::any::Any;
    use std::boxed::Box;
    use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
    use std::{hint, mem, thread};

    /// Before it sleeps, the caller yields `YIELDS` times. Before each yield, it checks `LOOKS`
    /// times whether all threads have left.
    const LOOKS: usize = 64;
    const YIELDS: usize = 32;

    /// A thread's requests for help may be pending for at most this many of its calls: more would
    /// only fill the pool's queue.
    const MOST_WAITING: usize = 4;

    std::thread_local! {
        /// How many requests for help of this thread are pending.
        static WAITING: Arc<AtomicUsize> = Arc::new(AtomicUsize::new(0));
    }

    #[cfg(test)]
    pub fn waiting() -> usize {
        WAITING.with(|waiting| waiting.load(Ordering::Relaxed))
    }

    type Panic = Box<dyn Any + Send>;

    /// The function that joining threads call.
    struct SharedFunction(*const (dyn Fn() + Sync));

    // SAFETY: the function is `Sync`; each thread that calls it ensures that it still exists.
    unsafe impl Send for SharedFunction {}

    struct CallState {
        /// `Some` until the caller has reached the end of the work, or has panicked.
        run: Option<SharedFunction>,
        panic: Option<Panic>,
    }

    struct SharedCall {
        state: Mutex<CallState>,
        /// The number of threads that have joined and not left.
        inside: AtomicUsize,
        /// The maximum of `inside`.
        most: usize,
        left: Condvar,
    }

    impl SharedCall {
        fn state(&self) -> MutexGuard<'_, CallState> {
            self.state.lock().unwrap_or_else(PoisonError::into_inner)
        }

        /// Runs the function on a thread of the pool, unless enough threads have joined or the work
        /// is done.
        fn join(&self) {
            let run = {
                let state = self.state();
                let Some(SharedFunction(run)) = state.run else { return };
                if self.inside.load(Ordering::Relaxed) == self.most {
                    return;
                }
                // Under the lock, so that the caller sees the new count after it takes `run` away.
                self.inside.fetch_add(1, Ordering::Relaxed);
                run
            };
            // SAFETY: this thread was counted under the lock while `run` was there. `close` takes
            // the lock to remove `run`, so it sees the count and waits for the `fetch_sub` below.
            let outcome = catch_unwind(AssertUnwindSafe(|| unsafe { (*run)() }));
            if let Err(panic) = outcome {
                discard(self.keep(panic));
            }
            if self.inside.fetch_sub(1, Ordering::Release) == 1 {
                // Under the lock, so that the caller either already sleeps or checks the count
                // again before it does.
                let _state = self.state();
                self.left.notify_one();
            }
        }

        /// Keeps the first panic, and returns any other.
        fn keep(&self, panic: Panic) -> Option<Panic> {
            let mut state = self.state();
            if state.panic.is_some() {
                return Some(panic);
            }
            state.panic = Some(panic);
            None
        }

        /// Stops more threads from joining, and waits until all that have joined have left. Returns
        /// the first of their panics.
        fn close(&self) -> Option<Panic> {
            self.state().run = None;
            let nobody = || self.inside.load(Ordering::Acquire) == 0;
            for look in 0..LOOKS * YIELDS {
                if nobody() {
                    break;
                }
                if look % LOOKS == LOOKS - 1 { thread::yield_now() } else { hint::spin_loop() }
            }
            let mut state = self.state();
            while !nobody() {
                state = self.left.wait(state).unwrap_or_else(PoisonError::into_inner);
            }
            state.panic.take()
        }
    }

    /// Drops a panic that is not resumed. Dropping it may panic in turn, which must not keep a
    /// thread from leaving.
    fn discard(panic: Option<Panic>) {
        if let Err(again) = catch_unwind(AssertUnwindSafe(|| drop(panic))) {
            mem::forget(again);
        }
    }

    /// Calls `run` on this thread, and on up to `helpers` others. When all have left, the panic of
    /// this thread is resumed, or else the first panic of another thread.
    ///
    /// Unlike in `rayon::scope`, this thread runs no other work of the pool while it waits, so
    /// `run` must not wait for such work.
    pub fn call(helpers: usize, run: &(dyn Fn() + Sync)) {
        if helpers == 0 {
            return run();
        }
        // SAFETY: only the lifetime changes; no thread calls the function after `close`, which is
        // always reached.
        let lasting: &'static (dyn Fn() + Sync) = unsafe { mem::transmute(run) };
        let call = Arc::new(SharedCall {
            state: Mutex::new(CallState { run: Some(SharedFunction(lasting)), panic: None }),
            inside: AtomicUsize::new(0),
            most: helpers,
            left: Condvar::new(),
        });
        let own = catch_unwind(AssertUnwindSafe(|| {
            // (`None` while the thread ends and its locals are gone: then it works alone.)
            let waiting = WAITING.try_with(Arc::clone).ok();
            // Ask one more than may join: a thread may be scheduled on the CPU that this thread
            // keeps busy, and then another one comes first.
            for waiting in waiting.iter().cycle().take(helpers + 1) {
                if waiting.load(Ordering::Relaxed) >= MOST_WAITING * (helpers + 1) {
                    break;
                }
                waiting.fetch_add(1, Ordering::Relaxed);
                let (call, waiting) = (call.clone(), waiting.clone());
                rayon::spawn(move || {
                    waiting.fetch_sub(1, Ordering::Relaxed);
                    call.join();
                });
            }
            run();
        }));
        let others = call.close();
        match (own, others) {
            (Ok(()), None) => {}
            (Ok(()), Some(panic)) => resume_unwind(panic),
            (Err(panic), other) => {
                discard(other);
                resume_unwind(panic)
            }
        }
    }
}

/// Calls `f` with each piece of work, and returns the results in order.
#[cfg(not(feature = "rayon"))]
pub fn each<W, Out>(work: Vec<W>, f: impl Fn(W) -> Out) -> Vec<Out> {
    work.into_iter().map(f).collect()
}

/// Wraps a value so that it can be sent to another thread although it contains raw pointers.
pub struct Carried<T>(T);

impl<T> Carried<T> {
    /// Wraps a value.
    ///
    /// # Safety
    ///
    /// Another thread may use the value: the targets of its pointers are `Sync` if shared, and
    /// `Send` if exclusive.
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

#[cfg(all(test, feature = "rayon"))]
mod tests {
    use super::each;
    use rayon::ThreadPoolBuilder;
    use rayon::prelude::*;
    use std::boxed::Box;
    use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
    use std::string::String;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::time::Duration;
    use std::vec::Vec;
    use std::{format, thread};

    #[test]
    fn results_are_in_order_wherever_they_were_computed() {
        for threads in [1, 2, 5] {
            let pool = ThreadPoolBuilder::new().num_threads(threads).build().expect("a pool");
            let squares = || each((0..100).collect(), |x: usize| x * x);
            let expected: Vec<usize> = (0..100).map(|x| x * x).collect();
            assert_eq!(pool.install(squares), expected);
            // Nested calls, from all threads at once.
            let nested: Vec<_> = pool.install(|| {
                (0..50).into_par_iter().map(|_| each((0..9).collect(), |_: usize| squares())).collect()
            });
            assert!(nested.iter().flatten().all(|squares| *squares == expected));
        }
    }

    #[test]
    fn what_asks_for_help_that_never_comes_asks_no_more() {
        let pool = ThreadPoolBuilder::new().num_threads(2).build().expect("a pool");
        let (busy, until) = std::sync::mpsc::channel::<()>();
        pool.spawn(move || _ = until.recv());
        pool.install(|| {
            for _ in 0..1000 {
                assert_eq!(each(std::vec![1, 2, 3], |x: usize| x * 2), [2, 4, 6]);
            }
            assert!(super::helped::waiting() <= 8, "{} wait", super::helped::waiting());
        });
        drop(busy);
    }

    #[test]
    fn no_more_threads_are_at_work_than_the_pool_has() {
        let pool = ThreadPoolBuilder::new().num_threads(3).build().expect("a pool");
        let (now, most) = (AtomicUsize::new(0), AtomicUsize::new(0));
        let counted = |_: usize| {
            most.fetch_max(now.fetch_add(1, Ordering::Relaxed) + 1, Ordering::Relaxed);
            thread::sleep(Duration::from_millis(1));
            now.fetch_sub(1, Ordering::Relaxed);
        };
        pool.install(|| each((0..40).collect(), counted));
        assert!((1..=3).contains(&most.into_inner()));
    }

    #[test]
    fn pieces_that_nobody_came_to_are_dropped() {
        for threads in [1, 4] {
            let pool = ThreadPoolBuilder::new().num_threads(threads).build().expect("a pool");
            for panics in [0, 5, 39] {
                let counted = std::sync::Arc::new(());
                let pieces: Vec<_> = (0..40).map(|at| (at, counted.clone())).collect();
                let call = || each(pieces, |(at, _counted)| assert!(at != panics, "piece {at}"));
                assert!(catch_unwind(AssertUnwindSafe(|| pool.install(call))).is_err());
                assert_eq!(std::sync::Arc::strong_count(&counted), 1, "all pieces are dropped, each once");
            }
        }
    }

    #[test]
    fn a_panic_goes_on_where_the_call_was_made_when_all_are_done() {
        let pool = ThreadPoolBuilder::new().num_threads(4).build().expect("a pool");
        for panics in [0, 1, 17, 39] {
            let done = AtomicUsize::new(0);
            let call = || {
                each((0..40).collect(), |x: usize| {
                    thread::sleep(Duration::from_micros(200));
                    assert!(x != panics, "piece {x}");
                    done.fetch_add(1, Ordering::Relaxed)
                })
            };
            let panic = catch_unwind(AssertUnwindSafe(|| pool.install(call))).expect_err("a piece panics");
            assert_eq!(panic.downcast_ref::<String>(), Some(&format!("piece {panics}")));
            // No thread is still at work.
            let before = done.load(Ordering::Relaxed);
            thread::sleep(Duration::from_millis(2));
            assert_eq!(done.into_inner(), before);
        }
        // The pool still works.
        assert_eq!(pool.install(|| each((0..10).collect(), |x: usize| x + 1))[9], 10);
    }

    #[test]
    fn panics_that_nobody_catches_are_dropped() {
        static ALIVE: AtomicUsize = AtomicUsize::new(0);
        struct Counted;
        impl Drop for Counted {
            fn drop(&mut self) {
                ALIVE.fetch_sub(1, Ordering::Relaxed);
            }
        }
        let pool = ThreadPoolBuilder::new().num_threads(4).build().expect("a pool");
        for _ in 0..20 {
            let call = || {
                each((0..40).collect(), |_: usize| {
                    thread::sleep(Duration::from_micros(200));
                    ALIVE.fetch_add(1, Ordering::Relaxed);
                    resume_unwind(Box::new(Counted));
                })
            };
            let panic = catch_unwind(AssertUnwindSafe(|| pool.install(call))).expect_err("all pieces panic");
            assert!(panic.is::<Counted>());
            assert_eq!(ALIVE.load(Ordering::Relaxed), 1);
            drop(panic);
        }
    }
}
