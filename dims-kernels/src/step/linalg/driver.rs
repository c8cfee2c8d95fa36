//! Runs a [`MatrixWork`] on each matrix of a batch.

use super::small::LANES;
use super::stack::Failure;
use super::workspace::Workspace;
use super::{MatrixElement, MatrixResult, MatrixStep, MatrixWork, functions, solving, spectral};
use crate::error::Error;
use crate::machine::threads;
use crate::memory::allocate::reserve;
use crate::scalar::{Element, Num};
use crate::step::{StepOperands, StepResults};
use alloc::vec::Vec;
use faer::Par;
use smallvec::SmallVec;

/// The elements of one result, by type.
enum ResultElements<V, P, N> {
    Values(V),
    Parts(P),
    Positions(N),
}

/// One result for all matrices.
type OwnedData<T> = ResultElements<Vec<T>, Vec<<T as MatrixElement>::Part>, Vec<usize>>;

/// One result for some of the matrices.
type DataSlice<'r, T> = ResultElements<&'r mut [T], &'r mut [<T as MatrixElement>::Part], &'r mut [usize]>;

fn zeros<T: Element>(len: usize, zero: T) -> Result<Vec<T>, Error> {
    let mut data = reserve(len)?;
    data.resize(len, zero);
    Ok(data)
}

impl<T: MatrixElement> OwnedData<T> {
    fn new(of: MatrixResult, batch: usize) -> Result<Self, Error> {
        let len = |count: usize| count.checked_mul(batch).ok_or(Error::TooLarge { elements: usize::MAX });
        Ok(match of {
            MatrixResult::Values(count) => ResultElements::Values(zeros(len(count)?, T::ZERO)?),
            MatrixResult::Parts(count) => ResultElements::Parts(zeros(len(count)?, T::Part::ZERO)?),
            MatrixResult::Positions(count) => ResultElements::Positions(zeros(len(count)?, 0)?),
        })
    }

    fn slice(&mut self) -> DataSlice<'_, T> {
        match self {
            ResultElements::Values(data) => ResultElements::Values(data),
            ResultElements::Parts(data) => ResultElements::Parts(data),
            ResultElements::Positions(data) => ResultElements::Positions(data),
        }
    }

    fn add_to(self, results: StepResults) -> StepResults {
        match self {
            ResultElements::Values(data) => results.and(data),
            ResultElements::Parts(data) => results.and(data),
            ResultElements::Positions(data) => results.and(data),
        }
    }
}

impl<'r, T: MatrixElement> DataSlice<'r, T> {
    /// Splits this number of elements off the front.
    fn take(&mut self, count: usize) -> DataSlice<'r, T> {
        fn first<'r, E>(data: &mut &'r mut [E], count: usize) -> &'r mut [E] {
            let (first, rest) = core::mem::take(data).split_at_mut(count);
            *data = rest;
            first
        }
        match self {
            ResultElements::Values(data) => ResultElements::Values(first(data, count)),
            ResultElements::Parts(data) => ResultElements::Parts(first(data, count)),
            ResultElements::Positions(data) => ResultElements::Positions(first(data, count)),
        }
    }

    fn values(self) -> &'r mut [T] {
        let ResultElements::Values(data) = self else {
            unreachable!("the table says of which type a result is")
        };
        data
    }

    fn parts(self) -> &'r mut [T::Part] {
        let ResultElements::Parts(data) = self else {
            unreachable!("the table says of which type a result is")
        };
        data
    }

    fn positions(self) -> &'r mut [usize] {
        let ResultElements::Positions(data) = self else {
            unreachable!("the table says of which type a result is")
        };
        data
    }
}

/// Consecutive matrices of the batch.
struct MatrixChunk<'r, T: MatrixElement> {
    first: usize,
    count: usize,
    results: SmallVec<[DataSlice<'r, T>; 3]>,
}

/// Runs a step.
pub(super) fn run<T: MatrixElement>(
    step: &MatrixStep<T>,
    operands: &StepOperands<'_, '_>,
    threads: usize,
) -> Result<StepResults, Error> {
    let (work, batch) = (step.work, step.sizes.batch);
    let taken: SmallVec<[&[T]; 2]> = (0..operands.count()).map(|number| operands.of::<T>(number)).collect();
    let yields = work.yields(step.sizes);
    let mut results: SmallVec<[OwnedData<T>; 3]> =
        yields.iter().map(|&own| OwnedData::new(own, batch)).collect::<Result<_, _>>()?;
    let parts = threads.min(batch).max(1);
    let each = batch.div_ceil(parts).max(1);
    let mut rest: SmallVec<[DataSlice<'_, T>; 3]> = results.iter_mut().map(OwnedData::slice).collect();
    let mut chunks = Vec::new();
    for first in (0..batch).step_by(each) {
        let count = each.min(batch - first);
        let results =
            rest.iter_mut().zip(&yields).map(|(data, own)| data.take(own.count() * count)).collect();
        chunks.push(MatrixChunk { first, count, results });
    }
    let par = par_of(threads / parts);
    let found = threads::each(chunks, |chunk| run_chunk(step, chunk, &taken, par));
    found.into_iter().collect::<Result<(), Error>>()?;
    drop(rest);
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

/// The results. If the derivative needs them, all float results are also copied into one buffer.
fn kept<T: MatrixElement>(
    step: &MatrixStep<T>,
    keeps: bool,
    data: SmallVec<[OwnedData<T>; 3]>,
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
    par: Par,
) -> Result<(), Error> {
    let (takes, yields) = (step.work.takes(step.sizes), step.work.yields(step.sizes));
    let mut workspace = Workspace::new(par);
    if T::is_small(step.work, step.sizes) {
        return run_small(step, chunk, operands, &mut workspace);
    }
    for at in chunk.first..chunk.first + chunk.count {
        let own = operands.iter().zip(&takes).map(|(data, &count)| &data[at * count..(at + 1) * count]);
        let own: SmallVec<[&[T]; 2]> = own.collect();
        let results = chunk.results.iter_mut().zip(&yields).map(|(data, own)| data.take(own.count()));
        each(step, &own, results.collect(), &mut workspace).map_err(|failure| named(step, failure, at))?;
    }
    Ok(())
}

/// The error for the matrix at position `at` of the batch.
#[cold]
fn named<T>(step: &MatrixStep<T>, failure: Failure, at: usize) -> Error {
    match failure {
        Failure::Memory(error) => error,
        Failure::Matrix(failure) => {
            Error::Matrix { operation: step.work.name(), failure, at, batch: step.sizes.batch }
        }
    }
}

/// Like [`run_chunk`], but computes several small matrices at once. The work has one result.
fn run_small<T: MatrixElement>(
    step: &MatrixStep<T>,
    mut chunk: MatrixChunk<'_, T>,
    operands: &[&[T]],
    workspace: &mut Workspace<T>,
) -> Result<(), Error> {
    let takes = step.work.takes(step.sizes);
    let count = step.work.yields(step.sizes)[0].count();
    let out = chunk.results.pop().expect("there is a result").values();
    let of = |first: usize, end: usize| -> SmallVec<[&[T]; 2]> {
        operands.iter().zip(&takes).map(|(data, &count)| &data[first * count..end * count]).collect()
    };
    let end = chunk.first + chunk.count;
    for first in (chunk.first..end).step_by(LANES) {
        let last = end.min(first + LANES);
        let places = &mut out[(first - chunk.first) * count..(last - chunk.first) * count];
        if T::run_small(step.work, step.sizes, &of(first, last), places) {
            continue;
        }
        for (at, place) in (first..last).zip(places.chunks_mut(count.max(1))) {
            let results = core::iter::once(ResultElements::Values(place)).collect();
            each(step, &of(at, at + 1), results, workspace).map_err(|failure| named(step, failure, at))?;
        }
    }
    Ok(())
}

/// Runs the work on one matrix.
fn each<T: MatrixElement>(
    step: &MatrixStep<T>,
    operands: &[&[T]],
    results: SmallVec<[DataSlice<'_, T>; 3]>,
    workspace: &mut Workspace<T>,
) -> Result<(), Failure> {
    let sizes = step.sizes;
    let size = sizes.rows;
    let a = operands[0];
    let mut results = results.into_iter();
    let mut next = || results.next().expect("the table says how many results there are");
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
        MatrixWork::Rank => {
            next().positions()[0] = spectral::rank(a, sizes, workspace)?;
            Ok(())
        }
        MatrixWork::Cond => {
            next().parts()[0] = spectral::cond(a, sizes, workspace)?;
            Ok(())
        }
        MatrixWork::Power { exponent } => functions::power(a, size, exponent, next().values(), workspace),
        MatrixWork::Expm => functions::expm(a, size, next().values(), workspace),
    }
}
