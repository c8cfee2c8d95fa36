//! Products whose matrices are read in place.
//!
//! A tile of the result is some rows by one or two vectors; its sums stay in registers until they
//! are complete. Vectors at the end of a row are read and written in part. This is the fastest
//! route where packing would take as long as multiplying: for small products, and for products with
//! few columns or short sums. On some processors, where many tiles read the same columns of a large
//! right matrix, the first of them packs these columns for the others.

use crate::gemm::tile::{LeftRows, each_row, unforeseen};
use crate::gemm::{Matrix, Product};
use crate::machine::level::Level;
use crate::machine::params::params;
use crate::machine::params::tile::MAX_MR;
use crate::machine::params::unpacked::{MAX_SHALLOW_K, MIN_ROWS_TO_PACK, MIN_SPAN_BYTES};
use crate::machine::vector::{AnyTile, Vector, run_tile};
use alloc::vec::Vec;
use core::any::TypeId;
use core::arch::x86_64::{__m256, __m256d, __m512, __m512d};
use core::ops::Range;

/// Computes the product with the vectors of a level.
///
/// # Safety
///
/// As for [`crate::gemm::multiply`]; the machine has the level, which is not the baseline. Elements
/// are `f32` or `f64`; the rows of the right matrix and of the result are contiguous.
#[cfg_attr(not(unoptimized), inline(always))]
pub unsafe fn multiply<T: 'static>(level: Level, product: &Product<T>) {
    let product: *const Product<T> = product;
    // SAFETY: the product is cast to its own type; the rest is the caller's promise.
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
            unsafe { all::<$vector>(product) }
        }
    )*};
}

compiled! {
    wide_f32 "avx512f,avx2,fma" __m512, f32;
    wide_f64 "avx512f,avx2,fma" __m512d, f64;
    f32s "avx2,fma" __m256, f32;
    f64s "avx2,fma" __m256d, f64;
}

/// Whether the first tile of some columns packs these columns of the right matrix for the tiles
/// below. Packed rows are adjacent and aligned to vectors. Only [some processors](params) gain from
/// packing; tests do it on all.
#[cfg_attr(not(unoptimized), inline(always))]
fn is_worth_packing<V: Vector>(product: &Product<V::Elem>) -> bool {
    const { assert!(V::MR <= MIN_ROWS_TO_PACK, "the first tile is whole") };
    let line = product.b.row.unsigned_abs().saturating_mul(size_of::<V::Elem>());
    product.m >= MIN_ROWS_TO_PACK
        && product.n > V::LEN
        && product.k > MAX_SHALLOW_K
        && product.k.saturating_mul(line) >= MIN_SPAN_BYTES
        && (params().packs_first_tile || cfg!(test))
}

/// # Safety
///
/// As for [`crate::gemm::multiply`], on a machine with these vectors.
#[cfg_attr(not(unoptimized), inline(always))]
unsafe fn all<V: Vector>(product: &Product<V::Elem>) {
    let height = if product.k <= MAX_SHALLOW_K { V::MR } else { product.m };
    let mut scratch = Vec::<V>::new();
    // Columns are packed only if `k` exceeds `MAX_SHALLOW_K`; then the first pass of the loop
    // covers all rows.
    let is_packed = is_worth_packing::<V>(product) && scratch.try_reserve_exact(2 * product.k).is_ok();
    let mut row = 0;
    while row < product.m {
        let rows = row..product.m.min(row + height);
        row = rows.end;
        let mut column = 0;
        while column < product.n {
            let left = product.n - column;
            // SAFETY: rows and columns are in the matrices; when packing, `scratch` has room for
            // all packed rows, and there are more rows than a tile has; the rest is the caller's
            // promise.
            unsafe {
                if left <= V::LEN {
                    strip::<V, 1>(product, rows.clone(), column, left);
                    break;
                }
                let count = left.min(2 * V::LEN) - V::LEN;
                let by_packed;
                let (mut product, mut rows) = (product, rows.clone());
                if is_packed {
                    debug_assert_eq!(rows, 0..product.m);
                    let packed = scratch.as_mut_ptr().cast();
                    first_tile::<V>(product, column, count, packed);
                    let b = Matrix { start: packed.wrapping_sub(column), row: 2 * V::LEN as isize, col: 1 };
                    by_packed = Product { b, ..*product };
                    (product, rows) = (&by_packed, V::MR..product.m);
                }
                strip::<V, 2>(product, rows, column, count);
            }
            column += 2 * V::LEN;
        }
    }
}

/// Computes the rows of the first tile, by two vectors of columns as in [`strip`]. Packs the
/// elements of the right matrix in these columns.
///
/// # Safety
///
/// As for [`strip`]; there are at least [`MR`](Vector::MR) rows, and `packed` has room for two
/// vectors for each element of the sum.
#[cfg_attr(not(unoptimized), inline(always))]
unsafe fn first_tile<V: Vector>(
    product: &Product<V::Elem>,
    column: usize,
    count: usize,
    packed: *mut V::Elem,
) {
    // SAFETY: the elements of the mask are columns of the matrices; the rest is the caller's
    // promise.
    unsafe {
        let (tile, mask) = (DirectTile::new(product, 0, column), V::first(count));
        if const { V::MR == 6 } {
            run_tile::<V>(DirectTileOf::<V, 2, 6> { tile: &tile, mask, packed: Some(packed) });
        } else {
            const { assert!(V::MR == 6 || V::MR == 12, "there are vectors of two lengths") };
            run_tile::<V>(DirectTileOf::<V, 2, 12> { tile: &tile, mask, packed: Some(packed) });
        }
    }
}

/// Computes some rows of the result, by `W` vectors of columns from `column` on; only the first
/// `count` elements of the last vector are columns.
///
/// # Safety
///
/// As for [`crate::gemm::multiply`]; the result has these columns.
#[cfg_attr(not(unoptimized), inline(always))]
unsafe fn strip<V: Vector, const W: usize>(
    product: &Product<V::Elem>,
    rows: Range<usize>,
    column: usize,
    count: usize,
) {
    let tall = MAX_MR.min(V::ACCUMULATORS / W);
    // Tiles have about equal height.
    let mut tiles = rows.len().div_ceil(tall);
    let mut row = rows.start;
    // SAFETY: the elements of the mask are columns of the matrices.
    let mask = unsafe { V::first(count) };
    while tiles > 0 {
        let height = (rows.end - row).div_ceil(tiles);
        let tile = DirectTile::new(product, row, column);
        macro_rules! tall {
            ($($height:literal)*) => {
                match height {
                    // SAFETY: the caller's promise; the tile has `height` rows.
                    $($height if const { $height * W <= V::ACCUMULATORS } => unsafe {
                        run_tile::<V>(DirectTileOf::<V, W, $height> { tile: &tile, mask, packed: None });
                    },)*
                    _ => unreachable!("a tile has 1 to `MAX_MR` rows"),
                }
            };
        }
        tall!(1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16);
        row += height;
        tiles -= 1;
    }
}

/// Some rows of the result by some vectors of columns.
struct DirectTile<T> {
    depth: usize,
    a: *const T,
    a_row: isize,
    a_step: isize,
    b: *const T,
    b_step: isize,
    c: *mut T,
    c_row: isize,
    accumulate: bool,
}

/// A tile of `R` rows and `W` vectors of columns. Only the columns in `mask` exist in the last
/// vector. If `packed` is given, `W` is 2, and the tile packs the columns that it reads.
struct DirectTileOf<'t, V: Vector, const W: usize, const R: usize> {
    tile: &'t DirectTile<V::Elem>,
    mask: V::Mask,
    packed: Option<*mut V::Elem>,
}

impl<V: Vector, const W: usize, const R: usize> AnyTile for DirectTileOf<'_, V, W, R> {
    #[cfg_attr(not(unoptimized), inline(always))]
    unsafe fn run(self) {
        // SAFETY: the caller's promise.
        unsafe { self.tile.run::<V, W, R>(self.mask, self.packed) }
    }
}

impl<T: Copy> DirectTile<T> {
    /// The tile that starts at a row and a column.
    #[cfg_attr(not(unoptimized), inline(always))]
    fn new(product: &Product<T>, row: usize, column: usize) -> Self {
        DirectTile {
            depth: product.k,
            a: product.a.start.wrapping_offset(row as isize * product.a.row),
            a_row: product.a.row,
            a_step: product.a.col,
            b: product.b.start.wrapping_add(column),
            b_step: product.b.row,
            c: product.c.wrapping_offset(row as isize * product.c_row + column as isize),
            c_row: product.c_row,
            accumulate: product.accumulate,
        }
    }

    /// # Safety
    ///
    /// As for [`crate::gemm::multiply`]; there are `R` rows and `W` vectors of columns, the last
    /// one limited to `mask`. `packed` has room for the columns.
    #[cfg_attr(not(unoptimized), inline(always))]
    unsafe fn run<V: Vector<Elem = T>, const W: usize, const R: usize>(
        &self,
        mask: V::Mask,
        mut packed: Option<*mut T>,
    ) {
        let &DirectTile { depth, a, a_row, a_step, mut b, b_step, c, c_row, accumulate } = self;
        let (a_row, c_row) = (unforeseen(a_row), unforeseen(c_row));
        // SAFETY: rows, sums and columns are in the matrices, which are valid by the caller's
        // promise.
        unsafe {
            let (mut first, mut second) = ([V::zeros(); R], [V::zeros(); R]);
            let mut left = LeftRows::<T, R>::new(a, a_row);
            let mut done = 0;
            macro_rules! line {
                ($at:literal) => {
                    if const { W == 1 } {
                        // One line per advance, so `$at` is 0.
                        let right = V::load_part(b, mask);
                        each_row!(I of R => {
                            first[I] = first[I].plus_product(left.place(I), right);
                        });
                    } else {
                        let right = (V::load(b), V::load_part(b.wrapping_add(V::LEN), mask));
                        if let Some(line) = &mut packed {
                            right.0.store(*line);
                            right.1.store(line.wrapping_add(V::LEN));
                            *line = line.wrapping_add(2 * V::LEN);
                        }
                        left.add_products::<V, $at>(&mut first, &mut second, right);
                    }
                    b = b.wrapping_offset(b_step);
                };
            }
            // Four rows of the right matrix per advance of the pointers, to save instructions.
            if const { W == 2 } && a_step == 1 {
                while done + 4 <= depth {
                    line!(0);
                    line!(1);
                    line!(2);
                    line!(3);
                    left.advance(4);
                    done += 4;
                }
            }
            for _ in done..depth {
                line!(0);
                left.advance(a_step);
            }
            each_row!(I of R => {
                let to = c.wrapping_offset(I as isize * c_row);
                let last = to.wrapping_add((W - 1) * V::LEN);
                if accumulate {
                    if const { W == 2 } {
                        first[I] = first[I].plus(V::load(to));
                        second[I] = second[I].plus(V::load_part(last, mask));
                    } else {
                        first[I] = first[I].plus(V::load_part(last, mask));
                    }
                }
                if const { W == 2 } {
                    first[I].store(to);
                    second[I].store_part(last, mask);
                } else {
                    first[I].store_part(last, mask);
                }
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;
    use num_traits::Float;
    use proptest::prelude::*;
    use std::fmt::Debug;

    fn check<T: Float + Debug + 'static>(
        [m, k, n]: [usize; 3],
        transposed: bool,
        gaps: [usize; 3],
        accumulate: bool,
        seed: u64,
    ) {
        let mut state = seed;
        let mut fill = |len: usize| -> Vec<T> {
            let mut next = || {
                state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
                T::from((state >> 33) % 17).expect("a small integer") - T::from(8).expect("a small integer")
            };
            (0..len).map(|_| next()).collect()
        };
        // No longer than necessary, so that the address sanitizer detects reads past the end.
        let span = |rows: usize, step: usize, columns: usize| (rows - 1) * step + columns;
        let (lines, line) = if transposed { (k, m) } else { (m, k) };
        let (a_step, b_step, c_step) = (line + gaps[0], n + gaps[1], n + gaps[2]);
        let (a, b) = (fill(span(lines, a_step, line)), fill(span(k, b_step, n)));
        let (a_row, a_col) = if transposed { (1, a_step) } else { (a_step, 1) };
        let before = if accumulate { T::one() } else { T::nan() };
        let mut expected = vec![T::nan(); span(m, c_step, n)];
        for i in 0..m {
            for j in 0..n {
                // Sums of small integers are exact in any order.
                let product = |p: usize| a[i * a_row + p * a_col] * b[p * b_step + j];
                let sum = (0..k).map(product).fold(T::zero(), |sum, x| sum + x);
                expected[i * c_step + j] = if accumulate { sum + before } else { sum };
            }
        }
        for level in [Level::Avx2, Level::Avx512] {
            if level as u8 > crate::machine::level::level() as u8 {
                continue;
            }
            let mut c = vec![T::nan(); expected.len()];
            (0..m).for_each(|i| c[i * c_step..i * c_step + n].fill(before));
            let product = Product {
                m,
                k,
                n,
                a: Matrix { start: a.as_ptr(), row: a_row as isize, col: a_col as isize },
                b: Matrix { start: b.as_ptr(), row: b_step as isize, col: 1 },
                c: c.as_mut_ptr(),
                c_row: c_step as isize,
                c_col: 1,
                accumulate,
            };
            // SAFETY: the matrices are within the vectors; the level is at most the machine's.
            unsafe { multiply(level, &product) };
            let differs = |(&c, &sum): (&T, &T)| c != sum && !(c.is_nan() && sum.is_nan());
            assert_eq!(c.iter().zip(&expected).position(differs), None, "{level:?}");
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(200))]

        #[test]
        fn products_are_those_of_the_definition(
            m in 1..40usize, k in 1..40usize, n in 1..80usize, transposed in any::<bool>(),
            gaps in [0..9usize, 0..9usize, 0..9usize], accumulate in any::<bool>(), seed in any::<u64>(),
        ) {
            check::<f32>([m, k, n], transposed, gaps, accumulate, seed);
            check::<f64>([m, k, n], transposed, gaps, accumulate, seed);
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(24))]

        /// Many rows, and a right matrix whose lines are far apart: in most cases, the first tile
        /// packs the right matrix.
        #[test]
        fn products_by_packed_columns_are_those_of_the_definition(
            m in MIN_ROWS_TO_PACK..64usize, k in MAX_SHALLOW_K + 1..64usize, n in 17..70usize, transposed in any::<bool>(),
            gaps in [0..9usize, 300..900usize, 0..9usize], accumulate in any::<bool>(), seed in any::<u64>(),
        ) {
            check::<f32>([m, k, n], transposed, gaps, accumulate, seed);
            check::<f64>([m, k, n], transposed, gaps, accumulate, seed);
        }
    }
}
