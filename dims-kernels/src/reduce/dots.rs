//! Sums of products of two lines in memory. Many results may share one of the lines, as in a matrix
//! times a vector.
//!
//! Reading memory limits the speed of such sums. So the lines that are not shared are read once,
//! from one end to the other, in vectors that start at cache lines: a load that crosses the
//! boundary between two cache lines takes longer.

use crate::error::Error;
use crate::loops::nest::{Nest, Odometer};
use crate::machine::isa::{Isa, Task, dispatch};
use crate::machine::params::params;
use crate::machine::prefetch::{LINE, prefetch_lines};
use crate::machine::threads;
use crate::memory::destination::Destination;
use crate::memory::elements::Elements;
use crate::reduce::fold::{self, together};
use crate::reduce::reducers::Sum;
use crate::reduce::{BLOCK, Reducer, is_far, push, total};
use crate::scalar::Num;
use alloc::vec::Vec;
use core::mem::MaybeUninit;
use smallvec::SmallVec;

/// The number of accumulators of a sum.
const DOT_LANES: usize = 2 * fold::LANES;

/// The maximum number of elements that are summed at once: [`BLOCK`] for each accumulator, before
/// it is combined with others.
const MAX_CHUNK: usize = BLOCK * DOT_LANES;

/// The minimum length of a line. Other loops sum shorter lines just as fast.
const MIN_LINE: usize = 128;

/// The sums of products of a nest's two operands, which are [lines](are_lines), in the order of the
/// kept loops.
///
/// # Panics
///
/// If the operands are not lines, or `to` is [`Destination::Reused`] or does not have as many slots
/// as there are sums.
///
/// # Safety
///
/// The nest has a row for each operand. That row maps each position of the nest to one of the
/// operand's elements.
pub unsafe fn sum_products<T: Num>(
    operands: [Elements<'_, T>; 2],
    nest: &Nest,
    sum: Sum,
    to: Destination<'_, T>,
) -> Result<Vec<T>, Error> {
    assert!(are_lines(nest), "the operands are contiguous along the innermost loop");
    let fill = |places: &mut [MaybeUninit<T>]| {
        write(operands, nest, sum, places);
        Ok(())
    };
    // SAFETY: all slots are written.
    unsafe { to.fill(fill) }
}

/// Whether an outer loop is kept, the innermost loop is reduced and not short, and both operands of
/// the nest are contiguous along it.
pub fn are_lines(nest: &Nest) -> bool {
    let last = nest.depth() - 1;
    // A single sum is split into parts elsewhere.
    !nest.inner_kept
        && nest.outer > 0
        && nest.sizes[last] >= MIN_LINE
        && (0..2).all(|operand| nest.strides_of(operand)[last] == 1)
}

/// Writes all sums: the kept loops of all parts cover each slot once.
fn write<T: Num>(operands: [Elements<'_, T>; 2], nest: &Nest, sum: Sum, places: &mut [MaybeUninit<T>]) {
    // The operand that is read once comes first.
    let last = nest.depth() - 1;
    let varies =
        |operand: usize| nest.strides_of(operand)[..last].iter().filter(|&&stride| stride != 0).count();
    let exchanged = varies(0) < varies(1);
    let parts = nest.for_threads(nest.positions());
    let mut rest = places;
    let mut work = SmallVec::<[_; 1]>::new();
    for nest in &parts {
        let (own, others) = rest.split_at_mut(nest.results());
        rest = others;
        work.push(Dots { operands, nest, exchanged, sum, out: own });
    }
    assert!(rest.is_empty(), "the kept loops cover the result");
    if work.len() == 1 {
        work.into_iter().for_each(Dots::write);
    } else {
        threads::each(work.into_vec(), Dots::write);
    }
}

/// Sums of products along the innermost loop.
struct Dots<'n, T> {
    operands: [Elements<'n, T>; 2],
    nest: &'n Nest,
    /// Whether the second operand is the one that is read once.
    exchanged: bool,
    sum: Sum,
    out: &'n mut [MaybeUninit<T>],
}

impl<T: Num> Dots<'_, T> {
    fn write(self) {
        if self.is_in_pairs() { dispatch(InPairs(self)) } else { dispatch(self) }
    }

    /// Whether two lines at once are faster than one. This depends on the machine. The lines must
    /// come from memory, be multiplied by the same line, and have the same alignment in cache
    /// lines, and only one loop may be reduced. From caches, one line at a time is faster. Elements
    /// must have at most 4 bytes, because the sums of larger elements need too many registers.
    fn is_in_pairs(&self) -> bool {
        let nest = self.nest;
        let [once, again] = [usize::from(self.exchanged), usize::from(!self.exchanged)];
        let last = nest.depth() - 1;
        let next = nest.outer - 1;
        (params().dots.pairs || cfg!(test))
            && size_of::<T>() <= 4
            && is_far::<T>(nest)
            && nest.outer == last
            && nest.strides_of(again)[next] == 0
            && (nest.strides_of(once)[next].unsigned_abs() * size_of::<T>()).is_multiple_of(LINE)
    }
}

impl<T: Num> Task for Dots<'_, T> {
    type Out = ();
    const WIDE: bool = true;
    const WAITS: bool = true;

    #[cfg_attr(not(unoptimized), inline(always))]
    fn run<I: Isa>(self) {
        let Dots { mut operands, nest, exchanged, sum, out } = self;
        let last = nest.depth() - 1;
        let count = nest.sizes[last];
        let prefetch_distance = is_far::<T>(nest).then(|| params().dots.prefetch_distance);
        let mut rows = nest.operands();
        let mut rows = [rows.next_row(), rows.next_row()];
        if exchanged {
            rows.swap(0, 1);
            operands.swap(0, 1);
        }
        let mut at: SmallVec<[usize; 8]> = SmallVec::from_elem(0, last);
        let mut outer = Odometer::new(&nest.sizes[..nest.outer]);
        let mut places = out.iter_mut();
        while !outer.is_done() {
            let mut totals = SmallVec::new();
            let mut blocks = 0;
            let mut inner = Odometer::new(&nest.sizes[nest.outer..last]);
            while !inner.is_done() {
                let line = |operand: usize| {
                    let row = &rows[operand];
                    let steps: isize =
                        at.iter().zip(row.strides).map(|(&at, &step)| at as isize * step).sum();
                    // SAFETY: the row reaches only elements, and is contiguous along the innermost
                    // loop, which runs over `count` of them.
                    unsafe { operands[operand].line(row.offset + steps, count) }
                };
                for (x, y) in line(0).chunks(MAX_CHUNK).zip(line(1).chunks(MAX_CHUNK)) {
                    blocks += 1;
                    let part = dot::<I, T>(x, y, prefetch_distance).widen();
                    push::<I, T, Sum>(&mut totals, blocks, part, sum);
                }
                inner.advance(&mut at[nest.outer..]);
            }
            let total = total::<I, T, Sum>(totals, T::Acc::ZERO, sum);
            places
                .next()
                .expect("the kept loops cover the result")
                .write(Reducer::<T>::finish(&sum, total, 0));
            outer.advance(&mut at[..nest.outer]);
        }
    }
}

/// Like [`Dots`], with two lines at once: the line that they are multiplied by is read half as
/// often. It is a separate task, because in one function with these loops, the accumulators of
/// [`Dots`] would not stay in registers.
struct InPairs<'n, T>(Dots<'n, T>);

impl<T: Num> Task for InPairs<'_, T> {
    type Out = ();
    const WIDE: bool = true;
    const WAITS: bool = true;

    #[cfg_attr(not(unoptimized), inline(always))]
    fn run<I: Isa>(self) {
        let Dots { mut operands, nest, exchanged, sum, out } = self.0;
        let last = nest.depth() - 1;
        let count = nest.sizes[last];
        let mut rows = nest.operands();
        let mut rows = [rows.next_row(), rows.next_row()];
        if exchanged {
            rows.swap(0, 1);
            operands.swap(0, 1);
        }
        let mut at: SmallVec<[usize; 8]> = SmallVec::from_elem(0, last);
        let line = |at: &[usize], operand: usize| {
            let row = &rows[operand];
            let steps: isize = at.iter().zip(row.strides).map(|(&at, &step)| at as isize * step).sum();
            // SAFETY: the row reaches only elements, and is contiguous along the innermost loop,
            // which runs over `count` of them.
            unsafe { operands[operand].line(row.offset + steps, count) }
        };
        let jump = rows[0].strides[last - 1].wrapping_mul(2).wrapping_sub_unsigned(count);
        let distance = params().dots.prefetch_distance;
        let mut outer = Odometer::new(&nest.sizes[..last]);
        let mut places = out.iter_mut();
        while !outer.is_done() {
            let (first, y) = (line(&at, 0), line(&at, 1));
            let is_pair = at[last - 1] + 1 < nest.sizes[last - 1];
            outer.advance(&mut at);
            // With an odd number of lines, the last one is paired with itself.
            let second = if is_pair { line(&at, 0) } else { first };
            let mut prefetch = PairPrefetch { rest: count, jump, distance };
            let mut totals = [SmallVec::new(), SmallVec::new()];
            let lines = first.chunks(MAX_CHUNK).zip(second.chunks(MAX_CHUNK)).zip(y.chunks(MAX_CHUNK));
            for (blocks, ((first, second), y)) in lines.enumerate() {
                let parts = two_dots::<I, T>([first, second], y, prefetch);
                for (totals, part) in totals.iter_mut().zip(parts) {
                    push::<I, T, Sum>(totals, blocks + 1, part.widen(), sum);
                }
                prefetch.rest -= y.len();
            }
            for totals in totals.into_iter().take(1 + usize::from(is_pair)) {
                let total = total::<I, T, Sum>(totals, T::Acc::ZERO, sum);
                places
                    .next()
                    .expect("the kept loops cover the result")
                    .write(Reducer::<T>::finish(&sum, total, 0));
            }
            if is_pair {
                outer.advance(&mut at);
            }
        }
    }
}

/// The positions to prefetch while two lines are read.
#[derive(Clone, Copy)]
struct PairPrefetch {
    /// The number of elements left to the end of the lines.
    rest: usize,
    /// The distance from the end of a line to the corresponding line of the next pair.
    jump: isize,
    /// The prefetch distance, in elements.
    distance: usize,
}

impl PairPrefetch {
    /// Prefetches ahead of `place`, which is the `count`th of the remaining elements.
    #[cfg_attr(not(unoptimized), inline(always))]
    fn prefetch<T>(self, place: *const T, count: usize) {
        let jump = if count + self.distance < self.rest { 0 } else { self.jump };
        prefetch_lines(place.wrapping_add(self.distance).wrapping_offset(jump), DOT_LANES);
    }
}

/// The number of elements before the first whole cache line; 0 if there are few elements.
#[cfg_attr(not(unoptimized), inline(always))]
fn before_line<T>(x: &[T]) -> usize {
    // This selects values instead of branching: with branches, accumulators would not stay in
    // registers.
    let skipped = x.as_ptr().align_offset(LINE) % DOT_LANES;
    if x.len() < 2 * DOT_LANES { 0 } else { skipped }
}

/// The sum of the products of the elements of two lines of equal length, at most [`MAX_CHUNK`].
#[cfg_attr(not(unoptimized), inline(always))]
fn dot<I: Isa, T: Num>(x: &[T], y: &[T], prefetch_distance: Option<usize>) -> T {
    let mut lanes = [T::ZERO; DOT_LANES];
    let step = |acc: &mut T, x: T, y: T| *acc = acc.add_product::<I>(x, y);
    // The elements before the first whole cache line go to the last accumulators, as if more
    // elements preceded them. So the same elements share an accumulator wherever the line is in
    // memory. Only the index of the accumulator differs. At the end, halves are added to halves, so
    // the same accumulators are added to each other.
    let skipped = before_line(x);
    let ((x_head, x), (y_head, y)) = (x.split_at(skipped), y.split_at(skipped));
    for (acc, (&x, &y)) in lanes[DOT_LANES - skipped..].iter_mut().zip(x_head.iter().zip(y_head)) {
        step(acc, x, y);
    }
    let ((xs, x_tail), (ys, y_tail)) = (x.as_chunks::<DOT_LANES>(), y.as_chunks::<DOT_LANES>());
    let mut own = lanes;
    for (x, y) in xs.iter().zip(ys) {
        if let Some(distance) = prefetch_distance {
            prefetch_lines(x.as_ptr().wrapping_add(distance), DOT_LANES);
        }
        for (acc, (&x, &y)) in own.iter_mut().zip(x.iter().zip(y)) {
            step(acc, x, y);
        }
    }
    lanes = own;
    for (acc, (&x, &y)) in lanes.iter_mut().zip(x_tail.iter().zip(y_tail)) {
        step(acc, x, y);
    }
    combined(&lanes)
}

/// Like [`dot`], for two lines that are multiplied by the same line. Both have the same number of
/// elements before the first whole cache line.
#[cfg_attr(not(unoptimized), inline(always))]
fn two_dots<I: Isa, T: Num>(xs: [&[T]; 2], y: &[T], prefetch: PairPrefetch) -> [T; 2] {
    let mut lanes = [[T::ZERO; DOT_LANES]; 2];
    let step = |acc: &mut T, x: T, y: T| *acc = acc.add_product::<I>(x, y);
    let skipped = before_line(xs[0]);
    let (y_head, y) = y.split_at(skipped);
    for (lanes, x) in lanes.iter_mut().zip(xs) {
        for (acc, (&x, &y)) in lanes[DOT_LANES - skipped..].iter_mut().zip(x[..skipped].iter().zip(y_head)) {
            step(acc, x, y);
        }
    }
    let xs = xs.map(|x| x[skipped..].as_chunks::<DOT_LANES>());
    let (ys, y_tail) = y.as_chunks::<DOT_LANES>();
    let mut own = lanes;
    for (at, y) in ys.iter().enumerate() {
        for (own, (x, _)) in own.iter_mut().zip(xs) {
            let x = &x[at];
            prefetch.prefetch(x.as_ptr(), skipped + at * DOT_LANES);
            for (acc, (&x, &y)) in own.iter_mut().zip(x.iter().zip(y)) {
                step(acc, x, y);
            }
        }
    }
    lanes = own;
    for (lanes, (_, x_tail)) in lanes.iter_mut().zip(xs) {
        for (acc, (&x, &y)) in lanes.iter_mut().zip(x_tail.iter().zip(y_tail)) {
            step(acc, x, y);
        }
    }
    [combined(&lanes[0]), combined(&lanes[1])]
}

/// The sum of all accumulators. Halves are added to halves.
#[cfg_attr(not(unoptimized), inline(always))]
fn combined<T: Num>(lanes: &[T; DOT_LANES]) -> T {
    let mut halves = [T::ZERO; fold::LANES];
    for (at, half) in halves.iter_mut().enumerate() {
        *half = lanes[at].add(lanes[at + fold::LANES]);
    }
    together(halves, |a, b| a.add(b))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::loops::rows::Rows;
    use alloc::vec::Vec;

    #[test]
    fn pairs_of_lines_are_multiplied_with_a_vector() {
        // An odd number of lines, and lines longer than `MAX_CHUNK`.
        for (rows, columns, gap) in [(641, 1024, 0), (67, 8208, 16), (66, 20_000, 0)] {
            // Small integers, whose sums are exact in any order.
            let step = columns + gap;
            let matrix: Vec<f32> = (0..rows * step).map(|at| (at * 7 % 5) as f32 - 2.0).collect();
            let vector: Vec<f32> = (0..columns).map(|at| (at % 3) as f32 - 1.0).collect();
            let mut strides = Rows::new(2);
            strides.push().copy_from_slice(&[step as isize, 1]);
            strides.push().copy_from_slice(&[0, 1]);
            let nest = Nest::reduce(&[rows, columns], &[0], &[1], &strides);
            let operands = [Elements::of_slice(&matrix), Elements::of_slice(&vector)];
            // SAFETY: the strides lead to elements of the matrix and of the vector.
            let found = unsafe { sum_products(operands, &nest, Sum::ONCE, Destination::New(rows)) };
            let found = found.expect("memory");
            let expected: Vec<f32> =
                matrix.chunks(step).map(|line| line.iter().zip(&vector).map(|(x, y)| x * y).sum()).collect();
            assert_eq!(found, expected, "{rows} x {columns}");
        }
    }
}
