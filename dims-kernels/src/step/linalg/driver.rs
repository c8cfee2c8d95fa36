//! Runs a [`MatrixWork`] on each matrix of a batch.

use super::lanes::{LaneJob, MOST_LANES};
use super::results::{OwnedResult, ResultElements, ResultPlaces, ResultSlice};
use super::stack::Failure;
use super::workspace::Workspace;
use super::{MatrixElement, MatrixSizes, MatrixStep, MatrixWork, exponential, functions, solving, spectral};
use crate::error::Error;
use crate::machine::threads;
use crate::memory::allocate::reserve;
use crate::step::{StepOperands, StepResults};
use alloc::vec::Vec;
use faer::Par;
use smallvec::SmallVec;

/// Consecutive matrices of the batch.
struct MatrixChunk<'r, T: MatrixElement> {
    first: usize,
    count: usize,
    results: SmallVec<[ResultPlaces<'r, T, T::Part>; 3]>,
}

pub(super) fn run<T: MatrixElement>(
    step: &MatrixStep<T>,
    operands: &StepOperands<'_, '_>,
    threads: usize,
) -> Result<StepResults, Error> {
    run_with(step, operands, threads, T::has_lanes)
}

/// Like [`run`], but `has_lanes` decides whether several matrices are computed at once.
pub(super) fn run_with<T: MatrixElement>(
    step: &MatrixStep<T>,
    operands: &StepOperands<'_, '_>,
    threads: usize,
    has_lanes: fn(MatrixWork, MatrixSizes) -> bool,
) -> Result<StepResults, Error> {
    let (work, batch) = (step.work, step.sizes.batch);
    let taken: SmallVec<[&[T]; 2]> = (0..operands.count()).map(|number| operands.of::<T>(number)).collect();
    let yields = work.yields(step.sizes);
    let mut results: SmallVec<[OwnedResult<T, T::Part>; 3]> =
        yields.iter().map(|&own| OwnedResult::new(own, batch)).collect::<Result<_, _>>()?;
    let parts = threads.min(batch).max(1);
    // With lanes, chunks begin at multiples of `MOST_LANES`, so that the tiles of matrices, and
    // with them the results, do not depend on the number of threads.
    let has_lanes = has_lanes(work, step.sizes);
    let each = batch.div_ceil(parts).max(1).next_multiple_of(if has_lanes { MOST_LANES } else { 1 });
    let lens: SmallVec<[usize; 3]> = yields.iter().map(|own| own.count() * batch).collect();
    let places = results.iter_mut().zip(&lens).map(|(own, &len)| own.places(len));
    let mut rest: SmallVec<[ResultPlaces<'_, T, T::Part>; 3]> = places.collect();
    let mut chunks = Vec::new();
    for first in (0..batch).step_by(each) {
        let count = each.min(batch - first);
        let results =
            rest.iter_mut().zip(&yields).map(|(data, own)| data.take(own.count() * count)).collect();
        chunks.push(MatrixChunk { first, count, results });
    }
    let par = par_of(threads / parts);
    let found = threads::each(chunks, |chunk| run_chunk(step, chunk, &taken, has_lanes, par));
    found.into_iter().collect::<Result<(), Error>>()?;
    drop(rest);
    for (own, len) in results.iter_mut().zip(lens) {
        // SAFETY: the chunks have the places of all matrices. Each chunk has run without an error,
        // and has cleared the places of each matrix before computing it.
        unsafe { own.finish(len) };
    }
    kept(step, operands.keeps(), results)
}

/// The parallelism within one matrix.
pub(super) fn par_of(threads: usize) -> Par {
    match threads {
        #[cfg(feature = "rayon")]
        2.. => Par::rayon(threads),
        _ => Par::Seq,
    }
}

/// The results. If the derivative needs them, all results except positions are also copied into one
/// buffer.
fn kept<T: MatrixElement>(
    step: &MatrixStep<T>,
    keeps: bool,
    data: SmallVec<[OwnedResult<T, T::Part>; 3]>,
) -> Result<StepResults, Error> {
    #[cfg(feature = "std")]
    if keeps && step.work.keeps() {
        let len = data.iter().map(|own| match own {
            ResultElements::Values(own) => own.len(),
            ResultElements::Parts(own) => own.len(),
            ResultElements::Positions(_) => 0,
        });
        let mut copy = reserve(len.sum())?;
        for own in &data {
            match own {
                ResultElements::Values(own) => copy.extend_from_slice(own),
                ResultElements::Parts(own) => copy.extend(own.iter().map(|&part| T::of_part(part))),
                ResultElements::Positions(_) => {}
            }
        }
        let results = data.into_iter().fold(StepResults::default(), |results, own| own.add_to(results));
        return Ok(results.keeping(copy));
    }
    let _ = (step, keeps);
    Ok(data.into_iter().fold(StepResults::default(), |results, own| own.add_to(results)))
}

fn run_chunk<T: MatrixElement>(
    step: &MatrixStep<T>,
    mut chunk: MatrixChunk<'_, T>,
    operands: &[&[T]],
    has_lanes: bool,
    par: Par,
) -> Result<(), Error> {
    let (takes, yields) = (step.work.takes(step.sizes), step.work.yields(step.sizes));
    let (first, count) = (chunk.first, chunk.count);
    let of = |from: usize, to: usize| -> SmallVec<[&[T]; 2]> {
        operands.iter().zip(&takes).map(|(data, &count)| &data[from * count..to * count]).collect()
    };
    let mut workspace = Workspace::new(par);
    let rest = if has_lanes {
        let (work, sizes) = (step.work, step.sizes);
        let own = of(first, first + count);
        T::run_lanes(LaneJob { work, sizes, operands: &own, results: &mut chunk.results, count })?
    } else {
        core::iter::once(0..count).collect()
    };
    for at in rest.into_iter().flatten() {
        let results = chunk.results.iter_mut().zip(&yields);
        let results = results.map(|(data, own)| data.cleared(at * own.count()..(at + 1) * own.count()));
        let own = of(first + at, first + at + 1);
        let found = each(step, &own, results.collect(), &mut workspace);
        found.map_err(|failure| named(step, failure, first + at))?;
    }
    Ok(())
}

/// The error for the matrix at position `at` of the batch.
#[cold]
fn named<T>(step: &MatrixStep<T>, failure: Failure, at: usize) -> Error {
    match failure {
        Failure::Memory(error) => error,
        Failure::Matrix(failure) => {
            let (operation, batch) = (step.work.name(), step.sizes.batch);
            Error::Matrix { operation, derivative: None, failure, at, batch }
        }
    }
}

/// Runs the work on one matrix.
fn each<T: MatrixElement>(
    step: &MatrixStep<T>,
    operands: &[&[T]],
    results: SmallVec<[ResultSlice<'_, T, T::Part>; 3]>,
    workspace: &mut Workspace<T>,
) -> Result<(), Failure> {
    let sizes = step.sizes;
    let size = sizes.rows;
    let a = operands[0];
    let mut results = results.into_iter();
    let mut next = || results.next().expect("`MatrixWork::yields` says how many results there are");
    match step.work {
        MatrixWork::Cholesky => solving::cholesky(a, size, next().values(), workspace),
        MatrixWork::SolveTriangular(triangle) => {
            solving::solve_triangular([a, operands[1]], sizes, triangle, next().values(), workspace)
        }
        MatrixWork::Solve { transposed } => {
            solving::solve([a, operands[1]], sizes, transposed, next().values(), workspace)
        }
        MatrixWork::Inverse => solving::inverse(a, size, next().values(), workspace),
        MatrixWork::Det => {
            next().values()[0] = solving::det(a, size, workspace)?;
            Ok(())
        }
        MatrixWork::SlogDet => {
            let (sign, log) = solving::slogdet(a, size, workspace)?;
            next().values()[0] = sign;
            next().parts()[0] = log;
            Ok(())
        }
        MatrixWork::Cofactors => spectral::cofactors(a, size, next().values(), workspace),
        MatrixWork::Lu => {
            let (order, lower, upper) = (next().positions(), next().values(), next().values());
            solving::lu(a, sizes, order, [lower, upper], workspace)
        }
        MatrixWork::Qr => spectral::qr(a, sizes, [next().values(), next().values()], workspace),
        MatrixWork::Eigh => {
            let values = next().parts();
            spectral::eigh(a, size, values, next().values(), workspace)
        }
        MatrixWork::Svd => {
            let (u, s, v) = (next().values(), next().parts(), next().values());
            spectral::svd(a, sizes, s, [u, v], workspace)
        }
        MatrixWork::SingularValues => spectral::singular_values(a, sizes, next().parts(), workspace),
        MatrixWork::Pinv => spectral::pinv(a, sizes, next().values(), workspace),
        MatrixWork::Lstsq => spectral::lstsq([a, operands[1]], sizes, next().values(), workspace),
        MatrixWork::Rank => {
            next().positions()[0] = spectral::rank(a, sizes, workspace)?;
            Ok(())
        }
        MatrixWork::Cond => {
            next().parts()[0] = spectral::cond(a, sizes, workspace)?;
            Ok(())
        }
        MatrixWork::Power { exponent } => functions::power(a, size, exponent, next().values(), workspace),
        MatrixWork::Expm => exponential::expm(a, size, next().values(), workspace),
    }
}
