//! Memory that a thread uses for one matrix after the other, and what is wrong with one.

use super::MatrixElement;
use crate::error::{Error, MatrixFailure};
use crate::memory::allocate::reserve;
use crate::scalar::Num;
use alloc::vec::Vec;
use faer::dyn_stack::{MemBuffer, MemStack, StackReq};
use faer::{MatMut, MatRef, Par};

/// Why the work on one matrix failed.
#[derive(Debug)]
pub enum Failure {
    /// The matrix is not one that the work is for.
    Matrix(MatrixFailure),
    /// There is no memory.
    Memory(Error),
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Failure::Memory(error)
    }
}

impl From<MatrixFailure> for Failure {
    fn from(failure: MatrixFailure) -> Self {
        Failure::Matrix(failure)
    }
}

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
        Workspace { copies: Default::default(), stack: Stack(None), par }
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

/// A buffer for `faer`, which grows.
pub struct Stack(Option<(usize, MemBuffer)>);

impl Stack {
    /// Memory as it is asked for.
    pub(super) fn of(&mut self, needed: StackReq) -> Result<&mut MemStack, Failure> {
        let len = needed.unaligned_bytes_required();
        if self.0.as_ref().is_none_or(|(own, _)| *own < len) {
            let buffer = MemBuffer::try_new(needed).map_err(|_| Error::TooLarge { elements: len })?;
            self.0 = Some((len, buffer));
        }
        let (_, buffer) = self.0.as_mut().expect("the buffer was made");
        Ok(MemStack::new(buffer))
    }
}

/// Elements row by row, as a matrix.
pub(super) fn by_rows<T>(data: &[T], rows: usize, columns: usize) -> MatRef<'_, T> {
    MatRef::from_row_major_slice(data, rows, columns)
}

/// The same, for writing.
pub(super) fn by_rows_mut<T>(data: &mut [T], rows: usize, columns: usize) -> MatMut<'_, T> {
    MatMut::from_row_major_slice_mut(data, rows, columns)
}

/// Elements column by column, as a matrix.
pub(super) fn by_columns<T>(data: &[T], rows: usize, columns: usize) -> MatRef<'_, T> {
    MatRef::from_column_major_slice(data, rows, columns)
}

/// The same, for writing.
pub(super) fn by_columns_mut<T>(data: &mut [T], rows: usize, columns: usize) -> MatMut<'_, T> {
    MatMut::from_column_major_slice_mut(data, rows, columns)
}

/// Calls a function with the positions of an element of a matrix that lies row by row, and of the
/// same in one that lies column by column, block by block.
fn each_place(rows: usize, columns: usize, mut f: impl FnMut(usize, usize)) {
    const BLOCK: usize = 16;
    for top in (0..rows).step_by(BLOCK) {
        for left in (0..columns).step_by(BLOCK) {
            for row in top..rows.min(top + BLOCK) {
                for column in left..columns.min(left + BLOCK) {
                    f(row * columns + column, column * rows + row);
                }
            }
        }
    }
}

/// ReusedElements a matrix that lies row by row to one that lies column by column.
pub(super) fn to_columns<T: Copy>(from: &[T], rows: usize, columns: usize, to: &mut [T]) {
    each_place(rows, columns, |by_row, by_column| to[by_column] = from[by_row]);
}

/// The reverse.
pub(super) fn to_rows<T: Copy>(from: &[T], rows: usize, columns: usize, to: &mut [T]) {
    each_place(rows, columns, |by_row, by_column| to[by_row] = from[by_column]);
}

/// The Hermitian part of a square matrix, `(a + a^H) / 2`.
pub(super) fn hermitian<T: MatrixElement>(a: &[T], size: usize, to: &mut [T]) {
    let half = T::of_part(num_traits::NumCast::from(0.5).expect("a float can be a half"));
    each_place(size, size, |one, other| {
        to[other] = Num::mul(Num::add(a[one], a[other].conjugate()), half);
    });
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
