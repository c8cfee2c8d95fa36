//! The elements of the results of matrix steps.

use super::MatrixResult;
use crate::error::Error;
use crate::memory::allocate::reserve;
use crate::scalar::Num;
use crate::step::StepResults;
use alloc::vec::Vec;
use core::mem::MaybeUninit;
use core::ops::Range;

/// The elements of a result.
pub enum ResultElements<V, P, N> {
    /// Elements of the matrix's type.
    Values(V),
    /// Real numbers.
    Parts(P),
    /// Positions or counts.
    Positions(N),
}

/// The elements of one result, for all matrices.
pub(super) type OwnedResult<T, P> = ResultElements<Vec<T>, Vec<P>, Vec<usize>>;

/// The uninitialized memory for one result of some matrices.
pub type ResultPlaces<'r, T, P> =
    ResultElements<&'r mut [MaybeUninit<T>], &'r mut [MaybeUninit<P>], &'r mut [MaybeUninit<usize>]>;

/// The elements of one result, for some matrices.
pub type ResultSlice<'r, T, P> = ResultElements<&'r mut [T], &'r mut [P], &'r mut [usize]>;

impl<T: Num, P: Num> OwnedResult<T, P> {
    /// Memory for a result of a batch, without elements.
    pub(super) fn new(of: MatrixResult, batch: usize) -> Result<Self, Error> {
        let len = |count: usize| count.checked_mul(batch).ok_or(Error::TooLarge { elements: usize::MAX });
        Ok(match of {
            MatrixResult::Values(count) => ResultElements::Values(reserve(len(count)?)?),
            MatrixResult::Parts(count) => ResultElements::Parts(reserve(len(count)?)?),
            MatrixResult::Positions(count) => ResultElements::Positions(reserve(len(count)?)?),
        })
    }

    /// The places of the first `len` elements.
    pub(super) fn places(&mut self, len: usize) -> ResultPlaces<'_, T, P> {
        match self {
            ResultElements::Values(data) => ResultElements::Values(&mut data.spare_capacity_mut()[..len]),
            ResultElements::Parts(data) => ResultElements::Parts(&mut data.spare_capacity_mut()[..len]),
            ResultElements::Positions(data) => {
                ResultElements::Positions(&mut data.spare_capacity_mut()[..len])
            }
        }
    }

    /// Declares that the first `len` elements are written.
    ///
    /// # Safety
    ///
    /// All of their [places](Self::places) were [cleared](ResultPlaces::cleared).
    pub(super) unsafe fn finish(&mut self, len: usize) {
        // SAFETY: the caller's promise. Places were borrowed from the memory of the vector.
        unsafe {
            match self {
                ResultElements::Values(data) => data.set_len(len),
                ResultElements::Parts(data) => data.set_len(len),
                ResultElements::Positions(data) => data.set_len(len),
            }
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

/// Writes zeros.
fn clear<T: Copy>(places: &mut [MaybeUninit<T>], zero: T) -> &mut [T] {
    places.fill(MaybeUninit::new(zero));
    // SAFETY: all elements were written.
    unsafe { &mut *(&raw mut *places as *mut [T]) }
}

impl<'r, T: Num, P: Num> ResultPlaces<'r, T, P> {
    /// Takes this number of places from the front.
    pub(super) fn take(&mut self, count: usize) -> ResultPlaces<'r, T, P> {
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

    /// Fills these places with zeros, and returns them as elements. Callers do this just before
    /// they compute the elements, so that the memory is in the cache.
    pub(super) fn cleared(&mut self, places: Range<usize>) -> ResultSlice<'_, T, P> {
        match self {
            ResultElements::Values(data) => ResultElements::Values(clear(&mut data[places], T::ZERO)),
            ResultElements::Parts(data) => ResultElements::Parts(clear(&mut data[places], P::ZERO)),
            ResultElements::Positions(data) => ResultElements::Positions(clear(&mut data[places], 0)),
        }
    }
}

impl<'r, T: Num, P: Num> ResultSlice<'r, T, P> {
    /// The same elements, reborrowed.
    pub(super) fn as_mut(&mut self) -> ResultSlice<'_, T, P> {
        match self {
            ResultElements::Values(data) => ResultElements::Values(data),
            ResultElements::Parts(data) => ResultElements::Parts(data),
            ResultElements::Positions(data) => ResultElements::Positions(data),
        }
    }

    pub(super) fn values(self) -> &'r mut [T] {
        let ResultElements::Values(data) = self else {
            unreachable!("`MatrixWork::yields` says which type each result has")
        };
        data
    }

    pub(super) fn parts(self) -> &'r mut [P] {
        let ResultElements::Parts(data) = self else {
            unreachable!("`MatrixWork::yields` says which type each result has")
        };
        data
    }

    pub(super) fn positions(self) -> &'r mut [usize] {
        let ResultElements::Positions(data) = self else {
            unreachable!("`MatrixWork::yields` says which type each result has")
        };
        data
    }
}
