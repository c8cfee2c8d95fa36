//! The tensors of a value: their dims and number of elements.

use super::{Parameters, Path, Walk};
use crate::error::{DimError, unwrap};
use crate::tensors::named::Named;
use crate::types::rank::Rank;
use crate::types::set::{Dims, Keys};
use kernels::scalar::Element;

/// The dims of a value's tensors, as far as they follow from its type.
#[doc(hidden)]
#[derive(Clone, Copy, Debug)]
pub struct TensorSets {
    /// The dims of the tensor, if the value is one.
    pub keys: &'static Keys,
    /// The dims of its parts.
    pub parts: &'static [TensorSets],
}

impl TensorSets {
    /// No tensors, or unknown ones.
    pub const UNKNOWN: TensorSets = TensorSets { keys: &Keys::EMPTY, parts: &[] };
}

/// Sums over all tensors.
#[derive(Default)]
pub(super) struct Totals {
    pub(super) elements: usize,
    pub(super) bytes: usize,
}

impl Walk<1> for Totals {
    type Error = DimError;

    fn tensor<T: Element, S: Dims, R: Rank>(
        &mut self,
        path: &Path,
        [tensor]: [&Named<T, S, R>; 1],
    ) -> Result<Named<T, S, R>, DimError> {
        let shape = tensor.unified_shape()?;
        let elements = shape.volume(&shape.all_axes(), size_of::<T>())?;
        let total =
            self.elements.checked_add(elements).zip(self.bytes.checked_add(elements * size_of::<T>()));
        let Some((elements, bytes)) = total else {
            let dims = format!("the elements of all tensors up to `{path}`");
            return Err(DimError::TooLarge { dims });
        };
        *self = Totals { elements, bytes };
        Ok(tensor.clone())
    }
}

#[track_caller]
pub(super) fn totals<P: Parameters>(of: &P) -> Totals {
    let mut totals = Totals::default();
    unwrap(P::walk([of], &mut Path::new(), &mut totals));
    totals
}
