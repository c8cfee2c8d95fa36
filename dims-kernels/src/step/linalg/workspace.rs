//! Memory that a thread reuses from matrix to matrix, and checks of elements.

use super::MatrixElement;
use super::stack::{Failure, Stack};
use super::views::lower_to_columns;
use crate::error::{Error, MatrixFailure};
use crate::memory::allocate::reserve;
use crate::scalar::Num;
use alloc::vec::Vec;
use faer::Par;

/// The working memory of one thread.
pub(super) struct Workspace<T> {
    /// Buffers for copies of matrices.
    pub(super) copies: [ReusedElements<T>; 4],
    /// Scratch memory for `faer`.
    pub(super) stack: Stack,
    /// The parallelism within one matrix.
    pub(super) par: Par,
}

impl<T: MatrixElement> Workspace<T> {
    pub(super) fn new(par: Par) -> Self {
        Workspace { copies: Default::default(), stack: Stack::default(), par }
    }
}

/// A buffer whose memory is reused.
#[derive(Default)]
pub(super) struct ReusedElements<T>(Vec<T>);

impl<T: MatrixElement> ReusedElements<T> {
    /// Resets the buffer to `len` zeros.
    pub(super) fn zeros(&mut self, len: usize) -> Result<&mut [T], Failure> {
        if self.0.capacity() < len {
            self.0 = reserve(len)?;
        }
        self.0.clear();
        self.0.resize(len, T::ZERO);
        Ok(&mut self.0)
    }

    /// Elements with any values, which the caller overwrites.
    pub(super) fn any(&mut self, len: usize) -> Result<&mut [T], Failure> {
        if self.0.len() < len {
            return self.zeros(len);
        }
        Ok(&mut self.0[..len])
    }

    /// Copies these elements into the buffer.
    pub(super) fn of(&mut self, data: &[T]) -> Result<&mut [T], Failure> {
        if self.0.capacity() < data.len() {
            self.0 = reserve(data.len())?;
        }
        self.0.clear();
        self.0.extend_from_slice(data);
        Ok(&mut self.0)
    }
}

/// Collects at most `len` elements in a new vector. Unlike `reserve`, this does not take memory
/// from the pool of freed results.
pub(super) fn collected<T>(len: usize, elements: impl IntoIterator<Item = T>) -> Result<Vec<T>, Failure> {
    let mut all = Vec::new();
    all.try_reserve_exact(len).map_err(|_| Error::TooLarge { elements: len })?;
    all.extend(elements);
    Ok(all)
}

/// A copy in a new vector, which is not from the pool.
pub(super) fn copied<T: Copy>(elements: &[T]) -> Result<Vec<T>, Failure> {
    collected(elements.len(), elements.iter().copied())
}

/// `len` zeros in a new vector, which is not from the pool.
pub(super) fn zeros<T: Num>(len: usize) -> Result<Vec<T>, Failure> {
    collected(len, core::iter::repeat_n(T::ZERO, len))
}

/// The Hermitian part of a square matrix, `(a + a^H) / 2`, column by column: the elements on and
/// below the diagonal. The elements above it have any values.
pub(super) fn hermitian<T: MatrixElement>(a: &[T], size: usize, to: &mut [T]) {
    let half = T::of_part(num_traits::NumCast::from(0.5).expect("every float type has the value 0.5"));
    lower_to_columns(a, size, to);
    let columns = to.chunks_exact_mut(size.max(1)).zip(a.chunks_exact(size.max(1)));
    for (at, (column, row)) in columns.enumerate() {
        for (to, own) in column[at..].iter_mut().zip(&row[at..]) {
            let (one, other) = (*to, own.conjugate());
            *to = Num::mul(Num::add(one, other), half);
            if !to.is_number() {
                // The sum of large elements is out of range.
                *to = Num::add(Num::mul(one, half), Num::mul(other, half));
            }
        }
    }
}

/// Why a matrix has no factorization: `NotFinite` if an element is infinite or NaN, otherwise
/// `else_`.
#[cold]
pub(super) fn cause<T: MatrixElement>(a: &[T], else_: MatrixFailure) -> Failure {
    match a.iter().all(|value| value.is_number()) {
        true => else_.into(),
        false => MatrixFailure::NotFinite.into(),
    }
}

/// Why a solution of a system of equations is not finite. `a` yields the elements of the matrix
/// that are read.
#[cold]
pub(super) fn cause_of_system<T: MatrixElement>(mut a: impl Iterator<Item = T>, b: &[T]) -> Failure {
    let is_number = |value: T| value.is_number();
    match (a.all(is_number), b.iter().copied().all(is_number)) {
        (false, _) => MatrixFailure::NotFinite.into(),
        (true, false) => MatrixFailure::RightSideNotFinite.into(),
        (true, true) => MatrixFailure::OutOfRange.into(),
    }
}

/// Returns an error if an element is infinite or NaN.
pub(super) fn check_finite<T: MatrixElement>(data: &[T]) -> Result<(), Failure> {
    let is_finite = |block: &[T]| block.iter().fold(true, |all, value| all & value.is_number());
    match data.chunks(64).all(is_finite) {
        true => Ok(()),
        false => Err(MatrixFailure::NotFinite.into()),
    }
}
