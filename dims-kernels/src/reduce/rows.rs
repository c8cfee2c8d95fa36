//! Reductions of whole rows in memory, such as the sum of all rows of a matrix, or of the rows of a
//! table that a list of indices selects.
//!
//! Waiting for distant rows takes longer than adding them. Rows at computed indices come in an
//! order that the hardware cannot predict. So pointers to the next rows are computed in advance,
//! and those rows are prefetched, even if they are added to a later row of the result. Several
//! rows are added at a time, in strips whose accumulators stay in registers. If rows are long,
//! fewer are added at a time, because each of them is a stream for the hardware prefetchers.

use crate::load::{Faults, Kernel};
use crate::loops::nest::{Nest, Odometer};
use crate::machine::isa::{Isa, Task, dispatch};
use crate::machine::params::params;
use crate::machine::prefetch::{LINE, prefetch_lines, prefetch_row};
use crate::reduce::levels::Levels;
use crate::reduce::{BLOCK, Reducer, WIDTH, is_far};
use alloc::vec;
use core::mem::MaybeUninit;
use core::ops::Range;
use smallvec::SmallVec;

/// How many rows are added at a time, while as many others are prefetched.
const ROWS_AT_ONCE: usize = 32;

/// Like [`ROWS_AT_ONCE`], for rows of more than [`PREFETCH_BYTES`] bytes.
const LONG_ROWS: usize = 8;

/// How many bytes of a row at a computed index are prefetched before the row is added, and the
/// prefetch distance while it is added. For other rows, both depend on the [processor](params).
const PREFETCH_BYTES: usize = 1 << 10;

/// The maximum number of elements of a row at a computed index that are added at once.
const MAX_STRIP: usize = 128;

/// Reduces a nest whose innermost loop is kept, if that is worthwhile and the kernel can return
/// pointers to its rows. Returns `false` if the nest still has to be reduced in another way. The
/// result is written to `out`; after a fault, the contents of `out` are unspecified.
#[cfg_attr(not(unoptimized), inline(always))]
pub fn reduce_rows<K: Kernel, R: Reducer<K::Elem>>(
    kernel: &mut K,
    nest: &Nest,
    count: usize,
    reducer: R,
    out: &mut [MaybeUninit<R::Out>],
    faults: &mut Faults,
) -> bool {
    let last = nest.depth() - 1;
    let has_rows = last > nest.outer && !nest.sizes.contains(&0);
    if !has_rows {
        return false;
    }
    if !K::GATHERS {
        let has_strips = R::ALWAYS_BY_ROWS && nest.sizes[last] >= END;
        if !(has_strips || is_far::<K::Elem>(nest)) || !is_contiguous(kernel, nest) {
            return false;
        }
    }
    dispatch(RowReduction { kernel, nest, count, reducer, out, faults })
}

/// Whether the rows are contiguous in memory. Not inlined, so that it is compiled once for all
/// reducers.
#[inline(never)]
fn is_contiguous<K: Kernel>(kernel: &K, nest: &Nest) -> bool {
    let origin: SmallVec<[usize; 8]> = SmallVec::from_elem(0, nest.depth());
    matches!(kernel.steps(&origin, nest.depth() - 1), Some((_, 1)))
}

struct RowReduction<'r, K: Kernel, R: Reducer<K::Elem>> {
    kernel: &'r mut K,
    nest: &'r Nest,
    count: usize,
    reducer: R,
    out: &'r mut [MaybeUninit<R::Out>],
    faults: &'r mut Faults,
}

impl<K: Kernel, R: Reducer<K::Elem>> Task for RowReduction<'_, K, R> {
    /// Whether the kernel could return pointers to the rows.
    type Out = bool;
    // All other reductions get here only if their rows come from memory, and so gain nothing from
    // wider vectors.
    const WIDE: bool = R::ALWAYS_BY_ROWS || K::GATHERS;

    #[cfg_attr(not(unoptimized), inline(always))]
    fn run<I: Isa>(mut self) -> bool {
        let width = self.nest.sizes[self.nest.depth() - 1];
        let part = (WIDTH / size_of::<R::Acc>().max(1)).max(1);
        let mut first = 0;
        while first < width {
            let done = self.columns::<I>(first..width.min(first + part));
            if self.faults.any() {
                return true;
            }
            if !done {
                return false;
            }
            first += part;
        }
        true
    }
}

impl<K: Kernel, R: Reducer<K::Elem>> RowReduction<'_, K, R> {
    /// Reduces some columns. Returns whether the kernel could return pointers to their rows.
    #[cfg_attr(not(unoptimized), inline(always))]
    fn columns<I: Isa>(&mut self, columns: Range<usize>) -> bool {
        let RowReduction { kernel, nest, count, reducer, out, faults } = self;
        let (last, width) = (nest.depth() - 1, columns.len());
        let rows: usize = nest.sizes[nest.outer..last].iter().product();
        let most = if width * size_of::<K::Elem>() > PREFETCH_BYTES { LONG_ROWS } else { ROWS_AT_ONCE };
        // Rows at computed indices are prefetched from their start up to where the hardware
        // prefetchers take over.
        let (strip, prefetch_distance) = if K::GATHERS {
            (MAX_STRIP, PREFETCH_BYTES)
        } else {
            (params().rows.strip, params().rows.prefetch_distance)
        };
        let step = nest.result[last] as usize;
        let mut places = RowStarts::new(nest, columns.start);
        let mut accs = vec![reducer.start(); width];
        let mut at: SmallVec<[usize; 8]> = SmallVec::from_elem(0, nest.outer);
        let mut odometer = Odometer::new(&nest.sizes[..nest.outer]);
        while !odometer.is_done() {
            accs.fill(reducer.start());
            let mut levels = Levels::new(width);
            let mut seen = 0;
            while seen < rows {
                let some = most.min(rows - seen).min(BLOCK - seen % BLOCK);
                if !places.compute_starts::<I, K>(kernel, most + some, faults) {
                    return false;
                }
                if faults.any() {
                    return true;
                }
                let starts = places.known();
                let own = &starts[..some];
                // If too few rows are left, the current rows are prefetched again.
                let next = starts.get(most..most + some).unwrap_or(own);
                let added = RowGroup { rows: own, next, seen, reducer: *reducer, strip, prefetch_distance };
                // SAFETY: the kernel says that these rows are in memory, and are as long as the
                // innermost loop.
                unsafe { added.add::<I>(&mut accs) };
                places.skip(some);
                seen += some;
                if seen % BLOCK == 0 {
                    levels.push::<I, K::Elem, R>(&mut accs, *reducer);
                }
            }
            levels.finish::<I, K::Elem, R>(&mut accs, *reducer);
            let place: isize = at.iter().zip(nest.result.iter()).map(|(&at, &step)| at as isize * step).sum();
            let out = &mut out[place as usize + columns.start * step..];
            if step == 1 {
                for (out, &acc) in out.iter_mut().zip(&accs) {
                    out.write(reducer.finish(acc, *count));
                }
            } else {
                for (x, &acc) in accs.iter().enumerate() {
                    out[x * step].write(reducer.finish(acc, *count));
                }
            }
            odometer.advance(&mut at);
        }
        true
    }
}

/// Room for pointers to the rows being added, to as many rows being prefetched, and to more rows,
/// so that pointers are seldom moved.
const ROOM: usize = 8 * ROWS_AT_ONCE;

/// Pointers to the next rows, in the order in which they are added.
struct RowStarts<'n, T> {
    starts: [*const T; ROOM],
    /// The pointers that are known and come next.
    known: Range<usize>,
    /// The position of the first row whose pointer is not known.
    at: SmallVec<[usize; 8]>,
    odometer: Odometer<'n>,
    nest: &'n Nest,
}

impl<'n, T> RowStarts<'n, T> {
    #[cfg_attr(not(unoptimized), inline(always))]
    fn new(nest: &'n Nest, column: usize) -> Self {
        let mut at: SmallVec<[usize; 8]> = SmallVec::from_elem(0, nest.depth());
        at[nest.depth() - 1] = column;
        RowStarts {
            starts: [core::ptr::null(); ROOM],
            known: 0..0,
            at,
            odometer: Odometer::new(&nest.sizes[..nest.depth() - 2]),
            nest,
        }
    }

    /// Computes pointers to rows until at least this many are known, or all. Returns whether the
    /// kernel could return them.
    #[cfg_attr(not(unoptimized), inline(always))]
    fn compute_starts<I: Isa, K: Kernel<Elem = T>>(
        &mut self,
        kernel: &mut K,
        wanted: usize,
        faults: &mut Faults,
    ) -> bool {
        let along = self.nest.depth() - 2;
        while self.known.len() < wanted && !self.odometer.is_done() {
            if self.known.end + ROWS_AT_ONCE > ROOM {
                self.starts.copy_within(self.known.clone(), 0);
                self.known = 0..self.known.len();
            }
            let left = self.nest.sizes[along] - self.at[along];
            let new = left.min(ROWS_AT_ONCE);
            let starts = &mut self.starts[self.known.end..self.known.end + new];
            if !kernel.starts::<I>(&mut self.at, along, starts, faults) {
                return false;
            }
            if faults.any() {
                return true;
            }
            self.known.end += new;
            self.at[along] += new;
            if new == left {
                self.at[along] = 0;
                self.odometer.advance(&mut self.at[..along]);
            }
        }
        true
    }

    #[cfg_attr(not(unoptimized), inline(always))]
    fn known(&self) -> &[*const T] {
        &self.starts[self.known.clone()]
    }

    #[cfg_attr(not(unoptimized), inline(always))]
    fn skip(&mut self, count: usize) {
        self.known.start += count;
    }
}

/// The number of accumulators of a strip at either end of a row, if the strips in between start at
/// cache lines.
const END: usize = 16;

/// Rows that are added together.
struct RowGroup<'r, T, R> {
    rows: &'r [*const T],
    /// The same number of later rows, which are prefetched while `rows` are added.
    next: &'r [*const T],
    /// How many rows have already been added.
    seen: usize,
    reducer: R,
    /// The maximum number of elements of a row that are added at once.
    strip: usize,
    /// How many bytes of a row are prefetched before the row is added, and the prefetch distance
    /// while it is added.
    prefetch_distance: usize,
}

impl<T: Copy, R: Reducer<T>> RowGroup<'_, T, R> {
    /// Adds the rows.
    ///
    /// # Safety
    ///
    /// Each of the rows has as many elements as there are accumulators.
    #[cfg_attr(not(unoptimized), inline(always))]
    unsafe fn add<I: Isa>(&self, accs: &mut [R::Acc]) {
        let len = accs.len();
        // Loads that cross the boundary between two cache lines take twice as long. If long rows do
        // not start at a cache line, but all have the same offset from one, strips start at cache
        // lines. The elements before and after these strips are added in two more strips, which
        // overlap the aligned ones.
        let skipped = if len >= END && len * size_of::<T>() > PREFETCH_BYTES { self.until_line() } else { 0 };
        let in_lines = 0 < skipped && skipped < END;
        let (mut first, mut last) = ([self.reducer.start(); END], [self.reducer.start(); END]);
        if in_lines {
            first.copy_from_slice(&accs[..END]);
            last.copy_from_slice(&accs[len - END..]);
            self.strip::<I, END>(0, len, &mut first);
        }
        // `strips` is called in one place, because it is most of the code of a reduction.
        let place = self.strips::<I>(if in_lines { skipped } else { 0 }, accs);
        if in_lines {
            self.strip::<I, END>(len - END, len, &mut last);
            accs[..END].copy_from_slice(&first);
            accs[len - END..].copy_from_slice(&last);
            return;
        }
        if place == len {
            return;
        }
        for (row, &start) in self.rows.iter().enumerate() {
            prefetch_row(self.next[row].wrapping_add(place), len - place);
            for (x, acc) in accs.iter_mut().enumerate().skip(place) {
                // SAFETY: the index is less than the number of accumulators.
                *acc = self.reducer.step::<I>(*acc, unsafe { *start.add(x) }, self.seen + row);
            }
        }
    }

    /// The number of elements before the next cache line; 0 if it is not the same in all rows.
    #[cfg_attr(not(unoptimized), inline(always))]
    fn until_line(&self) -> usize {
        let first = self.rows[0];
        let differ = self.rows.iter().fold(0, |differ, row| differ | row.addr() ^ first.addr());
        if differ % LINE == 0 { first.align_offset(LINE) } else { 0 }
    }

    /// Adds as many contiguous strips as fit, from `place` on. Returns the position after the last
    /// one.
    #[cfg_attr(not(unoptimized), inline(always))]
    fn strips<I: Isa>(&self, mut place: usize, accs: &mut [R::Acc]) -> usize {
        // 512 bytes fill a quarter of the registers of AVX-512, and all those of AVX2 or NEON. The
        // baseline of a target may have fewer registers, so it only uses strips of 16 elements.
        if const { !I::FUSED } {
            return self.strips_of::<I, 16>(place, accs);
        }
        if size_of::<R::Acc>() <= 4 && self.strip >= 128 {
            place = self.strips_of::<I, 128>(place, accs);
        }
        if size_of::<R::Acc>() <= 8 && self.strip >= 64 {
            place = self.strips_of::<I, 64>(place, accs);
        }
        if size_of::<R::Acc>() <= 4 {
            place = self.strips_of::<I, 32>(place, accs);
        }
        self.strips_of::<I, 16>(place, accs)
    }

    #[cfg_attr(not(unoptimized), inline(always))]
    fn strips_of<I: Isa, const N: usize>(&self, mut place: usize, accs: &mut [R::Acc]) -> usize {
        let len = accs.len();
        while let Some(strip) = accs[place..].first_chunk_mut::<N>() {
            self.strip::<I, N>(place, len, strip);
            place += N;
        }
        place
    }

    /// Adds a strip from `place` on, of rows of `len` elements.
    #[cfg_attr(not(unoptimized), inline(always))]
    fn strip<I: Isa, const N: usize>(&self, place: usize, len: usize, strip: &mut [R::Acc; N]) {
        let distance = self.prefetch_distance / size_of::<T>().max(1);
        let mut own = *strip;
        for (row, (&start, &next)) in self.rows.iter().zip(self.next).enumerate() {
            if place < distance {
                prefetch_lines(next.wrapping_add(place), N);
                if place + N == len {
                    // A row that does not start at a cache line may end in one more line.
                    prefetch_lines(next.wrapping_add(len - 1), 1);
                }
            }
            if place + distance < len {
                prefetch_lines(start.wrapping_add(place + distance), N);
            }
            for (x, acc) in own.iter_mut().enumerate() {
                // SAFETY: the strip is within the row: its end is at most `len`.
                let value = unsafe { *start.add(place + x) };
                *acc = self.reducer.step::<I>(*acc, value, self.seen + row);
            }
        }
        *strip = own;
    }
}
