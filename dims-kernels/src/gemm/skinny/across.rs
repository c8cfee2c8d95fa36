//! Few rows by a matrix with adjacent columns: each row of the matrix is scaled and added to each
//! row of sums.

use crate::gemm::Product;
use crate::machine::params::SkinnyParams;
use crate::machine::params::skinny::{KC, ROWS_AT_ONCE};
use crate::machine::prefetch::prefetch_lines;
use crate::machine::vector::Vector;
use alloc::vec::Vec;

/// # Safety
///
/// As for [`multiply`](super::multiply), on a machine with these vectors; there are `M` rows, and
/// the columns of the right matrix are adjacent.
#[cfg_attr(not(unoptimized), inline(always))]
pub(super) unsafe fn across<V: Vector, const M: usize>(product: &Product<V::Elem>, skinny: &SkinnyParams) {
    let &Product { k, n, a, b, c, c_row, c_col, accumulate, .. } = product;
    // The columns are divided into strips of about equal width.
    let most = (skinny.sums / (M * size_of::<V::Elem>())).max(2 * V::LEN);
    let width = n.div_ceil(n.div_ceil(most)).next_multiple_of(2 * V::LEN);
    let prefetch_distance = skinny.prefetch_across / size_of::<V::Elem>();
    // The sums of a strip over one block of rows, over two, over four, and so on: one level for
    // each bit of the number of blocks, and one for the last block.
    let levels = k.div_ceil(KC).ilog2() as usize + 2;
    let mut scratch = Vec::<V::Elem>::with_capacity(levels * M * width);
    let levels = scratch.as_mut_ptr();
    let level = |at: usize| levels.wrapping_add(at * M * width);
    let mut left = [[V::Elem::default(); M]; KC];
    let mut column = 0;
    while column < n {
        let count = width.min(n - column);
        let mut depth = 0;
        // SAFETY: rows and columns are in the matrices, which are valid by the caller's promise.
        // There is memory for each level.
        unsafe {
            for (block, row) in (0..k).step_by(KC).enumerate() {
                let rows = KC.min(k - row);
                for (p, left) in left[..rows].iter_mut().enumerate() {
                    for (i, left) in left.iter_mut().enumerate() {
                        *left = *a.start.wrapping_offset(i as isize * a.row + (row + p) as isize * a.col);
                    }
                }
                let start = b.start.wrapping_offset(row as isize * b.row).wrapping_add(column);
                let block_of =
                    RowBlock { b: start, b_row: b.row, count, prefetch_distance, sums: level(depth), width };
                block_of.sum::<V, M>(&left[..rows]);
                depth += 1;
                for _ in 0..(block + 1).trailing_zeros() {
                    depth -= 1;
                    add::<V, M>(level(depth - 1), level(depth), width, count);
                }
            }
            while depth > 1 {
                depth -= 1;
                add::<V, M>(level(depth - 1), level(depth), width, count);
            }
            for i in 0..M {
                let (sums, row) = (level(0).add(i * width), c.wrapping_offset(i as isize * c_row));
                if c_col == 1 && !accumulate {
                    row.wrapping_add(column).copy_from_nonoverlapping(sums, count);
                    continue;
                }
                for j in 0..count {
                    let (sum, to) = (*sums.add(j), row.wrapping_offset((column + j) as isize * c_col));
                    *to = if accumulate { *to + sum } else { sum };
                }
            }
        }
        column += count;
    }
}

/// Adds the sums of one level to those of another: `M` rows that are `width` elements apart, with
/// `count` sums each, rounded up to whole vectors. The rest of a row is uninitialized and not read.
///
/// # Safety
///
/// As for [`Vector`], for these elements of both levels.
#[cfg_attr(not(unoptimized), inline(always))]
unsafe fn add<V: Vector, const M: usize>(to: *mut V::Elem, from: *const V::Elem, width: usize, count: usize) {
    for row in 0..M {
        for at in (row * width..row * width + count).step_by(V::LEN) {
            // SAFETY: the caller's promise; the last vector of a row ends before the next row, as
            // `width` is a multiple of two vectors.
            unsafe { V::load(to.add(at)).plus(V::load(from.add(at))).store(to.add(at)) };
        }
    }
}

/// Some rows of the large matrix, and where the sums over them go.
struct RowBlock<T> {
    b: *const T,
    b_row: isize,
    /// The number of columns.
    count: usize,
    /// The prefetch distance, in elements.
    prefetch_distance: usize,
    /// Rows of sums, `width` apart, each with room for the columns rounded up to pairs of vectors.
    sums: *mut T,
    width: usize,
}

impl<T: Copy> RowBlock<T> {
    /// Writes the sums over the rows whose factors are in `left`.
    ///
    /// # Safety
    ///
    /// The machine has the vectors, the rows are valid, and there is room for the sums.
    #[cfg_attr(not(unoptimized), inline(always))]
    unsafe fn sum<V: Vector<Elem = T>, const M: usize>(&self, left: &[[T; M]]) {
        let (groups, rest) = left.as_chunks::<ROWS_AT_ONCE>();
        let mut done = 0;
        // SAFETY: each row has its factors in `left`; the rest is the caller's promise.
        unsafe {
            for group in groups {
                self.group::<V, M, ROWS_AT_ONCE>(done, group);
                done += ROWS_AT_ONCE;
            }
            for row in rest {
                self.group::<V, M, 1>(done, &[*row]);
                done += 1;
            }
        }
    }

    /// Adds `R` scaled rows, the first of which is `row`, to the sums, which start from zero if
    /// `row` is 0.
    ///
    /// # Safety
    ///
    /// As for [`sum`](RowBlock::sum).
    #[cfg_attr(not(unoptimized), inline(always))]
    unsafe fn group<V: Vector<Elem = T>, const M: usize, const R: usize>(
        &self,
        row: usize,
        left: &[[T; M]; R],
    ) {
        let b = self.b.wrapping_offset(row as isize * self.b_row);
        let mut column = 0;
        // SAFETY: the columns of the vectors, or of the mask, are columns of the matrix; there is
        // room for whole vectors of sums.
        unsafe {
            if const { (M + 1) * 2 <= V::ACCUMULATORS } {
                while column + 2 * V::LEN <= self.count {
                    let prefetched = self.prefetched(column, R);
                    self.vectors::<V, M, R, 2>(b, column, prefetched, left, row == 0, V::first(V::LEN));
                    column += 2 * V::LEN;
                }
            }
            while column < self.count {
                let mask = V::first(V::LEN.min(self.count - column));
                let prefetched = self.prefetched(column, R);
                self.vectors::<V, M, R, 1>(b, column, prefetched, left, row == 0, mask);
                column += V::LEN;
            }
        }
    }

    /// The distance from the element in `column` to the one to prefetch, for `rows` rows that are
    /// read together. Past the end of these rows, the first columns of the next `rows` rows follow;
    /// otherwise short rows would be prefetched only in part.
    #[cfg_attr(not(unoptimized), inline(always))]
    fn prefetched(&self, column: usize, rows: usize) -> isize {
        let ahead = column + self.prefetch_distance;
        if ahead < self.count {
            return self.prefetch_distance as isize;
        }
        let next = rows * (ahead / self.count);
        self.b_row.wrapping_mul(next as isize).wrapping_add((ahead % self.count) as isize - column as isize)
    }

    /// Adds `R` rows to the sums of `W` vectors of columns, and prefetches the elements
    /// `prefetched` further on. In the last vector, only the elements in `mask` are columns.
    ///
    /// # Safety
    ///
    /// As for [`sum`](RowBlock::sum).
    #[cfg_attr(not(unoptimized), inline(always))]
    unsafe fn vectors<V: Vector<Elem = T>, const M: usize, const R: usize, const W: usize>(
        &self,
        b: *const T,
        column: usize,
        prefetched: isize,
        left: &[[T; M]; R],
        is_first: bool,
        mask: V::Mask,
    ) {
        // SAFETY: the caller's promise.
        unsafe {
            let place = |i: usize, w: usize| self.sums.wrapping_add(i * self.width + column + w * V::LEN);
            let mut sums = [[V::zeros(); W]; M];
            if !is_first {
                for (i, sums) in sums.iter_mut().enumerate() {
                    for (w, sum) in sums.iter_mut().enumerate() {
                        *sum = V::load(place(i, w));
                    }
                }
            }
            for (r, left) in left.iter().enumerate() {
                let from = b.wrapping_offset(r as isize * self.b_row).wrapping_add(column);
                prefetch_lines(from.wrapping_offset(prefetched), W * V::LEN);
                for w in 0..W {
                    let from = from.wrapping_add(w * V::LEN);
                    let right = if w + 1 < W { V::load(from) } else { V::load_part(from, mask) };
                    for (sums, x) in sums.iter_mut().zip(left) {
                        sums[w] = sums[w].plus_product(x, right);
                    }
                }
            }
            for (i, sums) in sums.iter().enumerate() {
                for (w, sum) in sums.iter().enumerate() {
                    sum.store(place(i, w));
                }
            }
        }
    }
}
