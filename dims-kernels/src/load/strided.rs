//! The innermost loop over memory: adjacent elements are read in place; others are first copied
//! into a buffer.

use crate::copy::copy_between;
use crate::load::gather::GatherIndices;
use crate::load::{Faults, Kernel, Tile};
use crate::loops::nest::Row;
use crate::loops::stride::{AnyStride, StrideKind};
use crate::machine::isa::Isa;
use crate::machine::prefetch::prefetch_row;
use crate::memory::elements::Elements;
use crate::scalar::Element;
use alloc::vec::Vec;
use core::marker::PhantomData;
use smallvec::SmallVec;

/// Reads elements at `base + sum over loops of position x stride`, plus the offsets of computed
/// indices.
pub struct Strided<'k, T, X, W = AnyStride> {
    base: *const T,
    strides: &'k [isize],
    inner: isize,
    indices: X,
    /// A pointer to the start of the last loaded tile, without the offsets of computed indices.
    start: *const T,
    current: *const T,
    buffer: Vec<T>,
    packed: Vec<T>,
    filled: (*const T, usize),
    kind: PhantomData<W>,
}

impl<'k, T: Element, X: GatherIndices> Strided<'k, T, X> {
    /// A reader with any strides.
    ///
    /// # Safety
    ///
    /// As for [`along_row`](Strided::along_row).
    #[cfg_attr(not(unoptimized), inline(always))]
    pub unsafe fn new(elements: Elements<'k, T>, row: Row<'k>, indices: X) -> Self {
        // SAFETY: `AnyStride` promises nothing about the innermost stride. The rest is the caller's
        // promise.
        unsafe { Self::along_row(elements, row, indices) }
    }
}

impl<'k, T: Element, X: GatherIndices, W: StrideKind> Strided<'k, T, X, W> {
    /// A reader of elements along the row that a plan derived from their axes.
    ///
    /// If no index is active, builds with debug assertions check the first promise.
    ///
    /// # Safety
    ///
    /// * The row maps each position of the loops to a position of the elements' axes. Active
    ///   `indices` select from further axes of the elements. Each of these axes has the size that
    ///   its index is checked against, and the stride that the index is multiplied by.
    /// * The reader only gets positions of these loops: it runs over the nest that the row is taken
    ///   from, or over a part of it.
    /// * If `W::UNIT` is true, the stride along the innermost loop is 1.
    #[cfg_attr(not(unoptimized), inline(always))]
    pub unsafe fn along_row(elements: Elements<'k, T>, row: Row<'k>, indices: X) -> Self {
        // With active indices, the row is not checked here: an axis that they select from may be
        // empty. The indices are checked when they select.
        if !(X::ANY && indices.is_active()) {
            row.assert_within(&elements);
        }
        let origin = elements.as_ptr();
        let base = origin.wrapping_offset(row.offset);
        let mut strided = Strided {
            base,
            strides: row.strides,
            inner: row.strides.last().copied().unwrap_or(0),
            indices,
            start: base,
            current: base,
            buffer: Vec::new(),
            packed: Vec::new(),
            filled: (core::ptr::null(), 0),
            kind: PhantomData,
        };
        if !W::UNIT
            && let Some((sizes, strides)) = row.packed
            && !(X::ANY && strided.indices.is_active())
        {
            // SAFETY: no index is active, so each position of the loops has an element, as the
            // caller promises.
            strided.packed = unsafe { pack(origin, row, sizes, strides) };
            strided.base = strided.packed.as_ptr();
            strided.strides = strides;
            strided.inner = 1;
        }
        strided
    }

    /// The offset of a position. The position was just written one number at a time, and a load of
    /// several numbers would wait until those stores have reached the cache. `read_volatile` keeps
    /// the compiler from combining the loads.
    #[cfg_attr(not(unoptimized), inline(always))]
    fn offset(&self, at: &[usize]) -> isize {
        let mut offset = 0;
        for (at, &stride) in at.iter().zip(self.strides) {
            // SAFETY: `at` is a reference.
            offset += unsafe { core::ptr::from_ref(at).read_volatile() } as isize * stride;
        }
        offset
    }

    /// Makes `len` elements from `start` on available.
    #[cfg_attr(not(unoptimized), inline(always))]
    fn line(&mut self, start: *const T, len: usize) {
        let stride = self.inner;
        if W::UNIT || stride == 1 || len <= 1 {
            self.current = start;
            return;
        }
        // A broadcast element is often the same for many tiles.
        if stride != 0 || self.filled.0 != start || self.filled.1 < len {
            // SAFETY: each position of the tile is a position of the loops, and so has an element,
            // as the caller of `along_row` promised.
            unsafe { copy_line(&mut self.buffer, start, stride, len) };
            if stride == 0 {
                self.filled = (start, len);
            }
        }
        self.current = self.buffer.as_ptr();
    }

    #[inline(never)]
    fn gather<I: Isa>(&mut self, start: *const T, tile: &Tile<'_>, faults: &mut Faults) {
        let stride = self.inner;
        // The buffer no longer holds the broadcast element that `line` may have put there.
        self.filled = (core::ptr::null(), 0);
        self.buffer.clear();
        self.buffer.reserve(tile.len);
        // An element that is masked out or faulty is not read from memory, but needs some value in
        // the buffer: that of a valid element of the tile.
        let mut filler = None;
        let mut behind = 0;
        for x in 0..tile.len {
            let wanted = tile.mask.is_none_or(|mask| mask[x]);
            // SAFETY: `x` is in the tile that the indices have loaded, and is not masked out.
            let offset = if wanted { unsafe { self.indices.offset::<I>(x, faults) } } else { None };
            let value = match offset {
                // SAFETY: the indices are in range of the axes that they select from, and `x` is a
                // position of the loops, so there is an element, as the caller of `along_row`
                // promised.
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
                self.buffer.extend(core::iter::repeat_n(value, behind));
            }
            self.buffer.push(value);
        }
        if filler.is_some() {
            self.current = self.buffer.as_ptr();
        } else {
            self.stand_in(tile.len);
        }
    }

    /// Fills a tile that has no valid element: a fault was recorded, or the whole tile is masked
    /// out.
    #[cold]
    fn stand_in(&mut self, len: usize) {
        self.filled = (core::ptr::null(), 0);
        self.buffer.clear();
        self.buffer.resize(len, T::default());
        self.current = self.buffer.as_ptr();
    }
}

/// Copies `len` elements. Not inlined, so that it is not part of each loop that reads elements.
///
/// # Safety
///
/// There are `len` elements, the first at `start` and each later one `stride` after the previous
/// one.
#[inline(never)]
unsafe fn copy_line<T: Copy>(buffer: &mut Vec<T>, start: *const T, stride: isize, len: usize) {
    buffer.clear();
    if stride == 0 {
        // SAFETY: the caller's promise.
        buffer.resize(len, unsafe { *start });
        return;
    }
    // SAFETY: the caller's promise.
    buffer.extend((0..len).map(|x| unsafe { *start.offset(x as isize * stride) }));
}

/// The elements of an operand, each once, in the order of the packed strides.
///
/// # Safety
///
/// For every position of the loops, the origin, offset by the row, points to a valid element.
#[cold]
unsafe fn pack<T: Copy + 'static>(
    origin: *const T,
    row: Row<'_>,
    sizes: &[usize],
    packed: &[isize],
) -> Vec<T> {
    let Varying { sizes, from, to } = varying(row.strides, sizes, packed);
    let len = sizes.iter().product();
    let mut data = Vec::with_capacity(len);
    let row = Row { strides: &from, packed: None, ..row };
    // SAFETY: the caller's promise. The packed strides reach each of the `len` slots once, as they
    // count through the loops.
    unsafe {
        copy_between(origin, row, data.as_mut_ptr(), &to, &sizes);
        data.set_len(len);
    }
    data
}

/// Loops along which an operand varies, and its strides along them before and after packing.
struct Varying {
    sizes: SmallVec<[usize; 8]>,
    from: SmallVec<[isize; 8]>,
    to: SmallVec<[isize; 8]>,
}

fn varying(strides: &[isize], sizes: &[usize], packed: &[isize]) -> Varying {
    let own: SmallVec<[usize; 8]> = (0..sizes.len()).filter(|&at| strides[at] != 0).collect();
    let of = |strides: &[isize]| own.iter().map(|&at| strides[at]).collect();
    Varying { sizes: own.iter().map(|&at| sizes[at]).collect(), from: of(strides), to: of(packed) }
}

// SAFETY: all pointers follow the row of the operand, which stays within its elements, and the
// offsets of checked indices. The elements are borrowed, or packed elements that the reader owns.
unsafe impl<T: Element, X: GatherIndices, W: StrideKind> Kernel for Strided<'_, T, X, W> {
    type Elem = T;
    type TileReader = *const T;
    type Pairs = (*const T, isize, isize);
    const PARALLEL: bool = X::PARALLEL;
    const GATHERS: bool = X::ANY;
    const READS: bool = true;
    const PAIRS: bool = W::PAIRS && !X::ANY;

    #[cfg_attr(not(unoptimized), inline(always))]
    fn prefetch<I: Isa>(&mut self, tile: &Tile<'_>) {
        if self.inner != 1 {
            return;
        }
        if !X::ANY || !self.indices.is_active() {
            prefetch_row(self.base.wrapping_offset(self.offset(tile.at)), tile.len);
            return;
        }
        if !self.indices.is_uniform() {
            return;
        }
        let mut faults = Faults::default();
        self.indices.load::<I>(&Tile { len: tile.len.min(1), ..*tile }, &mut faults);
        // SAFETY: a tile has at least one element, and was loaded without a mask.
        if let Some(offset) = unsafe { self.indices.offset::<I>(0, &mut faults) } {
            prefetch_row(self.base.wrapping_offset(self.offset(tile.at) + offset), tile.len);
        }
    }

    #[cfg_attr(not(unoptimized), inline(always))]
    fn starts<I: Isa>(
        &mut self,
        at: &mut [usize],
        along: usize,
        starts: &mut [*const T],
        faults: &mut Faults,
    ) -> bool {
        if self.inner != 1 || X::ANY && self.indices.is_active() && !self.indices.is_uniform() {
            return false;
        }
        let line = (self.base.wrapping_offset(self.offset(at)), self.strides[along]);
        self.indices.places::<I, T>(at, along, line, starts, faults);
        true
    }

    #[cfg_attr(not(unoptimized), inline(always))]
    fn steps(&self, at: &[usize], along: usize) -> Option<(*const T, isize)> {
        let computed = X::ANY && self.indices.is_active();
        (!computed).then(|| (self.base.wrapping_offset(self.offset(at)), self.strides[along]))
    }

    #[cfg_attr(not(unoptimized), inline(always))]
    fn source(&self, at: &[usize]) -> Option<*const T> {
        let neighbors = self.inner == 1 && !(X::ANY && self.indices.is_active());
        neighbors.then(|| self.base.wrapping_offset(self.offset(at)))
    }

    #[cfg_attr(not(unoptimized), inline(always))]
    fn load<I: Isa>(&mut self, tile: &Tile<'_>, faults: &mut Faults) {
        let start = match tile.moved {
            Some((at, steps)) => self.start.wrapping_offset(self.strides[at] * steps as isize),
            None => self.base.wrapping_offset(self.offset(tile.at)),
        };
        self.start = start;
        if !X::ANY || !self.indices.is_active() {
            self.line(start, tile.len);
        } else if self.indices.is_uniform() && tile.mask.is_none() {
            self.indices.load::<I>(&Tile { len: tile.len.min(1), ..*tile }, faults);
            // SAFETY: a tile has at least one element, and there is no mask.
            match unsafe { self.indices.offset::<I>(0, faults) } {
                Some(offset) => self.line(start.wrapping_offset(offset), tile.len),
                None => self.stand_in(tile.len),
            }
        } else {
            self.indices.load::<I>(tile, faults);
            self.gather::<I>(start, tile, faults);
        }
    }

    #[cfg_attr(not(unoptimized), inline(always))]
    unsafe fn get<I: Isa>(&self, x: usize) -> T {
        // SAFETY: `current` points to the `len` elements of the tile, in memory or in the buffer,
        // and `x < len`.
        unsafe { *self.current.add(x) }
    }

    #[cfg_attr(not(unoptimized), inline(always))]
    fn has_broadcast_operand<const LEFT: bool>(&self) -> bool {
        true
    }

    #[cfg_attr(not(unoptimized), inline(always))]
    fn tile_reader<I: Isa, const LEFT: bool>(&self) -> *const T {
        self.current
    }

    #[cfg_attr(not(unoptimized), inline(always))]
    unsafe fn get_broadcast<I: Isa, const LEFT: bool>(&reader: &*const T, x: usize) -> T {
        // SAFETY: the reader points to the `len` elements of the tile that was loaded before it was
        // made, and `x < len`.
        unsafe { *reader.add(x) }
    }

    #[cfg_attr(not(unoptimized), inline(always))]
    fn pairs<const LEFT: bool>(
        &self,
        at: &[usize],
        row: usize,
        along: usize,
        paired: bool,
    ) -> Option<Self::Pairs> {
        let (start, step) = self.steps(at, along)?;
        let down = self.strides[row];
        let fits = if paired { self.inner == 1 && down == 0 } else { self.inner == 0 };
        fits.then_some((start, down, step))
    }

    #[cfg_attr(not(unoptimized), inline(always))]
    unsafe fn broadcast_element<I: Isa>(&(start, down, along): &Self::Pairs, row: usize, step: usize) -> T {
        // SAFETY: the caller's promise.
        unsafe { *start.offset(row as isize * down + step as isize * along) }
    }

    #[cfg_attr(not(unoptimized), inline(always))]
    unsafe fn pair_reader<I: Isa, const LEFT: bool>(
        &(start, _, along): &Self::Pairs,
        _: usize,
        step: usize,
    ) -> *const T {
        // Written so that the compiler sees that the pointer does not depend on the row.
        start.wrapping_offset(step as isize * along)
    }

    #[cfg_attr(not(unoptimized), inline(always))]
    fn is_uniform(&self) -> bool {
        !W::UNIT && self.inner == 0 && (!X::ANY || !self.indices.is_active() || self.indices.is_uniform())
    }

    #[cfg_attr(not(unoptimized), inline(always))]
    fn can_fault(&self) -> bool {
        X::ANY && self.indices.is_active()
    }
}
