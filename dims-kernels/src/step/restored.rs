//! Steps restored from data.

use super::{StepDerivative, StepKind};
use crate::ops::code::DType;
use crate::trace::saved::SavedType;
use alloc::sync::Arc;
use smallvec::SmallVec;

/// A kind of step, and the types and lengths of its operands and results.
pub(super) struct Restored {
    pub(super) kind: Arc<dyn StepDerivative>,
    pub(super) takes: SmallVec<[SavedType; 3]>,
    pub(super) yields: SmallVec<[SavedType; 3]>,
    /// The type and length of the elements that the step keeps for its derivative.
    pub(super) keeps: Option<SavedType>,
}

impl Restored {
    pub(super) fn new(
        kind: impl StepKind,
        takes: &[SavedType],
        yields: &[SavedType],
        keeps: Option<SavedType>,
    ) -> Self {
        let (takes, yields) = (SmallVec::from_slice(takes), SmallVec::from_slice(yields));
        Restored { kind: Arc::new(kind), takes, yields, keeps }
    }
}

pub(super) const fn of(dtype: DType, len: usize) -> SavedType {
    SavedType { dtype, len }
}
