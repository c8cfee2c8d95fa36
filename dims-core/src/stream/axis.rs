//! New axes, renaming, and broadcasting.

use super::Stream;
use super::axes::{Beside, NoAxisYet, TakesPlaceOf, UnitDim};
use super::ledger::CostClass;
use crate::error::DimError;
use crate::storage::source::Axes;
use crate::types::brand::{Brand, DimInfo};
use crate::types::dim::DimRef;
use crate::types::role::KeepsRole;
use crate::types::set::Dims;
use crate::types::set::ordered::AxisOf;
use crate::types::size::SameSize;
use kernels::memory::axes::Axis;
use kernels::scalar::Element;
use twins::panicking_twin;

impl<T: Element, L: Dims, D: Brand> Stream<T, L, D> {
    /// Inserts an axis `new` of one element before `axis`. This is free. Vollo's documentation
    /// calls it unsqueeze. The new axis is never the data dimension.
    ///
    /// ```text
    /// [a! b].unsqueeze(dim=0) -> [1 a! b]
    /// ```
    ///
    /// ```
    /// use typed_dims::prelude::*;
    ///
    /// dims! { pub struct A; pub struct B; pub struct One = 1; }
    /// let x = ones::<f32, _>((A.of(2), B.of(3))).stream((A, B), A);
    /// let y: Stream<f32, (One, A, B), A> = x.new_axis_before(A, One);
    /// assert_eq!(y.shape().to_string(), "[One=1 A!=2 B=3]");
    /// ```
    ///
    /// # Panics
    ///
    /// If `new` already has a size other than 1, or a size given with `axis` is not its size.
    #[panicking_twin]
    pub fn try_new_axis_before<A: AxisOf<L>, N: UnitDim + NoAxisYet<L> + Beside<A, L>>(
        &self,
        axis: A,
        new: N,
    ) -> Result<Stream<T, N::Before, D>, DimError> {
        self.check_given(&axis)?;
        self.with_new_axis(Self::position(axis), new.info())
    }

    /// Like [`new_axis_before`](Stream::new_axis_before), but after `axis`.
    ///
    /// ```
    /// use typed_dims::prelude::*;
    ///
    /// dims! { pub struct A; pub struct B; pub struct One = 1; }
    /// let x = ones::<f32, _>((A.of(2), B.of(3))).stream((A, B), A);
    /// let y: Stream<f32, (A, One, B), A> = x.new_axis_after(A, One);
    /// ```
    ///
    /// # Panics
    ///
    /// If `new` already has a size other than 1, or a size given with `axis` is not its size.
    #[panicking_twin]
    pub fn try_new_axis_after<A: AxisOf<L>, N: UnitDim + NoAxisYet<L> + Beside<A, L>>(
        &self,
        axis: A,
        new: N,
    ) -> Result<Stream<T, N::Behind, D>, DimError> {
        self.check_given(&axis)?;
        self.with_new_axis(Self::position(axis) + 1, new.info())
    }

    fn with_new_axis<M: Dims>(&self, at: usize, new: DimInfo<'_>) -> Result<Stream<T, M, D>, DimError> {
        new.unify(1, None)?;
        let out = self.silently_with_axis(at)?;
        out.note(CostClass::Free, || format!("new_axis({})", new.name), || vec![self.shape()]);
        Ok(out)
    }

    /// Inserts an axis without recording an operation.
    pub(super) fn silently_with_axis<M: Dims>(&self, at: usize) -> Result<Stream<T, M, D>, DimError> {
        let mut axes: Axes = self.data.axes().into();
        axes.insert(at, Axis::new(1, 0));
        Stream::from_shared(self.data.with_axes(0, axes))
    }

    /// Replaces `one`, an axis of one element, with the dim `new`, along which the elements are
    /// repeated. `new` must have a size. It can be the same dim as `one`:
    /// `x.broadcast(A, A.of(4))`.
    ///
    /// ```text
    /// [1 b!] -> [n b!]     free
    /// [a 1!] -> [a n!]     close to free: the data dimension is broadcast
    /// ```
    ///
    /// ```
    /// use typed_dims::prelude::*;
    ///
    /// dims! { pub struct A; pub struct B; pub struct One = 1; }
    /// let x = from_vec((A.of(2), One), vec![1, 2]).stream((A, One), One);
    /// let y: Stream<i32, (A, B), B> = x.broadcast(One, B.of(3));
    /// assert_eq!(y.to_array(), ndarray::array![[1, 1, 1], [2, 2, 2]]);
    /// ```
    ///
    /// # Panics
    ///
    /// If the size of the axis is not 1, a size given with `one` is not its size, or `new` has no
    /// size.
    #[panicking_twin]
    pub fn try_broadcast<A: AxisOf<L> + UnitDim, N: TakesPlaceOf<A, L, D> + KeepsRole<A>>(
        &self,
        one: A,
        new: N,
    ) -> Result<Stream<T, N::Axes, N::Data>, DimError> {
        self.check_given(&one)?;
        let (from, to, at) = (one.info(), new.info(), Self::position(one));
        let size = new.known_size().ok_or(DimError::Unsized { dim: to.name })?;
        let mut axes: Axes = self.data.axes().into();
        if axes[at].size != 1 {
            let what = format!(
                "dim `{}` of size {} cannot be broadcast to `{}` = {size}: its size must be 1",
                from.name, axes[at].size, to.name
            );
            return Err(DimError::Shape { what });
        }
        axes[at] = Axis::new(size, 0);
        let out = Stream::<T, N::Axes, N::Data>::from_shared(self.data.with_axes(0, axes))?;
        let cost = if Self::is_data(one) { CostClass::CloseToFree } else { CostClass::Free };
        out.note(cost, || format!("broadcast({}, {})", from.name, to.name), || vec![self.shape()]);
        Ok(out)
    }

    /// Renames the dim `old` to `new`. This is free, and not recorded as an operation, because axes
    /// have no names on the hardware.
    ///
    /// ```
    /// use typed_dims::prelude::*;
    ///
    /// dims! { pub struct Seq; pub struct Key; pub struct Feat; }
    /// let x = ones::<f32, _>((Seq.of(4), Feat.of(8))).stream((Seq, Feat), Seq);
    /// let keys: Stream<f32, (Key, Feat), Key> = x.rename(Seq, Key);
    /// ```
    ///
    /// # Panics
    ///
    /// If `new` already has a different size, or a size given with `old` is not its size.
    #[panicking_twin]
    pub fn try_rename<A: AxisOf<L>, N: TakesPlaceOf<A, L, D> + NameOfAxis<A> + KeepsRole<A>>(
        &self,
        old: A,
        new: N,
    ) -> Result<Stream<T, N::Axes, N::Data>, DimError> {
        self.check_given(&old)?;
        new.info().unify(self.data.axes()[Self::position(old)].size, None)?;
        Stream::from_shared(self.data.clone())
    }
}

/// A dim that the dim `A` can be renamed to: their static sizes do not differ.
pub trait NameOfAxis<A>: DimRef {
    #[doc(hidden)]
    const SEAL: crate::seal::Seal;
}
impl<N, A> NameOfAxis<A> for N
where
    N: DimRef,
    A: DimRef<Brand: Brand<Size: SameSize<<N::Brand as Brand>::Size, A::Brand, N::Brand>>>,
{
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
}
