//! The elements of results.

use super::{MatrixElement, MatrixResult};
use crate::error::Error;
use crate::memory::allocate::reserve;
use crate::scalar::{Element, Num};
use crate::step::StepResults;
use alloc::vec::Vec;

/// The elements of a result.
pub enum ResultElements<V, P, N> {
    /// Elements of the matrix's type.
    Values(V),
    /// Real numbers.
    Parts(P),
    /// Positions.
    Positions(N),
}

/// The elements of a result of all matrices.
pub(super) type OwnedResult<T> = ResultElements<Vec<T>, Vec<<T as MatrixElement>::Part>, Vec<usize>>;

/// Those of some matrices.
pub type ResultSlice<'r, T> =
    ResultElements<&'r mut [T], &'r mut [<T as MatrixElement>::Part], &'r mut [usize]>;

fn zeros<T: Element>(len: usize, zero: T) -> Result<Vec<T>, Error> {
    let mut data = reserve(len)?;
    data.resize(len, zero);
    Ok(data)
}

impl<T: MatrixElement> OwnedResult<T> {
    pub(super) fn new(of: MatrixResult, batch: usize) -> Result<Self, Error> {
        let len = |count: usize| count.checked_mul(batch).ok_or(Error::TooLarge { elements: usize::MAX });
        Ok(match of {
            MatrixResult::Values(count) => ResultElements::Values(zeros(len(count)?, T::ZERO)?),
            MatrixResult::Parts(count) => ResultElements::Parts(zeros(len(count)?, T::Part::ZERO)?),
            MatrixResult::Positions(count) => ResultElements::Positions(zeros(len(count)?, 0)?),
        })
    }

    pub(super) fn slice(&mut self) -> ResultSlice<'_, T> {
        match self {
            ResultElements::Values(data) => ResultElements::Values(data),
            ResultElements::Parts(data) => ResultElements::Parts(data),
            ResultElements::Positions(data) => ResultElements::Positions(data),
        }
    }

    pub(super) fn add_to(self, results: StepResults) -> StepResults {
        match self {
            ResultElements::Values(data) => results.and(data),
            ResultElements::Parts(data) => results.and(data),
            ResultElements::Positions(data) => results.and(data),
        }
    }
}

impl<'r, T: MatrixElement> ResultSlice<'r, T> {
    /// Takes this number of elements from the front.
    pub(super) fn take(&mut self, count: usize) -> ResultSlice<'r, T> {
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

    /// The same elements, borrowed.
    pub(super) fn as_mut(&mut self) -> ResultSlice<'_, T> {
        match self {
            ResultElements::Values(data) => ResultElements::Values(data),
            ResultElements::Parts(data) => ResultElements::Parts(data),
            ResultElements::Positions(data) => ResultElements::Positions(data),
        }
    }

    /// Those from `start` to `end`.
    pub(super) fn range(&mut self, start: usize, end: usize) -> ResultSlice<'_, T> {
        match self {
            ResultElements::Values(data) => ResultElements::Values(&mut data[start..end]),
            ResultElements::Parts(data) => ResultElements::Parts(&mut data[start..end]),
            ResultElements::Positions(data) => ResultElements::Positions(&mut data[start..end]),
        }
    }

    pub(super) fn values(self) -> &'r mut [T] {
        let ResultElements::Values(data) = self else {
            unreachable!("the table says of which type a result is")
        };
        data
    }

    pub(super) fn parts(self) -> &'r mut [T::Part] {
        let ResultElements::Parts(data) = self else {
            unreachable!("the table says of which type a result is")
        };
        data
    }

    pub(super) fn positions(self) -> &'r mut [usize] {
        let ResultElements::Positions(data) = self else {
            unreachable!("the table says of which type a result is")
        };
        data
    }
}
