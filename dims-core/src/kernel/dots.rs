//! Sums of products of two lines that lie in memory, of which one may be the same for many results: a matrix times a vector.
//!
//! Such a sum waits for memory alone. So each line is read once, from one end to the other, in vectors that start where lines of memory do: what crosses
//! the end of one takes twice as long to come.

use super::fold::{self, together};
use super::isa::{Isa, Task, dispatch};
use super::reduce::{BLOCK, is_far, push, total};
use super::reducers::Sum;
use super::strided::{LINE, fetch_lines};
use super::threads;
use crate::error::DimError;
use crate::plan::nest::{Nest, Odometer};
use crate::scalar::Num;
use crate::storage::Elements;
use crate::storage::elements::Places;
use crate::storage::memory::reserve;
use alloc::vec::Vec;
use core::mem::MaybeUninit;
use smallvec::SmallVec;

/// How many sums run side by side.
const LANES: usize = 2 * fold::LANES;

/// The most elements at once: so many to each accumulator, before it is combined with others.
const MOST: usize = BLOCK * LANES;

/// How many elements ahead the memory is asked for what follows, beyond the page at whose end the machine stops to look ahead by itself.
const AHEAD: usize = 1024;

/// Lines that are shorter are summed as fast by any loop.
const SHORT: usize = 128;

/// The nest's sums of products of its two operands, if both lie along the innermost loop, which is reduced, as neighbours: as a new vector of `len`
/// elements in the order of the kept loops.
pub fn sum_products<T: Num>(
    operands: [Elements<'_, T>; 2],
    nest: &Nest,
    len: usize,
) -> Option<Result<Vec<T>, DimError>> {
    if !are_lines(nest) {
        return None;
    }
    let mut out = match reserve(len) {
        Ok(out) => out,
        Err(error) => return Some(Err(error)),
    };
    write(operands, nest, &mut out.spare_capacity_mut()[..len]);
    // SAFETY: every place was written.
    unsafe { out.set_len(len) };
    Some(Ok(out))
}

/// As [`sum_products`], into places that are there already. Returns whether the operands lie so.
pub fn sum_products_into<T: Num>(operands: [Elements<'_, T>; 2], nest: &Nest, places: Places<'_, T>) -> bool {
    if !are_lines(nest) {
        return false;
    }
    // SAFETY: every place is written.
    write(operands, nest, unsafe { places.into_inner() });
    true
}

/// Whether both operands of a nest lie along the innermost loop, which is reduced and not short, as neighbours.
fn are_lines(nest: &Nest) -> bool {
    let last = nest.depth() - 1;
    // (A single sum is cut into parts by other means.)
    !nest.inner_kept
        && nest.outer > 0
        && nest.sizes[last] >= SHORT
        && (0..2).all(|operand| nest.strides_of(operand)[last] == 1)
}

/// Writes each of the sums: the kept loops of all parts cover each of the places once.
fn write<T: Num>(operands: [Elements<'_, T>; 2], nest: &Nest, places: &mut [MaybeUninit<T>]) {
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
        work.push(Dots { operands, nest, exchanged, out: own });
    }
    if work.len() == 1 {
        work.into_iter().for_each(dispatch);
    } else {
        threads::each(work.into_vec(), dispatch);
    }
}

/// Sums of products along the innermost loop.
struct Dots<'n, T> {
    operands: [Elements<'n, T>; 2],
    nest: &'n Nest,
    /// Whether the second operand is the one that is read once.
    exchanged: bool,
    out: &'n mut [MaybeUninit<T>],
}

impl<T: Num> Task for Dots<'_, T> {
    type Out = ();
    const WIDE: bool = true;

    #[inline(always)]
    fn run<I: Isa>(self) {
        let Dots { mut operands, nest, exchanged, out } = self;
        let last = nest.depth() - 1;
        let count = nest.sizes[last];
        let far = is_far::<T>(nest);
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
            operands[operand].line(row.offset + steps, count)
        };
        let mut outer = Odometer::new(&nest.sizes[..nest.outer]);
        let mut places = out.iter_mut();
        let mut write = |sum: Blocks<T>| {
            places.next().expect("the kept loops cover the result").write(sum.total::<I>());
        };
        while !outer.is_done() {
            let mut sum = Blocks::new();
            if nest.outer == last {
                let (x, y) = (line(&at, 0), line(&at, 1));
                outer.advance(&mut at);
                if const { takes_two::<T>() } && !outer.is_done() {
                    let (below, same) = (line(&at, 0), line(&at, 1));
                    if same.as_ptr() == y.as_ptr() && before_line(below) == before_line(x) {
                        outer.advance(&mut at);
                        let mut second = Blocks::new();
                        let mut ahead = far.then(|| Ahead::of_two(x, below));
                        for ((x, below), y) in x.chunks(MOST).zip(below.chunks(MOST)).zip(y.chunks(MOST)) {
                            let parts = dots::<I, T, 2>([x, below], y, ahead);
                            sum.push::<I>(parts[0]);
                            second.push::<I>(parts[1]);
                            ahead = ahead.map(|ahead| ahead.behind(x.len()));
                        }
                        write(sum);
                        write(second);
                        continue;
                    }
                }
                sum.push_line::<I>(x, y, far);
            } else {
                let mut inner = Odometer::new(&nest.sizes[nest.outer..last]);
                while !inner.is_done() {
                    sum.push_line::<I>(line(&at, 0), line(&at, 1), far);
                    inner.advance(&mut at[nest.outer..]);
                }
                outer.advance(&mut at[..nest.outer]);
            }
            write(sum);
        }
    }
}

/// Sums of blocks, added pairwise.
struct Blocks<T: Num> {
    totals: SmallVec<[T::Acc; 12]>,
    count: usize,
}

impl<T: Num> Blocks<T> {
    #[inline(always)]
    fn new() -> Self {
        Blocks { totals: SmallVec::new(), count: 0 }
    }

    #[inline(always)]
    fn push<I: Isa>(&mut self, part: T) {
        self.count += 1;
        push::<I, T, Sum>(&mut self.totals, self.count, part.to_acc(), Sum);
    }

    #[inline(always)]
    fn push_line<I: Isa>(&mut self, x: &[T], y: &[T], far: bool) {
        let ahead = far.then_some(Ahead { rest: usize::MAX, jump: 0 });
        for (x, y) in x.chunks(MOST).zip(y.chunks(MOST)) {
            let [part] = dots::<I, T, 1>([x], y, ahead);
            self.push::<I>(part);
        }
    }

    #[inline(always)]
    fn total<I: Isa>(self) -> T {
        T::from_acc(total::<I, T, Sum>(self.totals, T::Acc::ZERO, Sum))
    }
}

/// Which elements the memory is asked for ahead of time.
#[derive(Clone, Copy)]
struct Ahead {
    /// So many elements are left to the end of the line.
    rest: usize,
    /// So far from the end of a line is the one that follows.
    jump: isize,
}

impl Ahead {
    /// Two lines are followed by two more, each as far from the last as these are from each other.
    #[inline(always)]
    fn of_two<T>(x: &[T], below: &[T]) -> Self {
        let apart = (below.as_ptr().addr() as isize - x.as_ptr().addr() as isize) / size_of::<T>() as isize;
        Ahead { rest: x.len(), jump: 2 * apart - x.len() as isize }
    }

    /// So many elements further on.
    #[inline(always)]
    fn behind(self, count: usize) -> Self {
        Ahead { rest: self.rest - count, ..self }
    }

    /// Asks for what is so far behind a place, where there are so many elements between the place and what the rest is counted from.
    #[inline(always)]
    fn fetch<T>(self, place: *const T, count: usize) {
        let jump = if count + AHEAD < self.rest { 0 } else { self.jump };
        fetch_lines(place.wrapping_add(AHEAD).wrapping_offset(jump), LANES);
    }
}

/// Whether two lines are worked on at once: the line that they are multiplied by is read half as often. (Where registers hold their sums: of larger
/// elements they would not, with AVX2.)
const fn takes_two<T>() -> bool {
    size_of::<T>() <= 4
}

/// How many elements lie before the first whole line of memory, where that matters.
#[inline(always)]
fn before_line<T>(x: &[T]) -> usize {
    if x.len() < 2 * LANES { 0 } else { x.as_ptr().align_offset(LINE) % LANES }
}

/// The sums of the products of the elements of lines and of one more, all of which are as long as each other and not longer than [`MOST`]. Before the
/// first whole line of memory all of the first ones have as many elements.
#[inline(always)]
fn dots<I: Isa, T: Num, const N: usize>(xs: [&[T]; N], y: &[T], ahead: Option<Ahead>) -> [T; N] {
    let mut lanes = [[T::ZERO; LANES]; N];
    let step = |acc: &mut T, x: T, y: T| *acc = acc.add_product::<I>(x, y);
    // What lies before the first whole line of memory goes to the last accumulators: as if the line had started with
    // that many elements fewer. So each accumulator gets the same elements wherever the line is, only at another place among the others; and as
    // halves are added to halves in the end, what is added to what is the same, too.
    let skipped = before_line(xs[0]);
    let (y_head, y) = y.split_at(skipped);
    for (lanes, x) in lanes.iter_mut().zip(xs) {
        for (acc, (&x, &y)) in lanes[LANES - skipped..].iter_mut().zip(x[..skipped].iter().zip(y_head)) {
            step(acc, x, y);
        }
    }
    let xs = xs.map(|x| x[skipped..].as_chunks::<LANES>());
    let (ys, y_tail) = y.as_chunks::<LANES>();
    let mut own = lanes;
    for (at, y) in ys.iter().enumerate() {
        for (own, (x, _)) in own.iter_mut().zip(xs) {
            let x = &x[at];
            if let Some(ahead) = ahead {
                ahead.fetch(x.as_ptr(), skipped + at * LANES);
            }
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
    lanes.map(|lanes| {
        let mut halves = [T::ZERO; fold::LANES];
        for (at, half) in halves.iter_mut().enumerate() {
            *half = lanes[at].add(lanes[at + fold::LANES]);
        }
        together(halves, |a, b| a.add(b))
    })
}
