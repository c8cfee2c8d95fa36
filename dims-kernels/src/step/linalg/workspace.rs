//! Memory that a thread uses for one matrix after another, and faults of matrices.

use super::MatrixElement;
use super::stack::{Failure, Stack};
use super::views::to_columns;
use crate::error::MatrixFailure;
use crate::memory::allocate::reserve;
use crate::scalar::Num;
use alloc::vec::Vec;
use faer::Par;

/// The memory of one thread.
pub(super) struct Workspace<T> {
    /// ReusedElements of matrices.
    pub(super) copies: [ReusedElements<T>; 4],
    /// What `faer` uses.
    pub(super) stack: Stack,
    /// On how many threads one matrix is worked on.
    pub(super) par: Par,
}

impl<T: MatrixElement> Workspace<T> {
    pub(super) fn new(par: Par) -> Self {
        Workspace { copies: Default::default(), stack: Stack::default(), par }
    }
}

/// Elements whose memory is used again.
#[derive(Default)]
pub(super) struct ReusedElements<T>(Vec<T>);

impl<T: MatrixElement> ReusedElements<T> {
    /// Zeros.
    pub(super) fn zeros(&mut self, len: usize) -> Result<&mut [T], Failure> {
        if self.0.capacity() < len {
            self.0 = reserve(len)?;
        }
        self.0.clear();
        self.0.resize(len, T::ZERO);
        Ok(&mut self.0)
    }

    /// Elements to be written.
    pub(super) fn any(&mut self, len: usize) -> Result<&mut [T], Failure> {
        if self.0.len() < len {
            return self.zeros(len);
        }
        Ok(&mut self.0[..len])
    }

    /// A copy.
    pub(super) fn of(&mut self, data: &[T]) -> Result<&mut [T], Failure> {
        if self.0.capacity() < data.len() {
            self.0 = reserve(data.len())?;
        }
        self.0.clear();
        self.0.extend_from_slice(data);
        Ok(&mut self.0)
    }
}

/// The Hermitian part of a square matrix, `(a + a^H) / 2`, column by column.
pub(super) fn hermitian<T: MatrixElement>(a: &[T], size: usize, to: &mut [T]) {
    let half = T::of_part(num_traits::NumCast::from(0.5).expect("a float can be a half"));
    to_columns(a, size, size, to);
    for (to, own) in to.iter_mut().zip(a) {
        *to = Num::mul(Num::add(*to, own.conjugate()), half);
    }
}

/// What is wrong with a matrix that has no factorization: that it has elements that are no numbers,
/// or `else_`.
#[cold]
pub(super) fn cause<T: MatrixElement>(operands: &[&[T]], else_: MatrixFailure) -> Failure {
    match operands.iter().all(|own| own.iter().all(|value| value.is_number())) {
        true => else_.into(),
        false => MatrixFailure::NotFinite.into(),
    }
}

/// Fails if an element is infinite or NaN.
pub(super) fn check_finite<T: MatrixElement>(data: &[T]) -> Result<(), Failure> {
    let is_finite = |block: &[T]| block.iter().fold(true, |all, value| all & value.is_number());
    match data.chunks(64).all(is_finite) {
        true => Ok(()),
        false => Err(MatrixFailure::NotFinite.into()),
    }
}
