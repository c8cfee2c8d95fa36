//! Computes a batch tile by tile. A tile has up to [`Lane::COUNT`] matrices.

use super::factors::{Lu, Qr};
use super::lane::{ArrayLane, Lane, zero};
use super::spectra::{Eigh, Expm, Singular};
use super::systems::{Cholesky, Det, Inverse, Solve, SolveTriangular};
#[cfg(x86_vectors)]
use super::vectors::Avx;
use super::work::{MOST, TileWork, WorkTile};
use crate::error::Error;
use crate::machine::isa::{Isa, Task, dispatch};
use crate::memory::allocate::reserve;
use crate::ops::matrix::{MatrixSizes, MatrixWork};
use crate::scalar::Real;
use crate::step::linalg::results::{ResultPlaces, ResultSlice};
use alloc::vec::Vec;
use core::ops::Range;
use smallvec::SmallVec;

/// The maximum number of matrices that are computed at once.
pub(in crate::step::linalg) const MOST_LANES: usize = 8;

/// Whether matrices of these sizes are computed in lanes, several at once.
pub(in crate::step::linalg) fn has_lanes(work: MatrixWork, sizes: MatrixSizes) -> bool {
    let MatrixSizes { batch, rows, columns, right } = sizes;
    let has_right = match work {
        MatrixWork::Solve { .. } | MatrixWork::SolveTriangular(_) | MatrixWork::Lstsq => {
            (1..=MOST).contains(&right)
        }
        MatrixWork::Power { .. } => false,
        _ => true,
    };
    // A tile takes as long for one matrix as when it is full, so a single matrix is computed
    // without lanes, unless it is small.
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

/// An element type whose matrices are computed in lanes.
pub(in crate::step::linalg) trait LaneElement: Real {
    /// Lanes of AVX vectors. Only used on x86-64.
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

/// Computes the matrices of a job, several at once, and sets the memory of the results to 0 first.
/// Returns the ranges of matrices that the caller must still compute one by one.
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
        | MatrixWork::Lstsq
        | MatrixWork::Rank
        | MatrixWork::Cond) => of(Singular(work), job),
        MatrixWork::Expm => of(Expm, job),
        MatrixWork::Power { .. } => unreachable!("powers have no lanes"),
    }
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
        // On x86-64, `FUSED` means that the machine has AVX2 and FMA.
        if const { I::FUSED && cfg!(x86_vectors) } {
            self.run_with::<T::Vectors>()
        } else if const { cfg!(x86_vectors) && !cfg!(unoptimized) } {
            // Machines without AVX2 and FMA are rare. They compute the matrices one by one, so that
            // this code is not compiled a second time for them.
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
            let tile = WorkTile { sizes, operands: &own, results: &mut places, free: &mut free };
            let is_right = if W::HAS_FOUR && is_four {
                let sizes = MatrixSizes { batch: sizes.batch, rows: 4, columns: 4, right: 1 };
                kind.run(WorkTile { sizes, ..tile })
            } else {
                kind.run(tile)
            };
            if !is_right {
                failed.push(first..last);
            }
        }
        Ok(failed)
    }
}
