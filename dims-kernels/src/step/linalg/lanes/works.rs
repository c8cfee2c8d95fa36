//! The works that have lanes: how tiles of matrices are loaded, computed and stored.

use super::elimination::{cholesky, eliminate, invert, solve_triangular, substitute, symmetric_part};
use super::exponential::expm;
use super::lane::{
    ArrayLane, Lane, are_finite, count_lane, greatest, holds_everywhere, number, numbers, numbers_mut, one,
    signed, zero,
};
use super::reflections::{qr, safe_squares};
use super::singular::{descending, orthogonalize};
use super::symmetric::{Spectrum, eigh};
use super::tile::{MatrixTile, combine};
#[cfg(x86_vectors)]
use super::vectors::Avx;
use crate::error::Error;
use crate::machine::isa::{Isa, Task, dispatch};
use crate::memory::allocate::reserve;
use crate::ops::matrix::{MatrixSizes, MatrixWork, ReadTriangle};
use crate::scalar::Real;
use crate::step::linalg::accuracy::are_accurate;
use crate::step::linalg::results::{ResultPlaces, ResultSlice};
use alloc::vec::Vec;
use core::ops::Range;
use smallvec::SmallVec;

/// The most matrices that are computed at once.
pub(in crate::step::linalg) const MOST_LANES: usize = 8;

/// The most rows and columns of matrices that are computed so.
const MOST: usize = 16;

/// Whether some matrices of these sizes are computed several at once.
pub(in crate::step::linalg) fn has_lanes(work: MatrixWork, sizes: MatrixSizes) -> bool {
    let MatrixSizes { batch, rows, columns, right } = sizes;
    let has_right = match work {
        MatrixWork::Solve { .. } | MatrixWork::SolveTriangular(_) => (1..=MOST).contains(&right),
        MatrixWork::Power { .. } => false,
        _ => true,
    };
    // A tile takes as long for one matrix as for all.
    let least = match rows.max(columns) {
        ..=4 => 1,
        _ => 2,
    };
    has_right && rows.min(columns) > 0 && rows.max(columns) <= MOST && batch >= least
}

/// Matrices for [`run`].
pub struct LaneJob<'j, 'r, T, P> {
    pub(in crate::step::linalg) work: MatrixWork,
    pub(in crate::step::linalg) sizes: MatrixSizes,
    /// The elements of each operand.
    pub(in crate::step::linalg) operands: &'j [&'j [T]],
    /// The memory of each result.
    pub(in crate::step::linalg) results: &'j mut [ResultPlaces<'r, T, P>],
    /// How many matrices there are.
    pub(in crate::step::linalg) count: usize,
}

/// Elements of matrices in lanes.
pub(in crate::step::linalg) trait LaneElement: Real {
    /// Lanes of vectors.
    type Vectors: Lane<Elem = Self>;
}

macro_rules! elements {
    ($($elem:ident $vector:ident $count:literal;)*) => {$(
        impl LaneElement for $elem {
            #[cfg(x86_vectors)]
            type Vectors = Avx<core::arch::x86_64::$vector, $count>;
            #[cfg(not(x86_vectors))]
            type Vectors = ArrayLane<$elem, MOST_LANES>;
        }
    )*};
}
elements! {
    f32 __m256 1;
    f64 __m256d 2;
}

/// Computes matrices, several at once, and clears the memory of each. Returns which of them have no
/// result.
pub(in crate::step::linalg) fn run<T: LaneElement>(
    job: LaneJob<'_, '_, T, T>,
) -> Result<Vec<Range<usize>>, Error> {
    fn of<T: LaneElement>(
        kind: impl TileWork<T>,
        job: LaneJob<'_, '_, T, T>,
    ) -> Result<Vec<Range<usize>>, Error> {
        dispatch(TileTask { kind, job })
    }
    match job.work {
        MatrixWork::Cholesky => of(Cholesky, job),
        MatrixWork::SolveTriangular(triangle) => of(SolveTriangular(triangle), job),
        MatrixWork::Solve { transposed } => of(Solve { transposed }, job),
        MatrixWork::Inverse => of(Inverse { cofactors: false }, job),
        MatrixWork::Cofactors => of(Inverse { cofactors: true }, job),
        MatrixWork::Det => of(Det { logarithm: false }, job),
        MatrixWork::SlogDet => of(Det { logarithm: true }, job),
        MatrixWork::Lu => of(Lu, job),
        MatrixWork::Qr => of(Qr, job),
        MatrixWork::Eigh => of(Eigh, job),
        work @ (MatrixWork::Svd
        | MatrixWork::SingularValues
        | MatrixWork::Pinv
        | MatrixWork::Rank
        | MatrixWork::Cond) => of(Singular(work), job),
        MatrixWork::Expm => of(Expm, job),
        MatrixWork::Power { .. } => unreachable!("powers have no lanes"),
    }
}

/// A work on a tile.
trait TileWork<T> {
    /// Whether there is a copy of the code for 4 rows and columns, whose loops are unrolled.
    const HAS_FOUR: bool = true;

    /// How many lanes of memory a tile needs.
    fn lanes(&self, sizes: MatrixSizes) -> usize;

    /// Computes the matrices of a tile. Returns whether all have a result.
    fn run<V: Lane<Elem = T>>(
        &self,
        sizes: MatrixSizes,
        operands: &[&[T]],
        results: &mut [ResultSlice<'_, T, T>],
        free: &mut [V],
    ) -> bool;
}

/// The tiles of a job.
struct TileTask<'j, 'r, T, W> {
    kind: W,
    job: LaneJob<'j, 'r, T, T>,
}

impl<T: LaneElement, W: TileWork<T>> Task for TileTask<'_, '_, T, W> {
    type Out = Result<Vec<Range<usize>>, Error>;

    #[cfg_attr(not(unoptimized), inline(always))]
    fn run<I: Isa>(self) -> Self::Out {
        // On x86-64, these are the instructions of AVX2 and FMA.
        if const { I::FUSED && cfg!(x86_vectors) } {
            self.run_with::<T::Vectors>()
        } else if const { cfg!(x86_vectors) && !cfg!(unoptimized) } {
            // Machines without these are rare: one copy less to compile.
            Ok(core::iter::once(0..self.job.count).collect())
        } else {
            self.run_with::<ArrayLane<T, MOST_LANES>>()
        }
    }
}

impl<T: LaneElement, W: TileWork<T>> TileTask<'_, '_, T, W> {
    #[cfg_attr(not(unoptimized), inline(always))]
    fn run_with<V: Lane<Elem = T>>(self) -> Result<Vec<Range<usize>>, Error> {
        let TileTask { kind, job: LaneJob { work, sizes, operands, results, count } } = self;
        let (takes, yields) = (work.takes(sizes), work.yields(sizes));
        let len = kind.lanes(sizes);
        let mut free = reserve(len)?;
        free.resize(len, zero::<V>());
        let mut failed = Vec::new();
        for first in (0..count).step_by(V::COUNT) {
            let last = count.min(first + V::COUNT);
            let own: SmallVec<[&[T]; 2]> =
                operands.iter().zip(&takes).map(|(data, &each)| &data[first * each..last * each]).collect();
            let mut places: SmallVec<[ResultSlice<'_, T, T>; 3]> = results
                .iter_mut()
                .zip(&yields)
                .map(|(data, each)| data.cleared(first * each.count()..last * each.count()))
                .collect();
            let is_four = (sizes.rows, sizes.columns) == (4, 4) && sizes.right <= 1;
            let is_right = if W::HAS_FOUR && is_four {
                let sizes = MatrixSizes { batch: sizes.batch, rows: 4, columns: 4, right: 1 };
                kind.run(sizes, &own, &mut places, &mut free)
            } else {
                kind.run(sizes, &own, &mut places, &mut free)
            };
            if !is_right {
                failed.push(first..last);
            }
        }
        Ok(failed)
    }
}

struct Cholesky;

impl<T: LaneElement> TileWork<T> for Cholesky {
    fn lanes(&self, sizes: MatrixSizes) -> usize {
        sizes.rows * sizes.rows
    }

    #[cfg_attr(not(unoptimized), inline(always))]
    fn run<V: Lane<Elem = T>>(
        &self,
        sizes: MatrixSizes,
        operands: &[&[T]],
        results: &mut [ResultSlice<'_, T, T>],
        mut free: &mut [V],
    ) -> bool {
        let mut a = MatrixTile::take(&mut free, sizes.rows, sizes.rows);
        a.load(operands[0], false);
        let is_right = cholesky::<V>(&mut a);
        a.store(results[0].as_mut().values());
        is_right
    }
}

struct SolveTriangular(ReadTriangle);

impl<T: LaneElement> TileWork<T> for SolveTriangular {
    fn lanes(&self, sizes: MatrixSizes) -> usize {
        sizes.rows * (sizes.rows + sizes.right)
    }

    #[cfg_attr(not(unoptimized), inline(always))]
    fn run<V: Lane<Elem = T>>(
        &self,
        sizes: MatrixSizes,
        operands: &[&[T]],
        results: &mut [ResultSlice<'_, T, T>],
        mut free: &mut [V],
    ) -> bool {
        let ReadTriangle { lower, transposed, unit } = self.0;
        let mut a = MatrixTile::take(&mut free, sizes.rows, sizes.rows);
        let mut b = MatrixTile::take(&mut free, sizes.rows, sizes.right);
        a.load(operands[0], transposed);
        b.load(operands[1], false);
        let is_right = solve_triangular::<V>(&a, &mut b, [lower != transposed, unit]);
        b.store(results[0].as_mut().values());
        is_right
    }
}

struct Solve {
    transposed: bool,
}

impl<T: LaneElement> TileWork<T> for Solve {
    fn lanes(&self, sizes: MatrixSizes) -> usize {
        sizes.rows * (sizes.rows + sizes.right + 1)
    }

    #[cfg_attr(not(unoptimized), inline(always))]
    fn run<V: Lane<Elem = T>>(
        &self,
        sizes: MatrixSizes,
        operands: &[&[T]],
        results: &mut [ResultSlice<'_, T, T>],
        mut free: &mut [V],
    ) -> bool {
        let mut a = MatrixTile::take(&mut free, sizes.rows, sizes.rows);
        let mut b = MatrixTile::take(&mut free, sizes.rows, sizes.right);
        a.load(operands[0], self.transposed);
        b.load(operands[1], false);
        let found = eliminate::<V>(&mut a, &mut b, free);
        substitute::<V>(&a, free, &mut b);
        b.store(results[0].as_mut().values());
        found.is_regular && are_finite(b.data)
    }
}

/// The numbers of rows, as lanes.
#[cfg_attr(not(unoptimized), inline(always))]
fn count_rows<V: Lane>(order: &mut MatrixTile<'_, V>) {
    for (at, own) in order.data.iter_mut().enumerate() {
        *own = count_lane(at);
    }
}

fn position<T: Real>(value: T) -> usize {
    num_traits::ToPrimitive::to_usize(&value).expect("the number of a row")
}

/// Inverses, transposed, or those times the determinants.
struct Inverse {
    cofactors: bool,
}

impl<T: LaneElement> TileWork<T> for Inverse {
    fn lanes(&self, sizes: MatrixSizes) -> usize {
        2 * sizes.rows * (sizes.rows + 1)
    }

    #[cfg_attr(not(unoptimized), inline(always))]
    fn run<V: Lane<Elem = T>>(
        &self,
        sizes: MatrixSizes,
        operands: &[&[T]],
        results: &mut [ResultSlice<'_, T, T>],
        mut free: &mut [V],
    ) -> bool {
        let size = sizes.rows;
        let mut a = MatrixTile::take(&mut free, size, size);
        let mut out = MatrixTile::take(&mut free, size, size);
        let mut order = MatrixTile::take(&mut free, size, 1);
        a.load(operands[0], false);
        count_rows(&mut order);
        let found = eliminate::<V>(&mut a, &mut order, free);
        invert::<V>(&a, free, &mut out);
        if self.cofactors {
            out.data.iter_mut().for_each(|own| *own = own.times(found.det));
        }
        // Rows were exchanged before the inversion, so the inverse has exchanged columns.
        for (lane, to) in results[0].as_mut().values().chunks_exact_mut(size * size).enumerate() {
            for column in 0..size {
                let place = position(number(&order.data[column], lane)) * size;
                for (row, to) in to[place..place + size].iter_mut().enumerate() {
                    *to = number(&out.data[row * size + column], lane);
                }
            }
        }
        let is_accurate = |(matrix, (a, cofactors)): (usize, (&[T], &[T]))| {
            let sizes =
                a.iter().zip(cofactors).map(|(&a, &cofactor)| [a, cofactor].map(num_traits::Float::abs));
            are_accurate(sizes, num_traits::Float::abs(number(&found.det, matrix)))
        };
        let is_accurate = !self.cofactors
            || found.is_in_range && {
                let all: &[T] = results[0].as_mut().values();
                let pairs = operands[0].chunks_exact(size * size).zip(all.chunks_exact(size * size));
                pairs.enumerate().all(is_accurate)
            };
        found.is_regular && is_accurate && are_finite(out.data)
    }
}

struct Det {
    logarithm: bool,
}

impl<T: LaneElement> TileWork<T> for Det {
    fn lanes(&self, sizes: MatrixSizes) -> usize {
        sizes.rows * (sizes.rows + 1)
    }

    #[cfg_attr(not(unoptimized), inline(always))]
    fn run<V: Lane<Elem = T>>(
        &self,
        sizes: MatrixSizes,
        operands: &[&[T]],
        results: &mut [ResultSlice<'_, T, T>],
        mut free: &mut [V],
    ) -> bool {
        let mut a = MatrixTile::take(&mut free, sizes.rows, sizes.rows);
        let mut none = MatrixTile::take(&mut free, sizes.rows, 0);
        a.load(operands[0], false);
        let found = eliminate::<V>(&mut a, &mut none, free);
        if !self.logarithm {
            let out = results[0].as_mut().values();
            out.copy_from_slice(&numbers(&[found.det])[..out.len()]);
            return found.is_in_range;
        }
        let (mut sign, mut log) = (found.sign, zero::<V>());
        for at in 0..sizes.rows {
            let pivot = a.at(at, at);
            sign = sign.times(signed(one(), pivot));
            let mut logarithm = pivot.abs();
            for own in numbers_mut(core::slice::from_mut(&mut logarithm)) {
                *own = num_traits::Float::ln(*own);
            }
            log = log.plus(logarithm);
        }
        let [signs, logs] = results else { unreachable!("there are two results") };
        let (signs, logs) = (signs.as_mut().values(), logs.as_mut().parts());
        signs.copy_from_slice(&numbers(&[sign])[..signs.len()]);
        logs.copy_from_slice(&numbers(&[log])[..logs.len()]);
        // Of a matrix without an inverse it is minus infinity.
        found.is_regular && are_finite(&[log])
    }
}

struct Lu;

impl<T: LaneElement> TileWork<T> for Lu {
    fn lanes(&self, sizes: MatrixSizes) -> usize {
        sizes.rows * (sizes.columns + 1) + sizes.least()
    }

    #[cfg_attr(not(unoptimized), inline(always))]
    fn run<V: Lane<Elem = T>>(
        &self,
        sizes: MatrixSizes,
        operands: &[&[T]],
        results: &mut [ResultSlice<'_, T, T>],
        mut free: &mut [V],
    ) -> bool {
        let (rows, columns, least) = (sizes.rows, sizes.columns, sizes.least());
        let mut a = MatrixTile::take(&mut free, rows, columns);
        let mut order = MatrixTile::take(&mut free, rows, 1);
        a.load(operands[0], false);
        if !are_finite(a.data) {
            return false;
        }
        count_rows(&mut order);
        eliminate::<V>(&mut a, &mut order, free);
        let [positions, lower, upper] = results else { unreachable!("there are three results") };
        let positions = positions.as_mut().positions().chunks_exact_mut(rows);
        let lower = lower.as_mut().values().chunks_exact_mut(rows * least);
        let upper = upper.as_mut().values().chunks_exact_mut(least * columns);
        for (lane, ((positions, lower), upper)) in positions.zip(lower).zip(upper).enumerate() {
            for (to, own) in positions.iter_mut().zip(&*order.data) {
                *to = position(number(own, lane));
            }
            for (row, to) in lower.chunks_exact_mut(least).enumerate() {
                let own = &a.row(row)[..least];
                for (column, (to, own)) in to.iter_mut().zip(own).enumerate() {
                    *to = match row.cmp(&column) {
                        core::cmp::Ordering::Less => T::ZERO,
                        core::cmp::Ordering::Equal => T::ONE,
                        core::cmp::Ordering::Greater => number(own, lane),
                    };
                }
            }
            for (row, to) in upper.chunks_exact_mut(columns).enumerate() {
                for (column, (to, own)) in to.iter_mut().zip(a.row(row)).enumerate() {
                    *to = if column < row { T::ZERO } else { number(own, lane) };
                }
            }
        }
        are_finite(a.data)
    }
}

struct Qr;

impl<T: LaneElement> TileWork<T> for Qr {
    fn lanes(&self, sizes: MatrixSizes) -> usize {
        let least = sizes.least();
        sizes.rows * (sizes.columns + 2 * least) + least + sizes.columns
    }

    #[cfg_attr(not(unoptimized), inline(always))]
    fn run<V: Lane<Elem = T>>(
        &self,
        sizes: MatrixSizes,
        operands: &[&[T]],
        results: &mut [ResultSlice<'_, T, T>],
        mut free: &mut [V],
    ) -> bool {
        let (rows, columns, least) = (sizes.rows, sizes.columns, sizes.least());
        let mut a = MatrixTile::take(&mut free, rows, columns);
        let mut q = MatrixTile::take(&mut free, rows, least);
        let (vectors, free) = free.split_at_mut(rows * least);
        let (taus, sums) = free.split_at_mut(least);
        a.load(operands[0], false);
        let is_right = are_finite(a.data) && qr::<V>(&mut a, &mut q, vectors, taus, sums);
        let [of_q, of_r] = results else { unreachable!("there are two results") };
        q.store(of_q.as_mut().values());
        MatrixTile { data: &mut a.data[..least * columns], rows: least, columns }
            .store(of_r.as_mut().values());
        is_right && are_finite(q.data) && are_finite(a.data)
    }
}

struct Eigh;

impl<T: LaneElement> TileWork<T> for Eigh {
    const HAS_FOUR: bool = false;

    fn lanes(&self, sizes: MatrixSizes) -> usize {
        sizes.rows * (3 * sizes.rows + 4)
    }

    #[cfg_attr(not(unoptimized), inline(always))]
    fn run<V: Lane<Elem = T>>(
        &self,
        sizes: MatrixSizes,
        operands: &[&[T]],
        results: &mut [ResultSlice<'_, T, T>],
        mut free: &mut [V],
    ) -> bool {
        let size = sizes.rows;
        let mut a = MatrixTile::take(&mut free, size, size);
        let mut vectors = MatrixTile::take(&mut free, size, size);
        let (reflections, free) = free.split_at_mut(size * size);
        let (values, free) = free.split_at_mut(size);
        let (beside, free) = free.split_at_mut(size);
        let (one, other) = free.split_at_mut(size);
        let mut spectrum = Spectrum { values, beside, others: [one, other] };
        a.load(operands[0], false);
        symmetric_part(&mut a);
        let is_right = eigh::<V>(&mut a, &mut vectors, reflections, &mut spectrum);
        if !is_right {
            return false;
        }
        let [of_values, of_vectors] = results else { unreachable!("there are two results") };
        let values = of_values.as_mut().parts().chunks_exact_mut(size);
        let columns = of_vectors.as_mut().values().chunks_exact_mut(size * size);
        let mut order = [0; MOST];
        let order = &mut order[..size];
        for (lane, (values, columns)) in values.zip(columns).enumerate() {
            descending(spectrum.values, lane, order);
            order.reverse();
            for (to, &from) in values.iter_mut().zip(&*order) {
                *to = number(&spectrum.values[from], lane);
            }
            store_columns(&vectors, lane, order, columns);
        }
        true
    }
}

/// Stores vectors of one matrix, which are rows of a tile, as columns in this order.
#[cfg_attr(not(unoptimized), inline(always))]
fn store_columns<V: Lane>(vectors: &MatrixTile<'_, V>, lane: usize, order: &[usize], out: &mut [V::Elem]) {
    for (column, &from) in order.iter().enumerate() {
        for (own, to) in vectors.row(from).iter().zip(out[column..].iter_mut().step_by(order.len())) {
            *to = number(own, lane);
        }
    }
}

/// Singular values, and what is computed from them.
struct Singular(MatrixWork);

impl<T: LaneElement> TileWork<T> for Singular {
    const HAS_FOUR: bool = false;

    fn lanes(&self, sizes: MatrixSizes) -> usize {
        let (least, most) = (sizes.least(), sizes.rows.max(sizes.columns));
        least * (most + least + 2) + if self.0 == MatrixWork::Pinv { sizes.rows * sizes.columns } else { 0 }
    }

    #[cfg_attr(not(unoptimized), inline(always))]
    fn run<V: Lane<Elem = T>>(
        &self,
        sizes: MatrixSizes,
        operands: &[&[T]],
        results: &mut [ResultSlice<'_, T, T>],
        mut free: &mut [V],
    ) -> bool {
        let (least, most) = (sizes.least(), sizes.rows.max(sizes.columns));
        let has_vectors = matches!(self.0, MatrixWork::Svd | MatrixWork::Pinv);
        // Rows of the tile are the shorter ones of rows and columns of the matrices.
        let is_tall = sizes.rows >= sizes.columns;
        let mut a = MatrixTile::take(&mut free, least, most);
        a.load(operands[0], is_tall);
        let mut turned = MatrixTile::take(&mut free, if has_vectors { least } else { 0 }, least);
        turned.set_identity();
        let (squares, free) = free.split_at_mut(least);
        let (values, free) = free.split_at_mut(least);
        let Some(back) = orthogonalize::<V>(&mut a, &mut turned, squares) else { return false };
        let mut most_value = zero::<V>();
        for (to, &square) in values.iter_mut().zip(&*squares) {
            *to = square.sqrt();
            most_value = greatest(most_value, *to);
        }
        let epsilon = V::all(num_traits::Float::epsilon());
        let least_value = most_value.times(count_lane::<V>(most).times(epsilon));
        match self.0 {
            MatrixWork::Svd => {
                let [least_square, _] = safe_squares::<T>();
                if !squares.iter().all(|own| holds_everywhere(own.greater(V::all(least_square)))) {
                    return false;
                }
                for (at, &value) in values.iter().enumerate() {
                    let share = one::<V>().over(value);
                    a.row_mut(at).iter_mut().for_each(|own| *own = own.times(share));
                }
                let [of_u, of_s, of_v] = results else { unreachable!("there are three results") };
                let u = of_u.as_mut().values().chunks_exact_mut(sizes.rows * least);
                let s = of_s.as_mut().parts().chunks_exact_mut(least);
                let v = of_v.as_mut().values().chunks_exact_mut(sizes.columns * least);
                let (left, right) = if is_tall { (&a, &turned) } else { (&turned, &a) };
                let mut order = [0; MOST];
                let order = &mut order[..least];
                for (lane, ((u, s), v)) in u.zip(s).zip(v).enumerate() {
                    descending(squares, lane, order);
                    for (to, &from) in s.iter_mut().zip(&*order) {
                        *to = number(&values[from], lane) * number(&back, lane);
                    }
                    store_columns(left, lane, order, u);
                    store_columns(right, lane, order, v);
                }
            }
            MatrixWork::SingularValues => {
                let mut order = [0; MOST];
                let order = &mut order[..least];
                for (lane, to) in results[0].as_mut().parts().chunks_exact_mut(least).enumerate() {
                    descending(squares, lane, order);
                    for (to, &from) in to.iter_mut().zip(&*order) {
                        *to = number(&values[from], lane) * number(&back, lane);
                    }
                }
            }
            MatrixWork::Pinv => {
                let scale = one::<V>().over(back);
                for (own, value) in squares.iter_mut().zip(&*values) {
                    let counts = value.greater(least_value);
                    *own = counts.choose(scale.over(*own), zero());
                }
                let mut out = MatrixTile { data: free, rows: sizes.rows, columns: sizes.columns };
                out.fill(zero());
                let (left, right) = if is_tall { (&a, &turned) } else { (&turned, &a) };
                for row in 0..sizes.rows {
                    for at in 0..least {
                        values[at] = left.at(at, row).times(squares[at]);
                    }
                    combine::<V, true>(out.row_mut(row), values, right.data, right.columns);
                }
                out.store(results[0].as_mut().values());
                return are_finite(out.data);
            }
            MatrixWork::Rank => {
                for (lane, to) in results[0].as_mut().positions().iter_mut().enumerate() {
                    *to = values.iter().filter(|own| number(*own, lane) > number(&least_value, lane)).count();
                }
            }
            _ => {
                let mut lowest = most_value;
                for own in &*values {
                    lowest = lowest.greater(*own).choose(*own, lowest);
                }
                for (lane, to) in results[0].as_mut().parts().iter_mut().enumerate() {
                    let (greatest, lowest) = (number(&most_value, lane), number(&lowest, lane));
                    *to = if lowest > T::ZERO { greatest / lowest } else { num_traits::Float::infinity() };
                }
            }
        }
        true
    }
}

struct Expm;

impl<T: LaneElement> TileWork<T> for Expm {
    const HAS_FOUR: bool = false;

    fn lanes(&self, sizes: MatrixSizes) -> usize {
        sizes.rows * (8 * sizes.rows + 1)
    }

    #[cfg_attr(not(unoptimized), inline(always))]
    fn run<V: Lane<Elem = T>>(
        &self,
        sizes: MatrixSizes,
        operands: &[&[T]],
        results: &mut [ResultSlice<'_, T, T>],
        mut free: &mut [V],
    ) -> bool {
        let size = sizes.rows;
        let mut tile = || MatrixTile::take(&mut free, size, size);
        let (mut a, mut out) = (tile(), tile());
        let mut others = [tile(), tile(), tile(), tile(), tile(), tile()];
        a.load(operands[0], false);
        let is_right = expm::<V>(&mut a, &mut out, &mut others, free);
        out.store(results[0].as_mut().values());
        is_right
    }
}
