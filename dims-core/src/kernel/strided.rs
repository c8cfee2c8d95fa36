//! The innermost loop over memory: a unit stride is read in place, any other is copied into a buffer first.

use super::gather::Indices;
use super::isa::Isa;
use super::{Faults, Kernel, Tile};
use crate::plan::nest::Row;

/// Reads elements at `base + sum over loops of position x stride`, plus what computed indices add.
pub struct Strided<'k, T, X> {
    base: *const T,
    strides: &'k [isize],
    inner: isize,
    indices: X,
    current: *const T,
    buffer: Vec<T>,
    filled: (*const T, usize),
}

impl<'k, T: Copy, X: Indices> Strided<'k, T, X> {
    /// A reader.
    ///
    /// # Safety
    ///
    /// For every position of the loop nest, `origin` moved as the row says is a valid element for `'k`; where `indices`
    /// are active, this holds for every combination of in-range indices.
    #[inline(always)]
    pub unsafe fn new(origin: *const T, row: Row<'k>, indices: X) -> Self {
        let base = origin.wrapping_offset(row.offset);
        Strided {
            base,
            strides: row.strides,
            inner: row.strides.last().copied().unwrap_or(0),
            indices,
            current: base,
            buffer: Vec::new(),
            filled: (std::ptr::null(), 0),
        }
    }

    #[inline(always)]
    fn offset(&self, at: &[usize]) -> isize {
        at.iter().zip(self.strides).map(|(&at, &stride)| at as isize * stride).sum()
    }

    /// Makes `len` elements from `start` on available.
    #[inline(always)]
    fn line(&mut self, start: *const T, len: usize) {
        let stride = self.inner;
        if stride == 1 || len <= 1 {
            self.current = start;
            return;
        }
        if stride == 0 {
            // A broadcast element is often the same for many tiles.
            if self.filled.0 != start || self.filled.1 < len {
                self.buffer.clear();
                // SAFETY: `start` is a valid element, by the contract of `new`.
                self.buffer.resize(len, unsafe { *start });
                self.filled = (start, len);
            }
        } else {
            self.buffer.clear();
            self.buffer.reserve(len);
            for x in 0..len {
                // SAFETY: each of the tile's positions is a valid element, by the contract of `new`.
                self.buffer.push(unsafe { *start.offset(x as isize * stride) });
            }
        }
        self.current = self.buffer.as_ptr();
    }

    /// Gathers element by element, with every index checked.
    #[inline(never)]
    fn gather<I: Isa>(&mut self, start: *const T, tile: &Tile<'_>, faults: &mut Faults) {
        let stride = self.inner;
        // The buffer no longer holds the broadcast element that `line` may have put there.
        self.filled = (std::ptr::null(), 0);
        self.buffer.clear();
        self.buffer.reserve(tile.len);
        // An element that is masked out or faulty is never read, but its place must hold some value: a neighbour's.
        let mut filler = None;
        let mut behind = 0;
        for x in 0..tile.len {
            let wanted = tile.mask.is_none_or(|mask| mask[x]);
            // SAFETY: `x` lies in the tile that the indices have loaded, and is not masked out.
            let offset = if wanted { unsafe { self.indices.offset::<I>(x, faults) } } else { None };
            let value = match offset {
                // SAFETY: the indices are in range, so the element is valid by the contract of `new`.
                Some(offset) => unsafe { *start.offset(offset + x as isize * stride) },
                None => match filler {
                    Some(value) => value,
                    None => {
                        behind += 1;
                        continue;
                    }
                },
            };
            if filler.is_none() {
                filler = Some(value);
                self.buffer.extend(std::iter::repeat_n(value, behind));
            }
            self.buffer.push(value);
        }
        // Without any valid element the buffer stays unfilled: nothing of this tile is read (a fault is on record, or
        // all of it is masked out), and `get` is told so by the null pointer.
        self.current = if filler.is_some() { self.buffer.as_ptr() } else { std::ptr::null() };
    }
}

impl<T: Copy + Default, X: Indices> Kernel for Strided<'_, T, X> {
    type Elem = T;
    const PARALLEL: bool = X::PARALLEL;

    #[inline(always)]
    fn load<I: Isa>(&mut self, tile: &Tile<'_>, faults: &mut Faults) {
        let start = self.base.wrapping_offset(self.offset(tile.at));
        if !X::ANY || !self.indices.is_active() {
            self.line(start, tile.len);
        } else if self.indices.is_uniform() && tile.mask.is_none() {
            self.indices.load::<I>(&Tile { len: tile.len.min(1), ..*tile }, faults);
            // SAFETY: a tile has at least one element, and there is no mask.
            match unsafe { self.indices.offset::<I>(0, faults) } {
                Some(offset) => self.line(start.wrapping_offset(offset), tile.len),
                None => self.current = std::ptr::null(),
            }
        } else {
            self.indices.load::<I>(tile, faults);
            self.gather::<I>(start, tile, faults);
        }
    }

    #[inline(always)]
    unsafe fn get<I: Isa>(&self, x: usize) -> T {
        if X::ANY && self.current.is_null() {
            return T::default();
        }
        // SAFETY: `current` points at the `len` elements of the tile, in memory or in the buffer, and `x < len`.
        unsafe { *self.current.add(x) }
    }

    #[inline(always)]
    fn is_uniform(&self) -> bool {
        self.inner == 0 && (!X::ANY || !self.indices.is_active() || self.indices.is_uniform())
    }

    #[inline(always)]
    fn can_fault(&self) -> bool {
        X::ANY && self.indices.is_active()
    }
}
