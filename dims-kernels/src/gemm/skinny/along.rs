//! Few rows by a matrix in which the elements of a sum are adjacent: each line of the matrix is
//! multiplied by each row.

use crate::gemm::Product;
use crate::machine::params::SkinnyParams;
use crate::machine::params::skinny::{MAX_GROUP_BYTES, VECTORS_AT_ONCE};
use crate::machine::prefetch::prefetch_lines;
use crate::machine::vector::Vector;
use alloc::vec::Vec;

/// # Safety
///
/// As for [`multiply`](super::multiply), on a machine with these vectors; there are `M` rows, and
/// the elements of each column of the right matrix are adjacent.
#[cfg_attr(not(unoptimized), inline(always))]
pub(super) unsafe fn along<V: Vector, const M: usize>(product: &Product<V::Elem>, skinny: &SkinnyParams) {
    let &Product { k, n, a, b, .. } = product;
    let size = size_of::<V::Elem>();
    // Vectors that cross a cache line take longer to load. If all lines of the matrix have the same
    // alignment, loads are therefore aligned to vectors, and the first vector of a line is read in
    // part. A line shorter than a vector is read as it is.
    let bytes = V::LEN * size;
    let is_alike = b.start.addr().is_multiple_of(size) && (b.col.unsigned_abs() * size).is_multiple_of(bytes);
    let skipped = if is_alike && k >= V::LEN { b.start.addr() % bytes / size } else { 0 };
    let vectors = (skipped + k).div_ceil(V::LEN);
    let mut left = Vec::<V>::with_capacity(M * vectors);
    // SAFETY: the elements that are read are in the left matrix, which is valid by the caller's
    // promise; there is room for all vectors.
    unsafe {
        let to = left.as_mut_ptr().cast::<V::Elem>();
        for i in 0..M {
            let row = a.start.wrapping_offset(i as isize * a.row);
            for at in 0..vectors {
                let to = to.add((at * M + i) * V::LEN);
                let first = (at * V::LEN) as isize - skipped as isize;
                if a.col == 1 && first >= 0 && first as usize + V::LEN <= k {
                    V::load(row.wrapping_offset(first)).store(to);
                    continue;
                }
                for (lane, at) in (first..first + V::LEN as isize).enumerate() {
                    let is_element = (0..k as isize).contains(&at);
                    let element =
                        if is_element { *row.wrapping_offset(at * a.col) } else { V::Elem::default() };
                    to.add(lane).write(element);
                }
            }
        }
        left.set_len(M * vectors);
    }
    let at_once = lines_at_once::<V>(M);
    let group = at_once * k;
    let is_dense = b.col >= k as isize && b.col.unsigned_abs() <= k + k / 8;
    let prefetch_steps = if at_once > 1 && group * size <= MAX_GROUP_BYTES && is_dense {
        [group, V::LEN, at_once * V::LEN].map(|step| step as isize)
    } else {
        [(skinny.prefetch_along / size) as isize, b.col, V::LEN as isize]
    };
    let lines_of = LineProduct { product, left: &left, skipped, prefetch_steps };
    let mut column = 0;
    // SAFETY: the columns are in the matrices; the rest is the caller's promise.
    unsafe {
        while column + at_once <= n {
            if const { lines_at_once::<V>(M) == 4 } {
                lines_of.multiply::<M, 4>(column);
            } else if const { lines_at_once::<V>(M) == 2 } {
                lines_of.multiply::<M, 2>(column);
            } else {
                lines_of.multiply::<M, 1>(column);
            }
            column += at_once;
        }
        while column < n {
            lines_of.multiply::<M, 1>(column);
            column += 1;
        }
    }
}

/// The number of lines of the large matrix that are multiplied at once by a vector of each row, so
/// that their sums fit in registers.
const fn lines_at_once<V: Vector>(rows: usize) -> usize {
    match rows {
        _ if 4 * rows + 8 <= V::ACCUMULATORS => 4,
        _ if 2 * rows + 8 <= V::ACCUMULATORS => 2,
        _ => 1,
    }
}

/// A product whose sums run along lines of the large matrix.
struct LineProduct<'p, V: Vector> {
    product: &'p Product<V::Elem>,
    /// The rows of the left matrix as vectors, with zeros before and after each row. The vectors at
    /// the same position of all rows are adjacent.
    left: &'p [V],
    /// The number of zeros before each row.
    skipped: usize,
    /// Three distances, in elements: from the first vector of the first column to the first
    /// prefetched elements, between the elements prefetched for adjacent columns, and between those
    /// for adjacent vectors.
    prefetch_steps: [isize; 3],
}

impl<V: Vector> LineProduct<'_, V> {
    /// Computes `R` columns from `column` on.
    ///
    /// # Safety
    ///
    /// As for [`along`]; the columns are in the result.
    #[cfg_attr(not(unoptimized), inline(always))]
    unsafe fn multiply<const M: usize, const R: usize>(&self, column: usize) {
        let &Product { k, b, c, c_row, c_col, accumulate, .. } = self.product;
        let vectors = self.left.len() / M;
        let start = b.start.wrapping_offset(column as isize * b.col).wrapping_sub(self.skipped);
        let left = self.left.as_ptr();
        let mut totals = [[V::Elem::default(); M]; R];
        let [distance, next_line, next_vector] = self.prefetch_steps;
        let prefetched = start.wrapping_offset(distance);
        // SAFETY: the elements that are read and written are in the matrices, which are valid by
        // the caller's promise.
        unsafe {
            for part in (0..vectors).step_by(VECTORS_AT_ONCE) {
                let end = vectors.min(part + VECTORS_AT_ONCE);
                let mut sums = [[V::zeros(); M]; R];
                macro_rules! step {
                    ($at:expr, $load:expr) => {
                        let at = $at;
                        let right: [V; R] = core::array::from_fn(|r| {
                            let from = start.wrapping_offset(r as isize * b.col).wrapping_add(at * V::LEN);
                            let offset = r as isize * next_line + at as isize * next_vector;
                            prefetch_lines(prefetched.wrapping_offset(offset), V::LEN);
                            $load(from)
                        });
                        for i in 0..M {
                            let x = V::load(left.wrapping_add(at * M + i).cast());
                            for r in 0..R {
                                sums[r][i] = sums[r][i].plus_products(x, right[r]);
                            }
                        }
                    };
                }
                let mut at = part;
                if at == 0 && self.skipped > 0 {
                    step!(0, |from| V::load_part(from, V::last(V::LEN - self.skipped)));
                    at = 1;
                }
                let whole = end.min((self.skipped + k) / V::LEN);
                while at < whole {
                    step!(at, |from| V::load(from));
                    at += 1;
                }
                if at < end {
                    let mask = V::first((self.skipped + k) % V::LEN);
                    step!(at, |from| V::load_part(from, mask));
                }
                // A copy: vectors of a borrowed array would not stay in registers in the loop
                // above.
                let done = sums;
                let (fours, rest) = done.as_flattened().as_chunks::<4>();
                let (totals_of_fours, totals_of_rest) = totals.as_flattened_mut().as_chunks_mut::<4>();
                for (totals, sums) in totals_of_fours.iter_mut().zip(fours) {
                    let sums = V::totals(sums);
                    for (total, sum) in totals.iter_mut().zip(sums) {
                        *total = *total + sum;
                    }
                }
                for (total, sum) in totals_of_rest.iter_mut().zip(rest) {
                    *total = *total + sum.total();
                }
            }
            for (r, totals) in totals.iter().enumerate() {
                for (i, &total) in totals.iter().enumerate() {
                    let to = c.wrapping_offset(i as isize * c_row + (column + r) as isize * c_col);
                    *to = if accumulate { *to + total } else { total };
                }
            }
        }
    }
}
