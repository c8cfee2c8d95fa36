//! The matrix products of a pair of operands, as strided loops around products by a library.

use super::contract::{Axes, each, sorted};
use super::explain::Step;
use super::nest::Odometer;
use crate::kernel::gemm::{Matrix, Product, is_small_product, multiply, multiply_scattered};
use crate::kernel::threads::{self, Carried};
use crate::scalar::Num;
use alloc::vec::Vec;
use smallvec::SmallVec;

/// One loop over merged axes, with the strides of both operands and of the result.
#[derive(Clone, Copy)]
pub struct Loop {
    pub size: usize,
    pub a: isize,
    pub b: isize,
    pub c: isize,
}

/// The loops of one role: one, for most products.
pub type Loops = SmallVec<[Loop; 2]>;

/// What belongs to each role in the products of a pair: what both operands and the result have, rows, columns, and sums.
#[derive(Clone, Copy)]
pub struct Roles<W> {
    pub batch: W,
    pub m: W,
    pub n: W,
    pub k: W,
}

impl<W> Roles<W> {
    /// What `f` makes of each.
    pub fn map<V>(self, f: impl Fn(W) -> V) -> Roles<V> {
        Roles { batch: f(self.batch), m: f(self.m), n: f(self.n), k: f(self.k) }
    }
}

impl Roles<Loops> {
    /// The products, one for each position of the loops that are neither the row's, the column's nor the sum's.
    pub fn products<T>(self, a: *const T, b: *const T, c: *mut T) -> Products<T> {
        let (mut m, mut m_rest) = widest(self.m);
        let (mut n, mut n_rest) = widest(self.n);
        let (k, k_rest) = widest(self.k);
        if is_small_product(m.size, n.size, k.size) && m.a != 1 && n.b != 1 {
            // Small products want neighbours rather than many rows: these go into registers side by side.
            (m, m_rest) = neighbours(m, m_rest, |l| l.a);
            if m.a != 1 {
                (n, n_rest) = neighbours(n, n_rest, |l| l.b);
            }
        }
        let mut loops = self.batch;
        loops.extend(m_rest);
        loops.extend(n_rest);
        let results = loops.len();
        loops.extend(k_rest);
        let first = Product {
            m: m.size,
            k: k.size,
            n: n.size,
            a: Matrix { start: a, row: m.a, col: k.a },
            b: Matrix { start: b, row: k.b, col: n.b },
            c,
            c_row: m.c,
            c_col: n.c,
            accumulate: false,
        };
        Products { loops, results, first }
    }
}

/// A product for each position of some loops.
#[derive(Clone)]
pub struct Products<T> {
    loops: Loops,
    /// How many of the loops run over results; the others add to the same result.
    results: usize,
    /// The product at the origin of the loops.
    first: Product<T>,
}

impl<T: Num> Products<T> {
    /// How many threads are worthwhile.
    fn parts(&self) -> usize {
        let loops: usize = self.loops.iter().map(|l| l.size).product();
        threads::parts(loops.saturating_mul(self.first.m * self.first.n).saturating_mul(self.first.k) / 32)
    }

    /// The products as a step of a plan.
    pub fn step(&self) -> Step {
        let Product { m, k, n, a, b, c_row, c_col, .. } = self.first;
        let count = |loops: &[Loop]| loops.iter().map(|l| l.size).product::<usize>();
        let (results, sums) = self.loops.split_at(self.results);
        Step::Product {
            batch: count(results),
            m,
            k,
            n,
            a: (a.row, a.col),
            b: (b.row, b.col),
            c: (c_row, c_col),
            summed: count(sums),
            bytes: count(results) * m * n * size_of::<T>(),
            threads: self.parts(),
        }
    }

    /// Runs all products, on as many threads as are worthwhile: each takes a part of the results.
    ///
    /// # Safety
    ///
    /// As for [`multiply`], for all positions; different results are different memory.
    pub unsafe fn run(self) {
        let parts = self.parts();
        if parts == 1 {
            // SAFETY: the caller's promise.
            unsafe { self.run_all() };
            return;
        }
        let widest = (0..self.results).max_by_key(|&at| self.loops[at].size);
        let pieces = match widest {
            Some(at) if self.loops[at].size >= 2 * parts => self.split_loop(at, parts),
            _ => self.split_product(parts),
        };
        // SAFETY: the operands' elements are `Sync`, and each piece has results of its own.
        let pieces = pieces.into_iter().map(|piece| unsafe { Carried::new(piece) }).collect();
        // SAFETY: the caller's promise: the positions of the pieces are positions of the whole.
        threads::each(pieces, |piece| unsafe { piece.into_inner().run_all() });
    }

    /// Parts of one loop over results.
    fn split_loop(&self, at: usize, parts: usize) -> Vec<Self> {
        let Loop { size, a, b, c } = self.loops[at];
        let piece = |part: usize| {
            let (start, end) = (part * size / parts, (part + 1) * size / parts);
            let mut piece = self.clone();
            piece.loops[at].size = end - start;
            piece.first = self.first.moved(start as isize * a, start as isize * b, start as isize * c);
            piece
        };
        (0..parts).map(piece).collect()
    }

    /// Parts of the rows or columns of each product.
    fn split_product(&self, parts: usize) -> Vec<Self> {
        let first = self.first;
        let piece = |part: usize| {
            let mut piece = self.clone();
            if first.m >= first.n {
                let (start, end) = (part * first.m / parts, (part + 1) * first.m / parts);
                let start_row = start as isize;
                piece.first = first.moved(start_row * first.a.row, 0, start_row * first.c_row);
                piece.first.m = end - start;
            } else {
                let (start, end) = (part * first.n / parts, (part + 1) * first.n / parts);
                let start_column = start as isize;
                piece.first = first.moved(0, start_column * first.b.col, start_column * first.c_col);
                piece.first.n = end - start;
            }
            piece
        };
        (0..parts).map(piece).collect()
    }

    /// Runs all products, one after the other.
    ///
    /// # Safety
    ///
    /// As for [`run`](Products::run).
    unsafe fn run_all(&self) {
        if let Some(sum) = self.scattered() {
            for_each(&self.loops[..self.results], |_, [a, b, c]| {
                // SAFETY: the caller's promise: the elements of the sum are those of all products that are added to one result.
                unsafe { multiply_scattered(&self.first.moved(a, b, c).oriented(), &sum) };
            });
            return;
        }
        for_each(&self.loops, |at, [a, b, c]| {
            let mut product = self.first.moved(a, b, c);
            product.accumulate = at[self.results..].iter().any(|&at| at != 0);
            // SAFETY: the caller's promise.
            unsafe { multiply(&product) };
        });
    }

    /// Where the elements of a sum lie that has more loops than one, if the products are small: one sum over all then takes less than
    /// many short ones, each of which reads and writes the result.
    fn scattered(&self) -> Option<Vec<(isize, isize)>> {
        let sums = &self.loops[self.results..];
        let count = sums.iter().map(|l| l.size).product::<usize>().saturating_mul(self.first.k);
        if sums.is_empty()
            || !is_small_product(self.first.m, self.first.n, self.first.k)
            || count > MOST_SCATTERED
        {
            return None;
        }
        let mut all = Vec::with_capacity(count);
        for_each(sums, |_, [a, b, _]| {
            let along = |p: isize| (a + p * self.first.a.col, b + p * self.first.b.row);
            all.extend((0..self.first.k as isize).map(along));
        });
        if self.first.is_sideways() {
            all.iter_mut().for_each(|(a, b)| core::mem::swap(a, b));
        }
        Some(all)
    }
}

/// The longest sum whose elements are listed one by one: the list stays in the first-level cache.
const MOST_SCATTERED: usize = 1 << 10;

/// Calls `f` with each position of the loops, and with how far that is in each of the matrices.
pub(super) fn for_each(loops: &[Loop], mut f: impl FnMut(&[usize], [isize; 3])) {
    let counts: SmallVec<[usize; 8]> = loops.iter().map(|l| l.size).collect();
    let mut at: SmallVec<[usize; 8]> = SmallVec::from_elem(0, counts.len());
    let mut odometer = Odometer::new(&counts);
    while !odometer.is_done() {
        let mut offsets = [0; 3];
        for (l, &at) in loops.iter().zip(&at) {
            for (offset, stride) in offsets.iter_mut().zip([l.a, l.b, l.c]) {
                *offset += at as isize * stride;
            }
        }
        f(&at, offsets);
        odometer.advance(&mut at);
    }
}

/// Merges axes into loops, as far as all three agree.
pub fn merge(axes: Axes, sizes: &[usize], a: &[isize], b: &[isize], c: &[isize]) -> Loops {
    let of = |axis: usize| Loop { size: sizes[axis], a: a[axis], b: b[axis], c: c[axis] };
    let mut loops: Loops = SmallVec::new();
    // Most roles have one axis, or none.
    if axes & axes.wrapping_sub(1) == 0 {
        each(axes).for_each(|axis| loops.push(of(axis)));
        return loops;
    }
    // All that vary along an axis order it alike where it merges, so any of them can give the order.
    let order = sorted(axes, if each(axes).all(|axis| c[axis] != 0) { c } else { a });
    for axis in order {
        let next = of(axis);
        if let Some(last) = loops.last_mut() {
            let reach = next.size as isize;
            if last.a == next.a * reach && last.b == next.b * reach && last.c == next.c * reach {
                *last = Loop { size: last.size * next.size, ..next };
                continue;
            }
        }
        loops.push(next);
    }
    loops
}

/// A loop along neighbours in place of the one that was chosen, if there is one that is not too short; and the others.
fn neighbours(chosen: Loop, mut others: Loops, stride: fn(&Loop) -> isize) -> (Loop, Loops) {
    match others.iter_mut().find(|l| stride(l) == 1 && l.size >= 4) {
        Some(found) => (core::mem::replace(found, chosen), others),
        None => (chosen, others),
    }
}

/// The longest loop, and the others.
fn widest(mut loops: Loops) -> (Loop, Loops) {
    let at = (0..loops.len()).max_by_key(|&at| loops[at].size).expect("the role has an axis");
    let widest = loops.remove(at);
    (widest, loops)
}
