//! What can be bound: ndarray arrays, slices, vectors, nested fixed-size arrays, and tensors with positional axes.

use crate::error::DimError;
use crate::rank::*;
use crate::size::Dyn;
use ndarray::{Dimension, Ix0, Ix1, Ix2, Ix3, Ix4, Ix5, Ix6, IxDyn};

pub use crate::storage::source::{Axes, Nested, Source, SourceMut};

/// A number of axes that only the run knows.
#[derive(Clone, Copy, Debug)]
pub struct RankDyn;

/// The rank of an ndarray dimension type.
pub trait NdRank: Dimension {
    #[doc(hidden)]
    const SEAL: crate::seal::Seal;
    /// [`Rank0`] to [`Rank6`], or [`RankDyn`].
    type Rank;
}

macro_rules! nd_ranks {
    ($($nd:ident $rank:ident),*) => { $(impl NdRank for $nd { const SEAL: crate::seal::Seal = crate::seal::SEAL; type Rank = $rank; })* };
}

nd_ranks!(Ix0 Rank0, Ix1 Rank1, Ix2 Rank2, Ix3 Rank3, Ix4 Rank4, Ix5 Rank5, Ix6 Rank6, IxDyn RankDyn);

/// The sizes of nested pairs of which nothing is known.
pub type Unknown = Dyn;

/// Checks a rank that only the run knows.
pub(crate) fn check_rank(found: usize, bound: usize) -> Result<(), DimError> {
    if found == bound { Ok(()) } else { Err(DimError::Rank { found, bound }) }
}
