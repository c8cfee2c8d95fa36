//! Slicing. It costs compute along the data dimension, and is free along other dims.

use super::Stream;
use super::ledger::CostClass;
use crate::bind::binder::cut;
use crate::error::DimError;
use crate::operators::restructure::range::DimRange;
use crate::storage::source::Axes;
use crate::types::brand::Brand;
use crate::types::set::Dims;
use crate::types::set::ordered::AxisOf;
use kernels::scalar::Element;
use twins::panicking_twin;

impl<T: Element, L: Dims, D: Brand> Stream<T, L, D> {
    /// The elements in a range of positions along an axis. Negative positions count from the end.
    /// The data dimension is kept.
    ///
    /// ```text
    /// [a b c!][:, :, :n] -> [a b n!]     compute
    /// [a b! c][:, :, :n] -> [a b! n]     free
    /// ```
    ///
    /// ```
    /// use typed_dims::prelude::*;
    ///
    /// dims! { pub struct Time; pub struct Feat; }
    /// let x = from_vec((Time.of(2), Feat.of(3)), vec![1, 2, 3, 4, 5, 6]).stream((Time, Feat), Time);
    /// let last: Stream<i32, (Time, Feat), Time> = x.slice(Feat, -2..);
    /// assert_eq!(last.to_array(), ndarray::array![[2, 3], [5, 6]]);
    /// ```
    ///
    /// # Panics
    ///
    /// If the range is reversed or not within the axis, or a static or given size of the dim is not
    /// the size of the part.
    #[panicking_twin]
    pub fn try_slice<A: AxisOf<L>, P: DimRange>(&self, axis: A, range: P) -> Result<Self, DimError> {
        let (info, at) = (axis.info(), Self::position(axis));
        let mut axes: Axes = self.data.axes().into();
        let (start, end) = range.bounds(axes[at].size);
        let (part, offset) = cut(axes[at], start, end, &|| format!("dim `{}`", info.name))?;
        // A local dim remembers the size of the whole axis, which the part need not have. A static
        // or given size must be the part's.
        info.resized().unify(part.size, None)?;
        axes[at] = part;
        let offset = if part.size == 0 { 0 } else { offset as usize };
        let sliced = Self::from_shared(self.data.with_axes(offset, axes))?;
        sliced.note(
            if Self::is_data(axis) { CostClass::Compute } else { CostClass::Free },
            || format!("slice({})", info.name),
            || vec![self.shape()],
        );
        Ok(sliced)
    }
}
