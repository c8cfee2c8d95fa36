//! Arrays that can be bound: ndarray arrays, slices, vectors, nested fixed-size arrays, and arrays
//! of other crates.

use crate::error::DimError;
use crate::types::size::Dyn;

pub use crate::storage::source::{Axes, NdRank, Nested, RankDyn, Source, SourceMut};

/// An axis size that is known only at run time.
pub type Unknown = Dyn;

/// Checks that an array has as many axes as are bound. (For most arrays, the types ensure this.)
pub(crate) fn check_rank(found: usize, bound: usize) -> Result<(), DimError> {
    if found == bound { Ok(()) } else { Err(DimError::Rank { found, bound }) }
}
