//! Reductions of whole rows that lie in memory: the sum of the rows of a matrix, or of those of a table that a list of numbers picks.
//!
//! What takes longest is to wait for them. Rows at computed places come in no order that the machine could guess, so their places are computed some
//! rows ahead, in this element of the result or in the next ones, and the memory is asked for them. Then some rows at a time are added, a strip of
//! each whose accumulators fill the registers. Of long rows there are fewer at a time, as each of them is a stream to be looked ahead in.

use super::isa::{Isa, Task, dispatch};
use super::levels::Levels;
use super::reduce::{BLOCK, Reducer, WIDTH, is_far};
use super::strided::{LINE, fetch_lines, fetch_row};
use super::{Faults, Kernel};
use crate::plan::nest::{Nest, Odometer};
use alloc::vec;
use core::mem::MaybeUninit;
use core::ops::Range;
use smallvec::SmallVec;

/// How many rows are added at a time, while as many others are asked for.
const ROWS: usize = 32;

/// The same for rows of more than [`FETCHED`] bytes.
const LONG_ROWS: usize = 8;

/// How many bytes of a row are asked for before it is its turn, and from then on.
const FETCHED: usize = 1 << 10;

/// How many rows are handed over at a time: those of one element of the result or of several.
const MANY: usize = 256;

/// Reduces a nest whose innermost loop is kept, if the kernel can say where its rows lie; the result goes to `out`. Returns whether it could.
/// Where there is a fault, nothing is said of the result.
#[inline(always)]
pub(super) fn reduce_rows<I: Isa, K: Kernel, R: Reducer<K::Elem>>(
    kernel: &mut K,
    nest: &Nest,
    count: usize,
    reducer: R,
    out: &mut [MaybeUninit<R::Out>],
    faults: &mut Faults,
) -> bool {
    let last = nest.depth() - 1;
    if last == nest.outer || nest.sizes.contains(&0) || !(K::GATHERS || is_far::<K::Elem>(nest)) {
        return false;
    }
    let width = nest.sizes[last];
    let part = WIDTH / size_of::<R::Acc>().max(1);
    (0..width).step_by(part.max(1)).all(|first| {
        let columns = first..width.min(first + part);
        let done = reduce_columns::<I, K, R>(kernel, nest, columns, count, reducer, out, faults);
        done || faults.any()
    })
}

/// As [`reduce_rows`], for some columns.
#[inline(always)]
fn reduce_columns<I: Isa, K: Kernel, R: Reducer<K::Elem>>(
    kernel: &mut K,
    nest: &Nest,
    columns: Range<usize>,
    count: usize,
    reducer: R,
    out: &mut [MaybeUninit<R::Out>],
    faults: &mut Faults,
) -> bool {
    let last = nest.depth() - 1;
    let width = columns.len();
    let rows: usize = nest.sizes[nest.outer..last].iter().product();
    let mut left: usize = nest.sizes[..nest.outer].iter().product();
    let mut places = Places::new(nest, columns.start);
    if !places.look_ahead::<I, K>(kernel, faults) {
        return false;
    }
    // Short sums are handed over together: each call takes as long as a few rows.
    let room = WIDTH / size_of::<R::Acc>().max(1) / width.max(1);
    let most = if rows < BLOCK { (MANY / rows.max(1)).min(room).max(1) } else { 1 };
    let step = nest.result[last] as usize;
    let mut block = vec![reducer.start(); most.min(left) * width];
    let mut at: SmallVec<[usize; 8]> = SmallVec::from_elem(0, nest.outer);
    let mut odometer = Odometer::new(&nest.sizes[..nest.outer]);
    while !odometer.is_done() {
        let results = most.min(left);
        let block = &mut block[..results * width];
        block.fill(reducer.start());
        let mut levels = Levels::new(width);
        let mut seen = 0;
        while seen < rows {
            places.look_ahead::<I, K>(kernel, faults);
            if faults.any() {
                return true;
            }
            let some = MANY.min(rows - seen).min(BLOCK - seen % BLOCK);
            let starts = places.known();
            // SAFETY: the kernel says that these rows lie in memory, and are as long as the innermost loop.
            dispatch(unsafe { Add::new(starts, some, block, width, seen, reducer) });
            places.skip(results * some);
            seen += some;
            if seen % BLOCK == 0 {
                levels.push::<I, K::Elem, R>(block, reducer);
            }
        }
        if results == 1 {
            levels.finish::<I, K::Elem, R>(block, reducer);
        }
        for accs in block.chunks_exact(width) {
            let place: isize = at.iter().zip(&nest.result).map(|(&at, &step)| at as isize * step).sum();
            let out = &mut out[place as usize + columns.start * step..];
            if step == 1 {
                for (out, &acc) in out.iter_mut().zip(accs) {
                    out.write(reducer.finish(acc, count));
                }
            } else {
                for (x, &acc) in accs.iter().enumerate() {
                    out[x * step].write(reducer.finish(acc, count));
                }
            }
            odometer.advance(&mut at);
        }
        left -= results;
    }
    true
}

/// Where the next rows start, in the order in which they are added.
struct Places<'n, T> {
    starts: [*const T; MANY + ROWS],
    len: usize,
    /// The position of the first row that is not among them.
    at: SmallVec<[usize; 8]>,
    odometer: Odometer<'n>,
    nest: &'n Nest,
}

impl<'n, T> Places<'n, T> {
    #[inline(always)]
    fn new(nest: &'n Nest, column: usize) -> Self {
        let mut at: SmallVec<[usize; 8]> = SmallVec::from_elem(0, nest.depth());
        at[nest.depth() - 1] = column;
        Places {
            starts: [core::ptr::null(); MANY + ROWS],
            len: 0,
            at,
            odometer: Odometer::new(&nest.sizes[..nest.depth() - 2]),
            nest,
        }
    }

    /// Computes where rows start until as many are known as there is room for. Returns whether the kernel could say it.
    #[inline(always)]
    fn look_ahead<I: Isa, K: Kernel<Elem = T>>(&mut self, kernel: &mut K, faults: &mut Faults) -> bool {
        let along = self.nest.depth() - 2;
        while self.len < self.starts.len() && !self.odometer.is_done() {
            let left = self.nest.sizes[along] - self.at[along];
            let new = left.min(self.starts.len() - self.len);
            let starts = &mut self.starts[self.len..self.len + new];
            if !kernel.starts::<I>(&mut self.at, along, starts, faults) {
                return false;
            }
            if faults.any() {
                return true;
            }
            self.len += new;
            self.at[along] += new;
            if new == left {
                self.at[along] = 0;
                self.odometer.advance(&mut self.at[..along]);
            }
        }
        true
    }

    /// All that are known.
    #[inline(always)]
    fn known(&self) -> &[*const T] {
        &self.starts[..self.len]
    }

    #[inline(always)]
    fn skip(&mut self, count: usize) {
        self.starts.copy_within(count..self.len, 0);
        self.len -= count;
    }
}

/// Adds rows to accumulators.
struct Add<'r, T, R: Reducer<T>> {
    /// Where rows start: those of the first result, of the next ones, and then rows that come later, for which the memory is asked meanwhile.
    starts: &'r [*const T],
    /// How many of them belong to each result.
    rows: usize,
    /// The accumulators of the results, one row after the other.
    block: &'r mut [R::Acc],
    width: usize,
    /// How many rows have been added before.
    seen: usize,
    reducer: R,
}

impl<'r, T, R: Reducer<T>> Add<'r, T, R> {
    /// # Safety
    ///
    /// There are `rows` starts for each row of accumulators at least, and from each of these on `width` elements.
    #[inline(always)]
    unsafe fn new(
        starts: &'r [*const T],
        rows: usize,
        block: &'r mut [R::Acc],
        width: usize,
        seen: usize,
        reducer: R,
    ) -> Self {
        Add { starts, rows, block, width, seen, reducer }
    }
}

impl<T: Copy, R: Reducer<T>> Task for Add<'_, T, R> {
    type Out = ();
    const WIDE: bool = true;

    #[inline(always)]
    fn run<I: Isa>(self) {
        let Add { starts, rows, block, width, seen, reducer } = self;
        let most = if width * size_of::<T>() > FETCHED { LONG_ROWS } else { ROWS };
        for (number, accs) in block.chunks_exact_mut(width).enumerate() {
            let own = number * rows..(number + 1) * rows;
            for from in own.clone().step_by(most) {
                let to = own.end.min(from + most);
                // (Towards the end there may be fewer.)
                let later = starts.get(from + most..to + most).unwrap_or(&starts[from..to]);
                let some =
                    Rows { rows: &starts[from..to], ahead: later, seen: seen + from - own.start, reducer };
                some.add::<I>(accs);
            }
        }
    }
}

/// A strip of accumulators at either end of a row, if the strips between are to start with a line of memory.
const END: usize = 16;

/// Some rows, all of which are added before the next ones.
struct Rows<'r, T, R> {
    rows: &'r [*const T],
    /// As many rows for which the memory is asked meanwhile.
    ahead: &'r [*const T],
    /// How many rows have been added before.
    seen: usize,
    reducer: R,
}

impl<T: Copy, R: Reducer<T>> Rows<'_, T, R> {
    /// Adds the rows, each of which has as many elements as there are accumulators, as was promised to [`Add::new`].
    #[inline(always)]
    fn add<I: Isa>(&self, accs: &mut [R::Acc]) {
        let len = accs.len();
        // What crosses the end of a line of memory takes twice as long to come. So strips start with a line, where rows do not, but all of them
        // are as far from one; what lies before and behind is added in strips of its own that overlap them.
        let skipped = self.until_line();
        if 0 < skipped && skipped < END && len * size_of::<T>() > FETCHED {
            let (mut first, mut last) = ([self.reducer.start(); END], [self.reducer.start(); END]);
            first.copy_from_slice(&accs[..END]);
            last.copy_from_slice(&accs[len - END..]);
            self.strip::<I, END>(0, len, &mut first);
            self.strips::<I>(skipped, accs);
            self.strip::<I, END>(len - END, len, &mut last);
            accs[..END].copy_from_slice(&first);
            accs[len - END..].copy_from_slice(&last);
            return;
        }
        let place = self.strips::<I>(0, accs);
        if place == len {
            return;
        }
        for (row, &start) in self.rows.iter().enumerate() {
            fetch_row(self.ahead[row].wrapping_add(place), len - place);
            for (x, acc) in accs.iter_mut().enumerate().skip(place) {
                // SAFETY: the place is less than the number of accumulators.
                *acc = self.reducer.step::<I>(*acc, unsafe { *start.add(x) }, self.seen + row);
            }
        }
    }

    /// How many elements lie before the next line of memory in each row; 0 if that differs.
    #[inline(always)]
    fn until_line(&self) -> usize {
        let first = self.rows[0];
        let differ = self.rows.iter().fold(0, |differ, row| differ | row.addr() ^ first.addr());
        if differ % LINE == 0 { first.align_offset(LINE) } else { 0 }
    }

    /// Strips of neighbours from `place` on, as many as there are. Returns the place behind the last one.
    #[inline(always)]
    fn strips<I: Isa>(&self, mut place: usize, accs: &mut [R::Acc]) -> usize {
        // 512 bytes fill half of the registers of AVX-512, and all of AVX2.
        if size_of::<R::Acc>() <= 4 {
            place = self.strips_of::<I, 128>(place, accs);
        }
        if size_of::<R::Acc>() <= 8 {
            place = self.strips_of::<I, 64>(place, accs);
        }
        if size_of::<R::Acc>() <= 4 {
            place = self.strips_of::<I, 32>(place, accs);
        }
        self.strips_of::<I, 16>(place, accs)
    }

    #[inline(always)]
    fn strips_of<I: Isa, const N: usize>(&self, mut place: usize, accs: &mut [R::Acc]) -> usize {
        let len = accs.len();
        while let Some(strip) = accs[place..].first_chunk_mut::<N>() {
            self.strip::<I, N>(place, len, strip);
            place += N;
        }
        place
    }

    /// Adds a strip from `place` on of rows of `len` elements.
    #[inline(always)]
    fn strip<I: Isa, const N: usize>(&self, place: usize, len: usize, strip: &mut [R::Acc; N]) {
        let fetched = FETCHED / size_of::<T>().max(1);
        let mut own = *strip;
        for (row, (&start, &ahead)) in self.rows.iter().zip(self.ahead).enumerate() {
            if place < fetched {
                fetch_lines(ahead.wrapping_add(place), N);
                if place + N == len {
                    // A row that does not start with a line ends in one more.
                    fetch_lines(ahead.wrapping_add(len - 1), 1);
                }
            }
            if place + fetched < len {
                fetch_lines(start.wrapping_add(place + fetched), N);
            }
            for (x, acc) in own.iter_mut().enumerate() {
                // SAFETY: the strip lies within the row: its end is no farther than `len`.
                let value = unsafe { *start.add(place + x) };
                *acc = self.reducer.step::<I>(*acc, value, self.seen + row);
            }
        }
        *strip = own;
    }
}
