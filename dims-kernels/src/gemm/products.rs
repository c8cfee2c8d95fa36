//! Strided loops around the products of a pair of operands, on several threads if worthwhile.

use crate::gemm::dispatch::is_small_product;
use crate::gemm::plan::products::{Loop, Products, RoleLoops, count, for_each, shares_rows};
use crate::gemm::{Matrix, Product, multiply, multiply_scattered};
use crate::machine::params::MAX_SCATTERED;
use crate::machine::threads::{self, Carried};
use crate::memory::elements::Elements;
use crate::scalar::Num;
use alloc::vec::Vec;

/// Runs the products and writes the results to `c`, which need not be initialized.
///
/// # Safety
///
/// The strides of an operand map each position of the loops to one of its elements. The results are
/// valid for writes and nothing else accesses them; distinct positions of batch, rows and columns
/// have distinct results.
pub unsafe fn run<T: Num>(products: &Products, a: Elements<'_, T>, b: Elements<'_, T>, c: *mut T) {
    let parts = products.parts::<T>();
    let Products { loops, results, m, n, k } = products;
    let all = || loops.iter().chain([m, n, k]);
    a.assert_loops(0, all().map(|l| (l.size, l.a)));
    b.assert_loops(0, all().map(|l| (l.size, l.b)));
    let first = Product {
        m: m.size,
        k: k.size,
        n: n.size,
        a: Matrix { start: a.as_ptr(), row: m.a, col: k.a },
        b: Matrix { start: b.as_ptr(), row: k.b, col: n.b },
        c,
        c_row: m.c,
        c_col: n.c,
        accumulate: false,
    };
    // SAFETY: the plan's strides stay within the operands' axes. Each element of the result is
    // written before it is added to; the rest is the caller's promise.
    unsafe { ProductRun { loops: loops.clone(), results: *results, first }.run(parts) };
}

/// Products at given addresses.
#[derive(Clone)]
struct ProductRun<T> {
    loops: RoleLoops,
    results: usize,
    /// The product at the origin of the loops.
    first: Product<T>,
}

impl<T: Num> ProductRun<T> {
    /// Runs all products on `parts` threads, each of which computes a part of the results.
    ///
    /// # Safety
    ///
    /// As for [`multiply`], for all positions; distinct results do not overlap in memory.
    unsafe fn run(self, parts: usize) {
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
        // SAFETY: the operands' elements are `Sync`, and each piece has its own results.
        let pieces = pieces.into_iter().map(|piece| unsafe { Carried::new(piece) }).collect();
        // SAFETY: the caller's promise: the positions of the pieces are positions of the whole.
        threads::each(pieces, |piece| unsafe { piece.into_inner().run_all() });
    }

    /// Splits one loop over results into parts.
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

    /// Splits the rows or the columns of each product, whichever are more. If both numbers are
    /// similar, it splits the axis with the larger stride in the result, so that each thread writes
    /// whole lines. If the product that [`with_row_major_c`](Product::with_row_major_c) returns has
    /// a transposed right matrix, [`shares_rows`] decides instead.
    fn split_product(&self, parts: usize) -> Vec<Self> {
        let (first, row_major) = (self.first, self.first.with_row_major_c());
        let by_rows = if row_major.b.row == 1 && row_major.b.col != 1 {
            first.has_row_major_c() == shares_rows(row_major.m, row_major.n)
        } else if first.m / 2 < first.n && first.n / 2 < first.m {
            first.has_row_major_c()
        } else {
            first.m >= first.n
        };
        let piece = |part: usize| {
            let mut piece = self.clone();
            if by_rows {
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
    /// As for [`run`](ProductRun::run).
    unsafe fn run_all(&self) {
        if let Some(sum) = self.scattered() {
            for_each(&self.loops[..self.results], |_, [a, b, c]| {
                // SAFETY: the caller's promise; `sum` lists the elements of all products that are
                // added to one result.
                unsafe { multiply_scattered(&self.first.moved(a, b, c).with_row_major_b(), &sum) };
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

    /// The offsets of the elements of a sum over several loops, if the products are small and the
    /// sum has at most [`MAX_SCATTERED`] elements. One long sum is faster than many short ones,
    /// each of which reads and writes the result.
    fn scattered(&self) -> Option<Vec<(isize, isize)>> {
        let sums = &self.loops[self.results..];
        let count = count(sums).saturating_mul(self.first.k);
        if sums.is_empty()
            || !is_small_product(self.first.m, self.first.n, self.first.k)
            || count > MAX_SCATTERED
        {
            return None;
        }
        let mut all = Vec::with_capacity(count);
        for_each(sums, |_, [a, b, _]| {
            let along = |p: isize| (a + p * self.first.a.col, b + p * self.first.b.row);
            all.extend((0..self.first.k as isize).map(along));
        });
        if self.first.needs_transpose_for_b() {
            all.iter_mut().for_each(|(a, b)| core::mem::swap(a, b));
        }
        Some(all)
    }
}
