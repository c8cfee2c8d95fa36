//! Complex eigenvalues and eigenvectors of any square matrix of real numbers.

use super::driver::par_of;
use super::range::{exponent_over_epsilon, scale, times_power};
use super::spectral::svd;
use super::stack::Failure;
use super::views::by_columns;
use super::workspace::{Workspace, check_finite, zeros};
use super::{MatrixSizes, RealMatrixElement};
use crate::error::Error;
use crate::loops::steps::PlanStep;
use crate::machine::threads;
use crate::memory::allocate::reserve;
use crate::scalar::Num;
#[cfg(feature = "std")]
use crate::step::StepDerivative;
use crate::step::{Step, StepOperands, StepResults};
#[cfg(feature = "std")]
use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;
use core::marker::PhantomData;
use faer::Par;
use num_complex::Complex;

/// The eigenvalues of square matrices of real numbers, and their eigenvectors as columns of unit
/// length. Both are complex, which programs do not support, so the step is neither recorded nor
/// differentiated.
#[derive(Clone, Copy, Debug)]
pub struct EigenStep<T> {
    /// The number of matrices.
    pub batch: usize,
    /// The number of rows and columns of each matrix.
    pub size: usize,
    /// The type of the elements.
    pub element: PhantomData<T>,
}

impl<T: RealMatrixElement> Step for EigenStep<T> {
    fn name(&self) -> &'static str {
        "eig"
    }

    fn plan(&self, bytes: usize, threads: usize) -> Option<PlanStep> {
        let (lines, len) = (self.batch, self.size * self.size);
        Some(PlanStep::Lines { work: "eig", lines, len, bytes, threads })
    }

    fn parallel(&self) -> usize {
        MatrixSizes::square(self.batch, self.size).multiplications() / 64
    }

    fn run(&self, operands: &mut StepOperands<'_, '_>, threads: usize) -> Result<StepResults, Error> {
        let a = operands.of::<T>(0);
        let (batch, size) = (self.batch, self.size);
        let zero = Complex::new(<T as Num>::ZERO, <T as Num>::ZERO);
        let (mut values, mut vectors) = (reserve(batch * size)?, reserve(a.len())?);
        values.resize(batch * size, zero);
        vectors.resize(a.len(), zero);
        if a.is_empty() {
            return Ok(StepResults::one(values).and(vectors));
        }
        let parts = threads.min(batch).max(1);
        let each = batch.div_ceil(parts);
        let par = par_of(threads / parts);
        let pieces = values.chunks_mut(each * size).zip(vectors.chunks_mut(each * size * size)).enumerate();
        let found = threads::each(pieces.collect::<Vec<_>>(), |(part, (values, vectors))| {
            let mut workspace = Workspace::new(par);
            let matrices = values.chunks_exact_mut(size).zip(vectors.chunks_exact_mut(size * size));
            for (at, (values, vectors)) in matrices.enumerate() {
                let at = part * each + at;
                let own = &a[at * size * size..(at + 1) * size * size];
                eig(own, size, values, vectors, &mut workspace).map_err(|failure| match failure {
                    Failure::Memory(error) => error,
                    Failure::Matrix(failure) => {
                        Error::Matrix { operation: "eig", derivative: None, failure, at, batch }
                    }
                })?;
            }
            Ok(())
        });
        found.into_iter().collect::<Result<(), Error>>()?;
        Ok(StepResults::one(values).and(vectors))
    }

    #[cfg(feature = "std")]
    fn derivative(&self) -> Option<Arc<dyn StepDerivative>> {
        None
    }
}

fn eig<T: RealMatrixElement>(
    a: &[T],
    size: usize,
    values: &mut [Complex<T>],
    vectors: &mut [Complex<T>],
    workspace: &mut Workspace<T>,
) -> Result<(), Failure> {
    check_finite(a)?;
    let Workspace { copies: [own, real, imaginary, scaled], stack, par } = workspace;
    let (own, real, imaginary) = (own.zeros(a.len())?, real.zeros(size)?, imaginary.zeros(size)?);
    // `faer` replaces the determinant of a 2x2 block if it is less than epsilon times the norm of
    // the matrix. But when a matrix is scaled, its determinants grow with the square of the factor,
    // and the norm only with the factor. So the matrix is scaled until its greatest element is
    // about 1 / epsilon or more; then only determinants that do not matter are replaced.
    let exponent = exponent_over_epsilon(a);
    let scaled = scaled.of(a)?;
    scale(scaled, -exponent);
    let a = &*scaled;
    T::eigen(a, size, [&mut *real, &mut *imaginary], own, stack, *par)?;
    let own = by_columns(own, size, size);
    let mut column = 0;
    while column < size {
        let value = Complex::new(real[column], imaginary[column]);
        values[column] = value;
        // The vectors of a conjugate pair are stored as two columns: the real and the imaginary
        // part.
        let is_pair = value.im != T::ZERO && column + 1 < size;
        for row in 0..size {
            let (re, im) = (own[(row, column)], if is_pair { own[(row, column + 1)] } else { T::ZERO });
            vectors[row * size + column] = Complex::new(re, im);
            if is_pair {
                vectors[row * size + column + 1] = Complex::new(re, Num::sub(T::ZERO, im));
            }
        }
        if is_pair {
            values[column + 1] = Complex::new(value.re, Num::sub(T::ZERO, value.im));
        }
        column += 1 + usize::from(is_pair);
    }
    unit_columns(vectors, size);
    replace_missing(a, values, vectors)?;
    for value in values {
        *value = Complex::new(times_power(value.re, exponent), times_power(value.im, exponent));
    }
    Ok(())
}

/// Replaces eigenvectors that are not finite. `faer` divides by differences of eigenvalues, and the
/// quotients can overflow if the matrix is defective. The second vector of a conjugate pair becomes
/// the conjugate of the first.
fn replace_missing<T: RealMatrixElement>(
    a: &[T],
    values: &[Complex<T>],
    vectors: &mut [Complex<T>],
) -> Result<(), Failure> {
    let size = values.len();
    for (column, value) in values.iter().enumerate() {
        let is_number = |own: Complex<T>| own.re.is_number() && own.im.is_number();
        if (0..size).all(|row| is_number(vectors[row * size + column])) {
            continue;
        }
        let opposite = Complex::new(value.re, Num::sub(T::ZERO, value.im));
        if value.im != T::ZERO && column > 0 && values[column - 1] == opposite {
            for row in vectors.chunks_exact_mut(size) {
                row[column] = Complex::new(row[column - 1].re, Num::sub(T::ZERO, row[column - 1].im));
            }
            continue;
        }
        let found = least_vector(a, *value)?;
        for (row, own) in vectors.chunks_exact_mut(size).zip(found) {
            row[column] = own;
        }
    }
    Ok(())
}

/// The unit vector `x` for which `|(a - value) x|` is least.
///
/// For a complex value, the vector is computed from the real matrix `[[re, -im], [im, re]]`, where
/// `re` and `im` are the real and the imaginary part of `a - value`.
fn least_vector<T: RealMatrixElement>(a: &[T], value: Complex<T>) -> Result<Vec<Complex<T>>, Failure> {
    let size = a.len().isqrt();
    let is_real = value.im == T::ZERO;
    let rows = if is_real { size } else { 2 * size };
    let mut matrix = zeros(rows * rows)?;
    for row in 0..rows {
        for column in 0..rows {
            let own = a[row % size * size + column % size];
            matrix[row * rows + column] = match (row == column, row / size == column / size) {
                (true, _) => Num::sub(own, value.re),
                (false, true) => own,
                (false, false) if row % size != column % size => T::ZERO,
                (false, false) if row < column => value.im,
                (false, false) => Num::sub(T::ZERO, value.im),
            };
        }
    }
    let mut values = vec![T::Part::ZERO; rows];
    let (mut left, mut right) = (zeros(matrix.len())?, zeros(matrix.len())?);
    let vectors = [&mut left[..], &mut right[..]];
    svd(&matrix, MatrixSizes::square(1, rows), &mut values, vectors, &mut Workspace::new(Par::Seq))?;
    let last = |row: usize| right[row * rows + rows - 1];
    let part = |row: usize| if is_real { T::ZERO } else { last(size + row) };
    Ok((0..size).map(|row| Complex::new(last(row), part(row))).collect())
}

/// Scales each column to length 1.
fn unit_columns<T: RealMatrixElement>(vectors: &mut [Complex<T>], size: usize) {
    for column in 0..size {
        let places = (0..size).map(|row| row * size + column);
        let most = places.clone().map(|at| vectors[at]).fold(<T as Num>::ZERO, |most: T, own| {
            num_traits::Float::max(
                most,
                num_traits::Float::max(num_traits::Float::abs(own.re), num_traits::Float::abs(own.im)),
            )
        });
        let divide = |vectors: &mut [Complex<T>], by: T| {
            for at in places.clone() {
                let own = &mut vectors[at];
                *own = Complex::new(Num::div(own.re, by), Num::div(own.im, by));
            }
        };
        // After this division, the squares are in range.
        divide(vectors, most);
        let squares = places.clone().map(|at| vectors[at]).fold(<T as Num>::ZERO, |sum: T, own| {
            Num::add(sum, Num::add(Num::mul(own.re, own.re), Num::mul(own.im, own.im)))
        });
        divide(vectors, num_traits::Float::sqrt(squares));
    }
}
