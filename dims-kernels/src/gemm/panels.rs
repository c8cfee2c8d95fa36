//! Matrix products whose rows, columns and sums may each run over several loops. Lists of offsets
//! say where the elements are in memory.
//!
//! A register tile of the result has up to MR rows and NR columns; NR is two vectors. Its sums stay
//! in registers while up to KC products are added to each. The columns of the right matrix that a
//! tile reads are a micro-panel: two strips, each as wide as a vector and packed separately. A
//! strip whose columns are already adjacent is not packed if few rows read it. The left matrix is
//! not packed if its rows and sums have one stride each. So windows, attention heads and transposed
//! matrices are multiplied without a copy of the whole operand.
//!
//! The blocking follows Goto and van de Geijn (Anatomy of High-Performance Matrix Multiplication,
//! 2008). The lists of offsets follow Matthews (High-Performance Tensor Contraction without
//! Transposition, 2018).

use crate::gemm::Product;
use crate::gemm::tile::{LeftRows, each_row};
use crate::machine::level::{Level, level};
use crate::machine::params::panels::{MAX_TILES_UNPACKED, MC, MIN_RUN, NC};
use crate::machine::params::params;
use crate::machine::params::tile::MAX_NR;
use crate::machine::vector::{AnyTile, Vector, run_tile};
use alloc::vec::Vec;
use core::any::TypeId;
use core::arch::x86_64::{__m256, __m256d, __m512, __m512d};
use core::ops::{Add, Range};
use smallvec::SmallVec;

/// The offsets of the rows, the columns or the terms of the sums, in each of the two matrices in
/// which they occur.
#[derive(Clone, Copy)]
pub struct Offsets<'l> {
    /// In the first matrix, which is the left one for rows and sums.
    pub first: &'l [isize],
    /// In the second matrix.
    pub second: &'l [isize],
}

impl<'l> Offsets<'l> {
    /// Splits a list that has the offsets in the first matrix, then those in the second.
    fn both(offsets: &'l [isize]) -> Self {
        let (first, second) = offsets.split_at(offsets.len() / 2);
        Offsets { first, second }
    }

    fn part(&self, range: Range<usize>) -> Offsets<'l> {
        Offsets { first: &self.first[range.clone()], second: &self.second[range] }
    }

    fn len(&self) -> usize {
        self.first.len()
    }
}

/// A product without the addresses of its matrices.
#[derive(Clone, Copy)]
pub struct Panels<'l> {
    /// Rows, in the left matrix and in the result.
    pub rows: Offsets<'l>,
    /// Elements of each sum, in the left matrix and in the right one.
    pub sums: Offsets<'l>,
    /// Columns, in the right matrix and in the result.
    pub columns: Offsets<'l>,
    /// Whether the product is added to the result.
    pub accumulate: bool,
}

/// Computes the products `c = a b`, or `c += a b`. For each product, `starts` has the offsets of
/// its three matrices, relative to `a`, `b` and `c`.
///
/// # Safety
///
/// The type [has vector kernels](crate::gemm::dispatch::has_vector_kernels). Each offset plus any
/// of the starts leads to an element. The elements of `a` and `b` are valid for reads. The elements
/// of `c` are distinct, valid for writes and (if accumulating) for reads, and accessed by nothing
/// else.
pub unsafe fn multiply<T: 'static>(
    panels: &Panels<'_>,
    starts: &[[isize; 3]],
    a: *const T,
    b: *const T,
    c: *mut T,
) {
    // SAFETY: the level was just detected; the rest is the caller's promise.
    unsafe { multiply_by(level() == Level::Avx512, panels, starts, a, b, c) }
}

/// Computes a product whose rows, columns and sum are one loop each.
///
/// # Safety
///
/// As for [`crate::gemm::multiply`]; the type [has vector
/// kernels](crate::gemm::dispatch::has_vector_kernels).
#[inline(never)]
pub unsafe fn multiply_strided<T: 'static>(product: &Product<T>) {
    let Product { m, k, n, a, b, c, c_row, c_col, accumulate } = *product;
    let offsets = |count: usize, step: isize| (0..count as isize).map(move |at| at * step);
    let each = [(m, a.row), (m, c_row), (k, a.col), (k, b.row), (n, b.col), (n, c_col)];
    let all: Vec<isize> = each.into_iter().flat_map(|(count, step)| offsets(count, step)).collect();
    let (rows, others) = all.split_at(2 * m);
    let (sums, columns) = others.split_at(2 * k);
    let panels = Panels {
        rows: Offsets::both(rows),
        sums: Offsets::both(sums),
        columns: Offsets::both(columns),
        accumulate,
    };
    // SAFETY: the caller's promise.
    unsafe { multiply(&panels, &[[0; 3]], a.start, b.start, c) };
}

/// [`multiply`], with AVX-512 vectors if `wide`, otherwise with those of AVX2.
///
/// # Safety
///
/// As for [`multiply`]; the machine has AVX-512 if `wide`.
unsafe fn multiply_by<T: 'static>(
    wide: bool,
    panels: &Panels<'_>,
    starts: &[[isize; 3]],
    a: *const T,
    b: *const T,
    c: *mut T,
) {
    #[target_feature(enable = "avx512f,avx2,fma")]
    unsafe fn wide_f32(
        panels: &Panels<'_>,
        starts: &[[isize; 3]],
        a: *const f32,
        b: *const f32,
        c: *mut f32,
    ) {
        // SAFETY: the caller's promise.
        unsafe { all::<__m512>(panels, starts, a, b, c) }
    }
    #[target_feature(enable = "avx512f,avx2,fma")]
    unsafe fn wide_f64(
        panels: &Panels<'_>,
        starts: &[[isize; 3]],
        a: *const f64,
        b: *const f64,
        c: *mut f64,
    ) {
        // SAFETY: the caller's promise.
        unsafe { all::<__m512d>(panels, starts, a, b, c) }
    }
    #[target_feature(enable = "avx2,fma")]
    unsafe fn f32s(panels: &Panels<'_>, starts: &[[isize; 3]], a: *const f32, b: *const f32, c: *mut f32) {
        // SAFETY: the caller's promise.
        unsafe { all::<__m256>(panels, starts, a, b, c) }
    }
    #[target_feature(enable = "avx2,fma")]
    unsafe fn f64s(panels: &Panels<'_>, starts: &[[isize; 3]], a: *const f64, b: *const f64, c: *mut f64) {
        // SAFETY: the caller's promise.
        unsafe { all::<__m256d>(panels, starts, a, b, c) }
    }
    // SAFETY: the caller promises that the machine has the features; `T` is `f32` or `f64`, the
    // only types with vector kernels; the rest is the caller's promise.
    unsafe {
        match (TypeId::of::<T>() == TypeId::of::<f32>(), wide) {
            (true, true) => wide_f32(panels, starts, a.cast(), b.cast(), c.cast()),
            (true, false) => f32s(panels, starts, a.cast(), b.cast(), c.cast()),
            (false, true) => wide_f64(panels, starts, a.cast(), b.cast(), c.cast()),
            (false, false) => f64s(panels, starts, a.cast(), b.cast(), c.cast()),
        }
    }
}

/// Whether each offset is one more than the previous one.
#[inline]
fn are_neighbors(offsets: &[isize]) -> bool {
    offsets.windows(2).all(|pair| pair[1] == pair[0] + 1)
}

/// Splits the `count` rows of a block into tiles of about equal height, with at most `most` rows. A
/// short last tile would have too few sums to keep the multipliers busy.
#[inline]
fn even_parts(count: usize, most: usize) -> impl Iterator<Item = Range<usize>> {
    let parts = count.div_ceil(most);
    (0..parts).map(move |part| part * count / parts..(part + 1) * count / parts)
}

/// The difference between consecutive offsets, if it is always the same; 0 for fewer than two
/// offsets.
#[inline]
fn step(offsets: &[isize]) -> Option<isize> {
    let &[first, second, ..] = offsets else { return Some(0) };
    let step = second - first;
    offsets.windows(2).all(|pair| pair[1] - pair[0] == step).then_some(step)
}

/// The parts of the matrices that are packed at the moment.
struct PackedStrips<V: Vector> {
    left: Vec<V::Elem>,
    /// Strips, whose rows are aligned to vectors, so that each row is in one cache line.
    right: Vec<V>,
    /// The offsets of the rows of a packed strip.
    steps: Vec<isize>,
}

/// # Safety
///
/// As for [`multiply`], on a machine with these vectors.
#[cfg_attr(not(unoptimized), inline(always))]
unsafe fn all<V: Vector>(
    panels: &Panels<'_>,
    starts: &[[isize; 3]],
    a: *const V::Elem,
    b: *const V::Elem,
    c: *mut V::Elem,
) {
    let (m, k, n) = (panels.rows.len(), panels.sums.len(), panels.columns.len());
    // Parts of a sum have about equal length.
    let kc = k.div_ceil(k.div_ceil(params().panel_kc)).next_multiple_of(V::TRANSPOSE_SIZE).min(k);
    let mut packed = PackedStrips::<V> {
        left: Vec::new(),
        right: Vec::new(),
        steps: (0..kc).map(|p| (p * V::LEN) as isize).collect(),
    };
    packed.right.reserve_exact(NC.min(n).div_ceil(V::LEN) * kc);
    let squares: Vec<bool> = panels
        .sums
        .second
        .chunks(V::TRANSPOSE_SIZE)
        .map(|offsets| offsets.len() == V::TRANSPOSE_SIZE && are_neighbors(offsets))
        .collect();
    let in_place = m <= MAX_TILES_UNPACKED * V::MR;
    for &[in_a, in_b, in_c] in starts {
        let (a, b, c) = (a.wrapping_offset(in_a), b.wrapping_offset(in_b), c.wrapping_offset(in_c));
        for column in (0..n).step_by(NC) {
            let columns = panels.columns.part(column..n.min(column + NC));
            for sum in (0..k).step_by(kc) {
                let sums = panels.sums.part(sum..k.min(sum + kc));
                for (at, own) in columns.first.chunks(V::LEN).enumerate() {
                    if in_place && is_vector::<V>(own) {
                        continue;
                    }
                    // SAFETY: `packed.right` has room for all strips; the rest is the caller's
                    // promise.
                    unsafe {
                        let to = packed.right.as_mut_ptr().add(at * sums.len()).cast();
                        pack_strip::<V>(b, sums.second, &squares[sum / V::TRANSPOSE_SIZE..], own, to);
                    }
                }
                for row in (0..m).step_by(MC) {
                    let block = PackedBlock {
                        rows: panels.rows.part(row..m.min(row + MC)),
                        sums,
                        columns,
                        in_place,
                        accumulate: panels.accumulate || sum > 0,
                    };
                    // SAFETY: the caller's promise; the strips were just packed.
                    unsafe { block.run::<V>(a, b, c, &mut packed) };
                }
            }
        }
    }
}

/// Whether the columns are adjacent and exactly fill a vector.
#[cfg_attr(not(unoptimized), inline(always))]
fn is_vector<V: Vector>(columns: &[isize]) -> bool {
    columns.len() == V::LEN && are_neighbors(columns)
}

/// Packs a strip, as wide as a vector; missing columns are zeros. The elements of a sum form groups
/// of [`TRANSPOSE_SIZE`](Vector::TRANSPOSE_SIZE). `squares` says in which groups the elements are
/// adjacent, so that squares of elements can be transposed in registers.
///
/// # Safety
///
/// The elements at all offsets are valid, and there is room for the strip.
#[cfg_attr(not(unoptimized), inline(always))]
unsafe fn pack_strip<V: Vector>(
    b: *const V::Elem,
    sums: &[isize],
    squares: &[bool],
    columns: &[isize],
    strip: *mut V::Elem,
) {
    let runs = || columns.chunk_by(|&one, &next| next == one + 1);
    // SAFETY: the strip has these columns and sums; the rest is the caller's promise.
    unsafe {
        if runs().nth(V::LEN / MIN_RUN).is_none() {
            let mut to = strip;
            for run in runs() {
                let (from, mask) = (b.wrapping_offset(run[0]), V::first(run.len()));
                for (p, &sum) in sums.iter().enumerate() {
                    V::load_part(from.wrapping_offset(sum), mask).store_part(to.add(p * V::LEN), mask);
                }
                to = to.add(run.len());
            }
        } else {
            for (at, columns) in columns.chunks(V::TRANSPOSE_SIZE).enumerate() {
                let to = strip.add(at * V::TRANSPOSE_SIZE);
                for (block, sums) in sums.chunks(V::TRANSPOSE_SIZE).enumerate() {
                    let to = to.add(block * V::TRANSPOSE_SIZE * V::LEN);
                    if columns.len() == V::TRANSPOSE_SIZE && squares[block] && sums.len() == V::TRANSPOSE_SIZE
                    {
                        V::transpose(b.wrapping_offset(sums[0]), columns, to, V::LEN);
                        continue;
                    }
                    for (p, &sum) in sums.iter().enumerate() {
                        for (j, &column) in columns.iter().enumerate() {
                            *to.add(p * V::LEN + j) = *b.wrapping_offset(sum + column);
                        }
                    }
                }
            }
        }
        for p in 0..sums.len() {
            for column in columns.len()..V::LEN {
                *strip.add(p * V::LEN + column) = V::Elem::default();
            }
        }
    }
}

/// A part of a product that fits into the caches.
struct PackedBlock<'l> {
    rows: Offsets<'l>,
    sums: Offsets<'l>,
    columns: Offsets<'l>,
    /// Whether strips with adjacent columns are read in place.
    in_place: bool,
    accumulate: bool,
}

/// A left matrix, packed or not: its first element, and the strides of rows and sums.
type LeftMatrix<T> = (*const T, isize, isize);

impl PackedBlock<'_> {
    /// # Safety
    ///
    /// As for [`multiply`]; strips that are not read in place are packed.
    #[cfg_attr(not(unoptimized), inline(always))]
    unsafe fn run<V: Vector>(
        &self,
        a: *const V::Elem,
        b: *const V::Elem,
        c: *mut V::Elem,
        packed: &mut PackedStrips<V>,
    ) {
        let PackedBlock { rows, sums, columns, in_place, accumulate } = *self;
        let (wide, depth) = (2 * V::LEN, sums.len());
        // Room for the tiles of one block: at most `MC / MR`, where `MR` is 6 or 12.
        let mut tiles: SmallVec<[(LeftMatrix<V::Elem>, &[isize]); 64]> = SmallVec::new();
        let along = step(sums.first);
        for (at, own) in even_parts(rows.len(), V::MR).enumerate() {
            let (own, into) = (&rows.first[own.clone()], &rows.second[own]);
            let source = match (along, step(own)) {
                (Some(along), Some(row)) => (a.wrapping_offset(own[0] + sums.first[0]), row, along),
                _ => {
                    packed.left.reserve_exact(MC * depth);
                    // SAFETY: there is room for a tile for each `MR` rows of the block; the offsets
                    // are valid.
                    unsafe {
                        let to = packed.left.as_mut_ptr().add(at * V::MR * depth);
                        for (p, &sum) in sums.first.iter().enumerate() {
                            for (i, &row) in own.iter().enumerate() {
                                *to.add(p * own.len() + i) = *a.wrapping_offset(row + sum);
                            }
                        }
                        (to.cast_const(), 1, own.len() as isize)
                    }
                }
            };
            tiles.push((source, into));
        }
        for (at, (own, into)) in columns.first.chunks(wide).zip(columns.second.chunks(wide)).enumerate() {
            let strip = |own: &[isize], at: usize| {
                if in_place && is_vector::<V>(own) {
                    (b.wrapping_offset(own[0]), sums.second)
                } else {
                    (packed.right.as_ptr().wrapping_add(at * depth).cast(), &packed.steps[..depth])
                }
            };
            let (left, right) = own.split_at(own.len().min(V::LEN));
            let first = strip(left, 2 * at);
            let panel = [first, if right.is_empty() { first } else { strip(right, 2 * at + 1) }];
            let whole = into.len() == wide && are_neighbors(into);
            for &(left, rows) in &tiles {
                let tile = PanelTile { left, panel, rows, columns: into, whole, accumulate };
                macro_rules! tall {
                    ($($height:literal)*) => {
                        match rows.len() {
                            // SAFETY: the caller's promise; the tile has `height` rows.
                            $($height if const { $height <= V::MR } => unsafe {
                                run_tile::<V>(PanelTileOf::<V, $height> { tile: &tile, c });
                            },)*
                            _ => unreachable!("a tile has 1 to `MR` rows"),
                        }
                    };
                }
                tall!(1 2 3 4 5 6 7 8 9 10 11 12);
            }
        }
    }
}

/// A register tile: some rows of the result by a micro-panel of columns.
struct PanelTile<'l, T> {
    left: LeftMatrix<T>,
    /// For each of the two strips: a pointer, and the offsets of the strip's rows from there.
    panel: [(*const T, &'l [isize]); 2],
    rows: &'l [isize],
    columns: &'l [isize],
    /// Whether the tile covers a whole micro-panel whose columns are adjacent in the result.
    whole: bool,
    accumulate: bool,
}

/// A tile of `R` rows, and the start of the result.
struct PanelTileOf<'t, V: Vector, const R: usize> {
    tile: &'t PanelTile<'t, V::Elem>,
    c: *mut V::Elem,
}

impl<V: Vector, const R: usize> AnyTile for PanelTileOf<'_, V, R> {
    #[cfg_attr(not(unoptimized), inline(always))]
    unsafe fn run(self) {
        // SAFETY: the caller's promise.
        unsafe { self.tile.run::<V, R>(self.c) }
    }
}

impl<T: Copy + Default + Add<Output = T>> PanelTile<'_, T> {
    /// # Safety
    ///
    /// As for [`multiply`]; there are `R` rows.
    #[cfg_attr(not(unoptimized), inline(always))]
    unsafe fn run<V: Vector<Elem = T>, const R: usize>(&self, c: *mut T) {
        let &PanelTile {
            left: (a, row, step),
            panel: [(b, lines), (d, others)],
            rows,
            columns,
            whole,
            accumulate,
        } = self;
        // SAFETY: rows, sums and columns are in the matrices, which are valid by the caller's
        // promise.
        unsafe {
            let (mut first, mut second) = ([V::zeros(); R], [V::zeros(); R]);
            let mut left = LeftRows::<T, R>::new(a, row);
            let mut at = 0;
            macro_rules! line {
                ($at:literal) => {
                    let right = (
                        V::load(b.wrapping_offset(*lines.get_unchecked(at + $at))),
                        V::load(d.wrapping_offset(*others.get_unchecked(at + $at))),
                    );
                    left.add_products::<V, $at>(&mut first, &mut second, right);
                };
            }
            let depth = lines.len().min(others.len());
            // Four rows of the right matrix per advance of the pointers, as in `unpacked`.
            if step == 1 {
                while at + 4 <= depth {
                    line!(0);
                    line!(1);
                    line!(2);
                    line!(3);
                    left.advance(4);
                    at += 4;
                }
            }
            while at < depth {
                line!(0);
                left.advance(step);
                at += 1;
            }
            if whole {
                each_row!(I of R => {
                    let to = c.wrapping_offset(rows[I] + columns[0]);
                    if accumulate {
                        first[I] = first[I].plus(V::load(to));
                        second[I] = second[I].plus(V::load(to.wrapping_add(V::LEN)));
                    }
                    first[I].store(to);
                    second[I].store(to.wrapping_add(V::LEN));
                });
            } else {
                let mut lines = [[T::default(); MAX_NR]; R];
                each_row!(I of R => {
                    first[I].store(lines[I].as_mut_ptr());
                    second[I].store(lines[I].as_mut_ptr().add(V::LEN));
                });
                self.scatter(&lines, c);
            }
        }
    }

    /// Writes the sums of a tile that is not `whole`.
    ///
    /// # Safety
    ///
    /// As for [`multiply`].
    #[inline(never)]
    unsafe fn scatter(&self, lines: &[[T; MAX_NR]], c: *mut T) {
        for (line, &row) in lines.iter().zip(self.rows) {
            for (&value, &column) in line.iter().zip(self.columns) {
                // SAFETY: rows and columns are in the result.
                unsafe {
                    let to = c.wrapping_offset(row + column);
                    *to = if self.accumulate { *to + value } else { value };
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gemm::dispatch::has_vector_kernels;
    use core::fmt::Debug;
    use num_traits::Float;
    use proptest::prelude::*;

    /// The number of rows, columns or elements of a sum: few, or about one block.
    fn count(block: usize) -> impl Strategy<Value = usize> {
        prop_oneof![1..40usize, block - 2..block + 36]
    }

    /// The number of offsets between two gaps.
    fn run() -> impl Strategy<Value = usize> {
        prop_oneof![Just(1usize), Just(7), Just(8), Just(1000)]
    }

    /// Offsets that are `near` apart, with an extra `gap` after every `run` offsets.
    fn offsets(count: usize, run: usize, near: isize, gap: isize) -> Vec<isize> {
        (0..count as isize).map(|at| at * near + at / run as isize * gap).collect()
    }

    fn check<T: Float + Debug + 'static>(
        [m, k, n]: [usize; 3],
        runs: [usize; 4],
        transposed: [bool; 3],
        accumulate: bool,
        seed: u64,
    ) {
        if !has_vector_kernels::<T>() {
            return;
        }
        let reach = |count: usize| 2 * count as isize + 8;
        let layout =
            |rows: usize, columns: usize, transposed: bool, (row_run, column_run): (usize, usize)| {
                let (row, column) = if transposed { (1, reach(rows)) } else { (reach(columns), 1) };
                let rows = offsets(rows, row_run, row, row * i32::from(row_run < 1000) as isize);
                (rows, offsets(columns, column_run, column, column * i32::from(column_run < 1000) as isize))
            };
        let (a_rows, a_sums) = layout(m, k, transposed[0], (runs[0], runs[1]));
        let (b_sums, b_columns) = layout(k, n, transposed[1], (runs[1], runs[2]));
        let (c_rows, c_columns) = layout(m, n, transposed[2], (1000, runs[3]));
        let len = |rows: &[isize], columns: &[isize]| {
            (rows[rows.len() - 1] + columns[columns.len() - 1]) as usize + 1
        };
        let mut state = seed;
        let mut fill = |len: usize| -> Vec<T> {
            let mut next = || {
                state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
                T::from((state >> 33) % 17).expect("a small integer") - T::from(8).expect("a small integer")
            };
            (0..len).map(|_| next()).collect()
        };
        let (a, b) = (fill(len(&a_rows, &a_sums)), fill(len(&b_sums, &b_columns)));
        let panels = Panels {
            rows: Offsets { first: &a_rows, second: &c_rows },
            sums: Offsets { first: &a_sums, second: &b_sums },
            columns: Offsets { first: &b_columns, second: &c_columns },
            accumulate,
        };
        // Sums of small integers are exact in any order.
        let mut expected = vec![T::nan(); len(&c_rows, &c_columns)];
        for (&row, &left) in c_rows.iter().zip(&a_rows) {
            for (&column, &right) in c_columns.iter().zip(&b_columns) {
                let product = |(&x, &y): (&isize, &isize)| a[(left + x) as usize] * b[(right + y) as usize];
                expected[(row + column) as usize] =
                    a_sums.iter().zip(&b_sums).map(product).fold(T::zero(), |sum, x| sum + x);
            }
        }
        for wide in [false, true] {
            if wide && level() != Level::Avx512 {
                continue;
            }
            let before = if accumulate { T::one() } else { T::nan() };
            let mut c = vec![before; expected.len()];
            // SAFETY: all offsets are within the vectors.
            unsafe { multiply_by(wide, &panels, &[[0; 3]], a.as_ptr(), b.as_ptr(), c.as_mut_ptr()) };
            let differs = |(&c, &sum): (&T, &T)| match (sum.is_nan(), accumulate) {
                (true, _) => c.is_nan() != before.is_nan(),
                (false, true) => c != sum + T::one(),
                (false, false) => c != sum,
            };
            assert_eq!(c.iter().zip(&expected).position(differs), None, "wide: {wide}");
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(24))]

        #[test]
        fn products_are_those_of_the_definition(
            m in count(MC), k in count(params().panel_kc), n in count(NC),
            runs in [run(), run(), run(), run()], transposed in any::<[bool; 3]>(),
            accumulate in any::<bool>(), seed in any::<u64>(),
        ) {
            check::<f32>([m, k, n], runs, transposed, accumulate, seed);
            check::<f64>([m, k, n], runs, transposed, accumulate, seed);
        }
    }
}
