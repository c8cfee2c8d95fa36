//! Reductions of whole rows that lie in memory: the sum of the rows of a matrix, or of those of a table that a list of numbers picks.
//!
//! What takes longest is to wait for them. Rows at computed places come in no order that the machine could guess, so their places are computed some
//! rows ahead, in this element of the result or in the next ones, and the memory is asked for them. Then some rows at a time are added, a strip of
//! each whose accumulators fill the registers. Of long rows there are fewer at a time, as each of them is a stream to be looked ahead in.

use super::isa::{Isa, Task, dispatch};
use super::levels::Levels;
use super::reduce::{BLOCK, Reducer, WIDTH, is_far};
use super::strided::fetch_row;
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
    let most = if width * size_of::<K::Elem>() > FETCHED { LONG_ROWS } else { ROWS };
    let rows: usize = nest.sizes[nest.outer..last].iter().product();
    let mut places = Places::new(nest, columns.start);
    if !places.look_ahead::<I, K>(kernel, faults) {
        return false;
    }
    let step = nest.result[last] as usize;
    let mut block = vec![reducer.start(); width];
    let mut at: SmallVec<[usize; 8]> = SmallVec::from_elem(0, nest.outer);
    let mut odometer = Odometer::new(&nest.sizes[..nest.outer]);
    while !odometer.is_done() {
        block.fill(reducer.start());
        let mut levels = Levels::new(width);
        let mut seen = 0;
        while seen < rows {
            places.look_ahead::<I, K>(kernel, faults);
            if faults.any() {
                return true;
            }
            let some = most.min(rows - seen).min(BLOCK - seen % BLOCK);
            let (starts, ahead) = places.next(some);
            // SAFETY: the kernel says that these rows lie in memory, and are as long as the innermost loop.
            dispatch(unsafe { Add::new(starts, ahead, &mut block, seen, reducer) });
            places.skip(some);
            seen += some;
            if seen % BLOCK == 0 {
                levels.push::<I, K::Elem, R>(&mut block, reducer);
            }
        }
        levels.finish::<I, K::Elem, R>(&mut block, reducer);
        let place: isize = at.iter().zip(&nest.result).map(|(&at, &step)| at as isize * step).sum();
        let out = &mut out[place as usize + columns.start * step..];
        if step == 1 {
            for (out, &acc) in out.iter_mut().zip(&block) {
                out.write(reducer.finish(acc, count));
            }
        } else {
            for (x, &acc) in block.iter().enumerate() {
                out[x * step].write(reducer.finish(acc, count));
            }
        }
        odometer.advance(&mut at);
    }
    true
}

/// Where the next rows start, in the order in which they are added.
struct Places<'n, T> {
    starts: [*const T; 2 * ROWS],
    len: usize,
    /// How many of them have been asked for.
    asked: usize,
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
            starts: [core::ptr::null(); 2 * ROWS],
            len: 0,
            asked: 0,
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

    /// The next `count` rows, which have been looked for, and those behind them for which the memory should be asked meanwhile.
    #[inline(always)]
    fn next(&mut self, count: usize) -> (&[*const T], &[*const T]) {
        let from = self.asked.max(count).min(self.len);
        self.asked = (from + count).min(self.len);
        (&self.starts[..self.len][..count], &self.starts[from..self.asked])
    }

    #[inline(always)]
    fn skip(&mut self, count: usize) {
        self.starts.copy_within(count..self.len, 0);
        self.len -= count;
        self.asked -= count;
    }
}

/// Adds rows to accumulators.
struct Add<'r, T, R: Reducer<T>> {
    starts: &'r [*const T],
    /// Rows for which the memory is asked meanwhile.
    ahead: &'r [*const T],
    block: &'r mut [R::Acc],
    /// How many rows have been added before.
    seen: usize,
    reducer: R,
}

impl<'r, T, R: Reducer<T>> Add<'r, T, R> {
    /// # Safety
    ///
    /// From each of the starts on there are as many elements as there are accumulators.
    #[inline(always)]
    unsafe fn new(
        starts: &'r [*const T],
        ahead: &'r [*const T],
        block: &'r mut [R::Acc],
        seen: usize,
        reducer: R,
    ) -> Self {
        Add { starts, ahead, block, seen, reducer }
    }

    /// Strips of `N` neighbours from `first` on, as many as there are. Returns the place behind the last one.
    #[inline(always)]
    fn strips<I: Isa, const N: usize>(&mut self, first: usize) -> usize
    where
        T: Copy,
    {
        let mut place = first;
        let (len, fetched) = (self.block.len(), FETCHED / size_of::<T>().max(1));
        while let Some(strip) = self.block[place..].first_chunk_mut::<N>() {
            let mut own = *strip;
            for (row, &start) in self.starts.iter().enumerate() {
                if place + fetched < len {
                    fetch_row(start.wrapping_add(place + fetched), N);
                }
                if let Some(&ahead) = self.ahead.get(row) {
                    fetch_row(ahead, fetched.min(len));
                }
                for (x, acc) in own.iter_mut().enumerate() {
                    // SAFETY: the place is less than the number of accumulators: the promise of `new`.
                    let value = unsafe { *start.add(place + x) };
                    *acc = self.reducer.step::<I>(*acc, value, self.seen + row);
                }
            }
            *strip = own;
            self.ahead = &[];
            place += N;
        }
        place
    }
}

impl<T: Copy, R: Reducer<T>> Task for Add<'_, T, R> {
    type Out = ();
    const WIDE: bool = true;

    #[inline(always)]
    fn run<I: Isa>(mut self) {
        // 512 bytes fill half of the registers of AVX-512, and all of AVX2.
        let mut place = 0;
        if size_of::<R::Acc>() <= 4 {
            place = self.strips::<I, 128>(place);
        } else if size_of::<R::Acc>() <= 8 {
            place = self.strips::<I, 64>(place);
        }
        place = self.strips::<I, 16>(place);
        for (row, &start) in self.starts.iter().enumerate() {
            if let Some(&ahead) = self.ahead.get(row) {
                fetch_row(ahead, self.block.len());
            }
            for (x, acc) in self.block.iter_mut().enumerate().skip(place) {
                // SAFETY: as in `strips`.
                *acc = self.reducer.step::<I>(*acc, unsafe { *start.add(x) }, self.seen + row);
            }
        }
    }
}
