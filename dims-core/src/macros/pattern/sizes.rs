//! The sizes of an array's axes, by the names of a pattern.

use super::args::{Args, unify};
use super::data::{GivenSize, Pattern};
use crate::error::DimError;
use kernels::scalar::Element;
use smallvec::SmallVec;

/// The size of each axis of the pattern.
pub fn parse_shape<T: Element, L: Args<T>>(
    pattern: &'static Pattern,
    operands: L,
    given: &[GivenSize],
) -> Result<SmallVec<[usize; 8]>, DimError> {
    let (_, layout) = unify::<T, L::Dims>(pattern, given, &operands.values())?;
    Ok(layout.solved.axes)
}
