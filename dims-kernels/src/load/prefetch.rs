//! Software prefetching while other elements are computed. Hardware prefetchers run ahead by a
//! limited distance, and start over when a stream ends.

use crate::load::{Kernel, TILE};
use crate::machine::prefetch::{per_line, prefetch_lines};
use core::mem::MaybeUninit;

/// Contiguous elements that will soon be read or written; none if their address is not known.
#[derive(Clone, Copy)]
pub struct PrefetchStream<T> {
    from: *const T,
    len: usize,
}

impl<T: Copy> PrefetchStream<T> {
    /// No elements.
    pub const NOTHING: Self = PrefetchStream { from: core::ptr::null(), len: 0 };

    /// The elements from a pointer on, without an end: prefetching past the end of the memory is
    /// harmless.
    #[cfg_attr(not(unoptimized), inline(always))]
    pub fn from(from: *const T) -> Self {
        PrefetchStream { from, len: usize::MAX }
    }

    /// The elements from `at` on of the operand that [`Kernel::source`] finds. Empty if it finds no
    /// operand.
    #[cfg_attr(not(unoptimized), inline(always))]
    pub fn of<K: Kernel<Elem = T>>(kernel: &K, at: &[usize]) -> Self {
        kernel.source(at).map_or(Self::NOTHING, Self::from)
    }

    /// At most the first `most` elements.
    #[cfg_attr(not(unoptimized), inline(always))]
    pub fn take(self, most: usize) -> Self {
        PrefetchStream { len: self.len.min(most), ..self }
    }

    /// The elements after the first `done`.
    #[cfg_attr(not(unoptimized), inline(always))]
    pub fn skip(self, done: usize) -> Self {
        PrefetchStream { from: self.from.wrapping_add(done), len: self.len.saturating_sub(done) }
    }

    #[cfg_attr(not(unoptimized), inline(always))]
    fn prefetch(self, done: usize, some: usize) {
        if done < self.len {
            prefetch_lines(self.from.wrapping_add(done), some);
        }
    }

    /// Prefetches `some` elements 32 cache lines after the first `done`.
    #[cfg_attr(not(unoptimized), inline(always))]
    pub fn prefetch_at_distance(self, done: usize, some: usize) {
        self.prefetch(done + const { 32 * per_line::<T>() }, some);
    }
}

/// The streams that are prefetched while a tile is written.
#[derive(Clone, Copy)]
pub struct TilePrefetch<T> {
    /// The tile's output.
    pub output: PrefetchStream<T>,
    /// The elements of one of the tile's operands.
    pub input: PrefetchStream<T>,
    /// The elements that are read after those of `input`. For each element that is written, one of
    /// these is prefetched.
    pub next: PrefetchStream<T>,
}

impl<T: Copy> TilePrefetch<T> {
    /// The streams of a result and of one operand if the result is `large`, otherwise none.
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

    /// How many elements are written at once: a few cache lines, or the whole tile if nothing is
    /// prefetched.
    #[cfg_attr(not(unoptimized), inline(always))]
    pub fn piece(&self) -> usize {
        if self.output.len == 0 { TILE } else { const { 8 * per_line::<T>() } }
    }

    /// Prefetches `some` elements of each stream. Called before writing the `some` elements after
    /// the first `done`.
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
