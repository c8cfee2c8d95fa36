//! Products of few rows: a step of a decoder, which multiplies a handful of activations by all weights of a layer.
//!
//! Each element of the large matrix takes part in as many multiplications as there are rows, so the product is bound by memory bandwidth. The
//! matrix is read once, in place, in the order of memory; the sums of all rows stay in registers or in the first-level cache. There
//! are two kernels: one where the columns of the large matrix are neighbours (a row of it is scaled and added to each row of sums), one where the
//! elements of a sum are (each of its lines is multiplied with each row).

use crate::gemm::Product;
use crate::machine::isa::Level;
use crate::machine::params::skinny::{KC, MAX_GROUP_BYTES, MAX_ROWS, ROWS_AT_ONCE, VECTORS_AT_ONCE};
use crate::machine::params::{SkinnyParams, params};
use crate::machine::prefetch::prefetch_lines;
use crate::machine::vector::{AnyTile, Vector};
use alloc::vec::Vec;
use core::any::TypeId;
use core::arch::x86_64::{__m256, __m256d, __m512, __m512d};

/// Computes a product of few rows, or of few columns, with the vectors of a level.
///
/// # Safety
///
/// As for [`crate::gemm::multiply`]; the machine has the level, which is not the baseline. Elements are `f32` or `f64`. One of both matrices has one to
/// [`MAX_ROWS`] rows, or columns, and the other one has neighbours along its rows or its columns.
#[inline(never)]
pub unsafe fn multiply<T: 'static>(level: Level, product: &Product<T>) {
    let transposed;
    let product = if product.m <= MAX_ROWS {
        product
    } else {
        transposed = product.transposed();
        &transposed
    };
    let product: *const Product<T> = product;
    // SAFETY: the product is cast to the type that it has; the rest is the caller's promise.
    unsafe {
        match (level, TypeId::of::<T>() == TypeId::of::<f32>()) {
            (Level::Avx512, true) => wide_f32(&*product.cast()),
            (Level::Avx512, false) => wide_f64(&*product.cast()),
            (_, true) => f32s(&*product.cast()),
            (_, false) => f64s(&*product.cast()),
        }
    }
}

macro_rules! compiled {
    ($($name:ident $feature:literal $vector:ty, $elem:ty;)*) => {$(
        #[target_feature(enable = $feature)]
        unsafe fn $name(product: &Product<$elem>) {
            // SAFETY: the caller's promise.
            unsafe { of_any_height::<$vector>(product) }
        }
    )*};
}

compiled! {
    wide_f32 "avx512f,avx512dq,avx2,fma" __m512, f32;
    wide_f64 "avx512f,avx512dq,avx2,fma" __m512d, f64;
    f32s "avx2,fma" __m256, f32;
    f64s "avx2,fma" __m256d, f64;
}

/// # Safety
///
/// As for [`multiply`], on a machine with these vectors.
#[inline(always)]
unsafe fn of_any_height<V: Vector>(product: &Product<V::Elem>) {
    macro_rules! rows {
        ($($rows:literal)*) => {
            match product.m {
                // SAFETY: there are so many rows; the rest is the caller's promise.
                $($rows => unsafe { V::run_apart(SkinnyProduct::<V, $rows> { product }) },)*
                _ => unreachable!("there are at most {MAX_ROWS} rows"),
            }
        };
    }
    rows!(1 2 3 4 5 6 7 8);
}

/// A product of `M` rows.
struct SkinnyProduct<'p, V: Vector, const M: usize> {
    product: &'p Product<V::Elem>,
}

impl<V: Vector, const M: usize> AnyTile for SkinnyProduct<'_, V, M> {
    #[inline(always)]
    unsafe fn run(self) {
        debug_assert_eq!(self.product.m, M);
        let skinny = &params().skinny;
        // SAFETY: the caller's promise.
        unsafe {
            if self.product.b.col == 1 {
                across::<V, M>(self.product, skinny);
            } else {
                along::<V, M>(self.product, skinny);
            }
        }
    }
}

/// The product where columns of the large matrix are neighbours.
///
/// # Safety
///
/// As for [`multiply`], on a machine with these vectors; there are `M` rows, and columns of the right matrix are neighbours.
#[inline(always)]
unsafe fn across<V: Vector, const M: usize>(product: &Product<V::Elem>, skinny: &SkinnyParams) {
    let &Product { k, n, a, b, c, c_row, c_col, accumulate, .. } = product;
    // Strips are about as wide as each other.
    let most = (skinny.sums / (M * size_of::<V::Elem>())).max(2 * V::LEN);
    let width = n.div_ceil(n.div_ceil(most)).next_multiple_of(2 * V::LEN);
    let prefetch_distance = skinny.prefetch_across / size_of::<V::Elem>();
    // The sums of some columns over one block of rows, over two, over four: as many levels as the number of blocks has bits, and the last block.
    let levels = k.div_ceil(KC).ilog2() as usize + 2;
    let mut scratch = Vec::<V::Elem>::with_capacity(levels * M * width);
    let levels = scratch.as_mut_ptr();
    let level = |at: usize| levels.wrapping_add(at * M * width);
    let mut left = [[V::Elem::default(); M]; KC];
    let mut column = 0;
    while column < n {
        let count = width.min(n - column);
        let mut depth = 0;
        // SAFETY: rows and columns lie in the matrices, which are valid by the caller's promise. There is memory for each level.
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

/// Adds the sums of one level to those of another: `M` rows that lie `width` elements apart, each of the vectors that hold `count` sums. (The rest of
/// a row is not written before, so it is not read either.)
///
/// # Safety
///
/// As for [`Vector`], with so many elements in both.
#[inline(always)]
unsafe fn add<V: Vector, const M: usize>(to: *mut V::Elem, from: *const V::Elem, width: usize, count: usize) {
    for row in 0..M {
        for at in (row * width..row * width + count).step_by(V::LEN) {
            // SAFETY: the caller's promise; the last vector of a row ends before the next row, which is a multiple of two vectors behind.
            unsafe { V::load(to.add(at)).plus(V::load(from.add(at))).store(to.add(at)) };
        }
    }
}

/// Some rows of the large matrix, and where the sums over them go.
struct RowBlock<T> {
    b: *const T,
    b_row: isize,
    /// Columns.
    count: usize,
    /// How many elements ahead the rows are prefetched.
    prefetch_distance: usize,
    /// Rows of sums, `width` apart: so many columns, as whole pairs of vectors, have room in each.
    sums: *mut T,
    width: usize,
}

impl<T: Copy> RowBlock<T> {
    /// Writes the sums over as many rows as there are factors for them.
    ///
    /// # Safety
    ///
    /// The machine has the vectors, the rows are valid, and there is room for the sums.
    #[inline(always)]
    unsafe fn sum<V: Vector<Elem = T>, const M: usize>(&self, left: &[[T; M]]) {
        let (groups, rest) = left.as_chunks::<ROWS_AT_ONCE>();
        let mut done = 0;
        // SAFETY: the rows are as many as the factors; the rest is the caller's promise.
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

    /// Adds `R` rows from `row` on to the sums, which begin with the first.
    ///
    /// # Safety
    ///
    /// As for [`sum`](RowBlock::sum).
    #[inline(always)]
    unsafe fn group<V: Vector<Elem = T>, const M: usize, const R: usize>(
        &self,
        row: usize,
        left: &[[T; M]; R],
    ) {
        let b = self.b.wrapping_offset(row as isize * self.b_row);
        let mut column = 0;
        // SAFETY: the columns of the vectors, or of the mask, are columns of the matrix; there is room for whole vectors of sums.
        unsafe {
            if (M + 1) * 2 <= V::ACCUMULATORS {
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

    /// How far behind the elements of a column those are that are prefetched. Behind the end of a row, which `rows` read together, the first columns of the
    /// next ones follow: a row of few columns would else be prefetched in part.
    #[inline(always)]
    fn prefetched(&self, column: usize, rows: usize) -> isize {
        let ahead = column + self.prefetch_distance;
        if ahead < self.count {
            return self.prefetch_distance as isize;
        }
        let next = rows * (ahead / self.count);
        self.b_row.wrapping_mul(next as isize).wrapping_add((ahead % self.count) as isize - column as isize)
    }

    /// Adds `R` rows to the sums of `W` vectors of columns, and prefetches elements `prefetched` places behind them. In the last vector only the elements of the mask are columns.
    ///
    /// # Safety
    ///
    /// As for [`sum`](RowBlock::sum).
    #[inline(always)]
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

/// The product where the elements of a sum are neighbours in the large matrix.
///
/// # Safety
///
/// As for [`multiply`], on a machine with these vectors; there are `M` rows, and rows of the right matrix are neighbours.
#[inline(always)]
unsafe fn along<V: Vector, const M: usize>(product: &Product<V::Elem>, skinny: &SkinnyParams) {
    let &Product { k, n, a, b, .. } = product;
    let size = size_of::<V::Elem>();
    // Vectors that cross the end of a cache line take twice as long to load. So, if all lines of the matrix start alike, the vectors start with a
    // cache line, and the first one is read in part. (A line that has no whole vector would end in the same one.)
    let bytes = V::LEN * size;
    let is_alike = b.start.addr().is_multiple_of(size) && (b.col.unsigned_abs() * size).is_multiple_of(bytes);
    let skipped = if is_alike && k >= V::LEN { b.start.addr() % bytes / size } else { 0 };
    let vectors = (skipped + k).div_ceil(V::LEN);
    let mut left = Vec::<V>::with_capacity(M * vectors);
    // SAFETY: rows and sums lie in the matrix, which is valid by the caller's promise; there is room for so many vectors.
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
    // SAFETY: the columns lie in the matrices; the rest is the caller's promise.
    unsafe {
        while column + at_once <= n {
            match at_once {
                4 => lines_of.multiply::<M, 4>(column),
                2 => lines_of.multiply::<M, 2>(column),
                _ => lines_of.multiply::<M, 1>(column),
            }
            column += at_once;
        }
        while column < n {
            lines_of.multiply::<M, 1>(column);
            column += 1;
        }
    }
}

/// How many lines of the large matrix are multiplied at once with a vector of each row: as many as have room for their sums in registers.
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
    /// The left matrix row by row, as vectors that begin and end with zeros.
    left: &'p [V],
    /// How many zeros they begin with.
    skipped: usize,
    /// How far ahead of a column's first element it is prefetched, and how far from one line of the columns to the next, and from one vector.
    prefetch_steps: [isize; 3],
}

impl<V: Vector> LineProduct<'_, V> {
    /// Computes `R` columns from one on.
    ///
    /// # Safety
    ///
    /// As for [`along`]; the columns lie in the result.
    #[inline(always)]
    unsafe fn multiply<const M: usize, const R: usize>(&self, column: usize) {
        let &Product { k, b, c, c_row, c_col, accumulate, .. } = self.product;
        let vectors = self.left.len() / M;
        let start = b.start.wrapping_offset(column as isize * b.col).wrapping_sub(self.skipped);
        let left = self.left.as_ptr();
        let mut totals = [[V::Elem::default(); M]; R];
        let [distance, next_line, next_vector] = self.prefetch_steps;
        let prefetched = start.wrapping_offset(distance);
        // SAFETY: sums, rows and columns lie in the matrices, which are valid by the caller's promise.
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
                            let x = left.add(at * M + i).read();
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
                // (A copy: vectors whose array is borrowed would not stay in registers in the loop above.)
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gemm::Matrix;
    use crate::gemm::dispatch::{Route, has_vector_kernels, multiply_by};
    use alloc::vec;
    use num_traits::Float;
    use proptest::prelude::*;
    use std::fmt::Debug;

    /// A matrix within memory that is not-a-number elsewhere, and ends where the matrix does.
    struct Placed<T> {
        memory: Vec<T>,
        first: usize,
        row: isize,
        col: isize,
    }

    impl<T: Float + 'static> Placed<T> {
        /// A matrix with neighbours along its rows or its columns, whose lines have gaps between them and may be in reverse order.
        fn new(
            [rows, columns]: [usize; 2],
            row_major: bool,
            gap: usize,
            reversed: bool,
            before: usize,
        ) -> Self {
            let (lines, len) = if row_major { (rows, columns) } else { (columns, rows) };
            let step = len + gap;
            let memory = vec![T::nan(); before + (lines - 1) * step + len];
            let first = before + if reversed { (lines - 1) * step } else { 0 };
            let step = if reversed { -(step as isize) } else { step as isize };
            let (row, col) = if row_major { (step, 1) } else { (1, step) };
            Placed { memory, first, row, col }
        }

        fn at(&mut self, row: usize, column: usize) -> &mut T {
            let place = self.first as isize + row as isize * self.row + column as isize * self.col;
            &mut self.memory[place as usize]
        }

        fn matrix(&self) -> Matrix<T> {
            let start = self.memory.as_ptr().wrapping_add(self.first);
            Matrix { start, row: self.row, col: self.col }
        }
    }

    #[derive(Clone, Copy, Debug)]
    struct Case {
        sizes: [usize; 3],
        /// Whether each of the matrices has neighbours along its rows, and whether its lines come in reverse order.
        row_major: [bool; 3],
        reversed: [bool; 3],
        gaps: [usize; 3],
        before: usize,
        accumulate: bool,
        seed: u64,
    }

    fn check<T: Float + Debug + 'static>(case: Case) {
        let Case { sizes: [m, k, n], row_major, reversed, gaps, before, accumulate, seed } = case;
        let shapes = [[m, k], [k, n], [m, n]];
        let [mut a, mut b, mut c] = core::array::from_fn(|at| {
            Placed::<T>::new(shapes[at], row_major[at], gaps[at], reversed[at], before)
        });
        let mut state = seed;
        let mut next = || {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            T::from((state >> 33) % 17).expect("a small integer") - T::from(8).expect("a small integer")
        };
        for p in 0..k {
            (0..m).for_each(|i| *a.at(i, p) = next());
            (0..n).for_each(|j| *b.at(p, j) = next());
        }
        let start = if accumulate { T::one() } else { T::nan() };
        // Sums of small integers are exact in any order.
        let mut expected = vec![if accumulate { T::one() } else { T::zero() }; m * n];
        for i in 0..m {
            for j in 0..n {
                for p in 0..k {
                    expected[i * n + j] = expected[i * n + j] + *a.at(i, p) * *b.at(p, j);
                }
            }
        }
        for level in [Level::Avx2, Level::Avx512] {
            if level as u8 > crate::machine::isa::level() as u8 {
                continue;
            }
            c.memory.fill(T::nan());
            for i in 0..m {
                (0..n).for_each(|j| *c.at(i, j) = start);
            }
            let (first, c_row, c_col) = (c.first, c.row, c.col);
            let product = Product {
                m,
                k,
                n,
                a: a.matrix(),
                b: b.matrix(),
                c: c.memory.as_mut_ptr().wrapping_add(first),
                c_row,
                c_col,
                accumulate,
            };
            // SAFETY: the matrices lie within the vectors; the level is at most the machine's, rows are few, and the right matrix has neighbours.
            unsafe { multiply(level, &product) };
            for i in 0..m {
                for j in 0..n {
                    assert_eq!(*c.at(i, j), expected[i * n + j], "{level:?}, element ({i}, {j})");
                    *c.at(i, j) = T::nan();
                }
            }
            assert!(c.memory.iter().all(|x| x.is_nan()), "{level:?} writes elsewhere");
        }
    }

    fn cases(k: impl Strategy<Value = usize>) -> impl Strategy<Value = Case> {
        let rows = (any::<[bool; 3]>(), any::<[bool; 3]>(), [0..9usize, 0..40usize, 0..9usize]);
        ((1..=MAX_ROWS, k, 1..150usize), rows, 0..17usize, any::<bool>(), any::<u64>()).prop_map(
            |((m, k, n), (row_major, reversed, gaps), before, accumulate, seed)| Case {
                sizes: [m, k, n],
                row_major,
                reversed,
                gaps,
                before,
                accumulate,
                seed,
            },
        )
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(200))]

        #[test]
        fn products_are_those_of_the_definition(case in cases(1..100usize)) {
            check::<f32>(case);
            check::<f64>(case);
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(12))]

        /// Sums of several blocks, whose number is no power of two, and of several parts of a line.
        #[test]
        fn long_sums_are_those_of_the_definition(case in cases(KC..6 * KC)) {
            check::<f32>(case);
            check::<f64>(case);
        }
    }

    #[test]
    fn large_products_of_few_rows_or_columns_are_those_of_the_definition() {
        let (few, many, k) = (3, 300, 200);
        for (m, n) in [(few, many), (many, few)] {
            let a: Vec<f32> = (0..m * k).map(|at| (at % 7) as f32).collect();
            let b: Vec<f32> = (0..k * n).map(|at| (at % 5) as f32).collect();
            let mut c = vec![f32::NAN; m * n];
            let product = Product {
                m,
                k,
                n,
                a: Matrix { start: a.as_ptr(), row: k as isize, col: 1 },
                b: Matrix { start: b.as_ptr(), row: n as isize, col: 1 },
                c: c.as_mut_ptr(),
                c_row: n as isize,
                c_col: 1,
                accumulate: false,
            };
            // SAFETY: the matrices are the vectors.
            let is_done = unsafe { multiply_by(Route::SkinnyRows, &product) };
            assert_eq!(is_done, has_vector_kernels::<f32>());
            for i in 0..m {
                for j in 0..n {
                    let sum: f32 = (0..k).map(|p| a[i * k + p] * b[p * n + j]).sum();
                    assert!(!is_done || c[i * n + j] == sum, "element ({i}, {j})");
                }
            }
        }
    }

    /// Added one by one, 65,536 times 0.1 is wrong by 6e-4 of the sum.
    #[test]
    fn rounding_grows_slowly_with_the_length_of_a_sum() {
        let (k, n) = (1 << 16, 32);
        let ones = vec![1.0f32; k];
        let b = vec![0.1f32; k * n];
        for (row, col) in [(n as isize, 1), (1, k as isize)] {
            let mut c = vec![f32::NAN; n];
            let product = Product {
                m: 1,
                k,
                n,
                a: Matrix { start: ones.as_ptr(), row: 0, col: 1 },
                b: Matrix { start: b.as_ptr(), row, col },
                c: c.as_mut_ptr(),
                c_row: n as isize,
                c_col: 1,
                accumulate: false,
            };
            // SAFETY: the matrices are the vectors.
            if unsafe { multiply_by(Route::SkinnyRows, &product) } {
                let exact = k as f64 * f64::from(0.1f32);
                let error = c.iter().map(|&sum| (f64::from(sum) - exact).abs() / exact).fold(0.0, f64::max);
                assert!(error < 1e-5, "{error}");
            }
        }
    }
}
