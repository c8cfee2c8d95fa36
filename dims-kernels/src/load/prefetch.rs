//! What is asked of the memory ahead of time, while other elements are computed. The machine looks ahead along streams by itself, but no further than
//! it can hold what waits for them: what computes long for each element has it look less far, and where a stream ends it starts anew.

use crate::load::{Kernel, TILE};
use crate::machine::prefetch::{fetch_lines, per_line};
use core::mem::MaybeUninit;

/// Elements that are read or written soon, if it is known where they lie.
#[derive(Clone, Copy)]
pub struct Ahead<T> {
    from: *const T,
    len: usize,
}

impl<T: Copy> Ahead<T> {
    /// No elements.
    pub const NOTHING: Self = Ahead { from: core::ptr::null(), len: 0 };

    /// The elements from a place on, without an end: to ask for what is not there does no harm.
    #[inline(always)]
    pub fn from(from: *const T) -> Self {
        Ahead { from, len: usize::MAX }
    }

    /// The elements of a kernel from `at` on, of the operand that they are [read from](Kernel::source).
    #[inline(always)]
    pub fn of<K: Kernel<Elem = T>>(kernel: &K, at: &[usize]) -> Self {
        kernel.source(at).map_or(Self::NOTHING, Self::from)
    }

    /// So many of them at the most.
    #[inline(always)]
    pub fn take(self, most: usize) -> Self {
        Ahead { len: self.len.min(most), ..self }
    }

    /// Those behind the first ones.
    #[inline(always)]
    pub fn skip(self, done: usize) -> Self {
        Ahead { from: self.from.wrapping_add(done), len: self.len.saturating_sub(done) }
    }

    /// Asks for some of them, behind those that have been asked for.
    #[inline(always)]
    fn fetch(self, done: usize, some: usize) {
        if done < self.len {
            fetch_lines(self.from.wrapping_add(done), some);
        }
    }

    /// Asks for some of those that lie 32 lines of memory further on than the first `done`: as far as a machine looks ahead that waits for nothing else.
    #[inline(always)]
    pub fn fetch_behind(self, done: usize, some: usize) {
        self.fetch(done + const { 32 * per_line::<T>() }, some);
    }
}

/// What is asked for while a tile is written.
#[derive(Clone, Copy)]
pub struct Fetches<T> {
    /// The tile's own places, and the elements that it is read from: those that come 32 lines further on.
    pub places: Ahead<T>,
    pub own: Ahead<T>,
    /// What comes next: as much as is written.
    pub next: Ahead<T>,
}

impl<T: Copy> Fetches<T> {
    /// What one result and its operand need, if it is large: nothing, where a cache near by has them.
    #[inline(always)]
    pub fn of<K: Kernel<Elem = T>>(large: bool, kernel: &K, at: &[usize], out: &[MaybeUninit<T>]) -> Self {
        let next = Ahead::NOTHING;
        if large {
            Fetches { places: Ahead::from(out.as_ptr().cast()), own: Ahead::of(kernel, at), next }
        } else {
            Fetches { places: next, own: next, next }
        }
    }

    /// How many elements are written at once: those of a few lines of memory, or the whole tile if nothing is asked for.
    #[inline(always)]
    pub fn piece(&self) -> usize {
        if self.places.len == 0 { TILE } else { const { 8 * per_line::<T>() } }
    }

    /// Before so many elements behind the first `done` are written.
    #[inline(always)]
    pub fn fetch(&self, done: usize, some: usize) {
        if self.places.len == 0 {
            return;
        }
        self.places.fetch_behind(done, some);
        self.own.fetch_behind(done, some);
        self.next.fetch(done, some);
    }
}
