//! Software prefetching while other elements are computed. The hardware prefetchers follow streams, but only as far as the queues for outstanding
//! loads allow: they run less far ahead of code that computes long for each element, and start anew where a stream ends.

use crate::load::{Kernel, TILE};
use crate::machine::prefetch::{per_line, prefetch_lines};
use core::mem::MaybeUninit;

/// Neighbouring elements that are read or written soon, if their address is known.
#[derive(Clone, Copy)]
pub struct PrefetchStream<T> {
    from: *const T,
    len: usize,
}

impl<T: Copy> PrefetchStream<T> {
    /// No elements.
    pub const NOTHING: Self = PrefetchStream { from: core::ptr::null(), len: 0 };

    /// The elements from a place on, without an end: a prefetch beyond the memory does no harm.
    #[cfg_attr(not(unoptimized), inline(always))]
    pub fn from(from: *const T) -> Self {
        PrefetchStream { from, len: usize::MAX }
    }

    /// The elements of a kernel from `at` on, of the operand that they are [read from](Kernel::source).
    #[cfg_attr(not(unoptimized), inline(always))]
    pub fn of<K: Kernel<Elem = T>>(kernel: &K, at: &[usize]) -> Self {
        kernel.source(at).map_or(Self::NOTHING, Self::from)
    }

    /// So many of them at the most.
    #[cfg_attr(not(unoptimized), inline(always))]
    pub fn take(self, most: usize) -> Self {
        PrefetchStream { len: self.len.min(most), ..self }
    }

    /// Those behind the first ones.
    #[cfg_attr(not(unoptimized), inline(always))]
    pub fn skip(self, done: usize) -> Self {
        PrefetchStream { from: self.from.wrapping_add(done), len: self.len.saturating_sub(done) }
    }

    /// Prefetches some of them, behind the first `done`.
    #[cfg_attr(not(unoptimized), inline(always))]
    fn prefetch(self, done: usize, some: usize) {
        if done < self.len {
            prefetch_lines(self.from.wrapping_add(done), some);
        }
    }

    /// Prefetches some elements 32 cache lines behind the first `done`: the distance of hardware prefetchers that wait for nothing else.
    #[cfg_attr(not(unoptimized), inline(always))]
    pub fn prefetch_at_distance(self, done: usize, some: usize) {
        self.prefetch(done + const { 32 * per_line::<T>() }, some);
    }
}

/// The streams that are prefetched while a tile is written.
#[derive(Clone, Copy)]
pub struct TilePrefetch<T> {
    /// The tile's output, prefetched 32 cache lines further on.
    pub output: PrefetchStream<T>,
    /// The elements that the tile is read from, prefetched 32 cache lines further on.
    pub input: PrefetchStream<T>,
    /// The elements that are read next: as many as are written.
    pub next: PrefetchStream<T>,
}

impl<T: Copy> TilePrefetch<T> {
    /// The streams of one result and its operand, if it is large; none where a cache holds them.
    #[cfg_attr(not(unoptimized), inline(always))]
    pub fn of<K: Kernel<Elem = T>>(large: bool, kernel: &K, at: &[usize], out: &[MaybeUninit<T>]) -> Self {
        let next = PrefetchStream::NOTHING;
        if large {
            TilePrefetch {
                output: PrefetchStream::from(out.as_ptr().cast()),
                input: PrefetchStream::of(kernel, at),
                next,
            }
        } else {
            TilePrefetch { output: next, input: next, next }
        }
    }

    /// How many elements are written at once: those of a few cache lines, or the whole tile if nothing is prefetched.
    #[cfg_attr(not(unoptimized), inline(always))]
    pub fn piece(&self) -> usize {
        if self.output.len == 0 { TILE } else { const { 8 * per_line::<T>() } }
    }

    /// Prefetches before `some` elements behind the first `done` are written.
    #[cfg_attr(not(unoptimized), inline(always))]
    pub fn prefetch(&self, done: usize, some: usize) {
        if self.output.len == 0 {
            return;
        }
        self.output.prefetch_at_distance(done, some);
        self.input.prefetch_at_distance(done, some);
        self.next.prefetch(done, some);
    }
}
