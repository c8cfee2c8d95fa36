//! New axes, other names of axes, and broadcasting.

use super::Stream;
use super::axes::{Beside, NoAxisYet, StreamAxis, TakesPlaceOf, UnitDim};
use super::ledger::CostClass;
use crate::error::{DimError, unwrap};
use crate::storage::source::Axes;
use crate::types::brand::{Brand, DimInfo};
use crate::types::dim::DimRef;
use crate::types::role::KeepsRole;
use crate::types::set::Dims;
use crate::types::size::SameSize;
use kernels::memory::axes::Axis;
use kernels::scalar::Element;

impl<T: Element, L: Dims, D: Brand> Stream<T, L, D> {
    /// The stream with a new axis `new` of one element in front of `axis`; free. (The text calls it unsqueeze.) The new axis is never the data
    /// dimension.
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
    /// If `new` already has another size than 1.
    #[track_caller]
    pub fn new_axis_before<A: StreamAxis<L>, N: UnitDim + NoAxisYet<L> + Beside<A, L>>(
        &self,
        axis: A,
        new: N,
    ) -> Stream<T, N::Before, D> {
        unwrap(self.try_new_axis_before(axis, new))
    }

    /// As [`new_axis_before`](Stream::new_axis_before), but what sizes decide is an error.
    pub fn try_new_axis_before<A: StreamAxis<L>, N: UnitDim + NoAxisYet<L> + Beside<A, L>>(
        &self,
        axis: A,
        new: N,
    ) -> Result<Stream<T, N::Before, D>, DimError> {
        self.check_given(&axis)?;
        self.with_new_axis(Self::position(axis), new.info())
    }

    /// As [`new_axis_before`](Stream::new_axis_before), but behind `axis`.
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
    /// If `new` already has another size than 1.
    #[track_caller]
    pub fn new_axis_after<A: StreamAxis<L>, N: UnitDim + NoAxisYet<L> + Beside<A, L>>(
        &self,
        axis: A,
        new: N,
    ) -> Stream<T, N::Behind, D> {
        unwrap(self.try_new_axis_after(axis, new))
    }

    /// As [`new_axis_after`](Stream::new_axis_after), but what sizes decide is an error.
    pub fn try_new_axis_after<A: StreamAxis<L>, N: UnitDim + NoAxisYet<L> + Beside<A, L>>(
        &self,
        axis: A,
        new: N,
    ) -> Result<Stream<T, N::Behind, D>, DimError> {
        self.check_given(&axis)?;
        self.with_new_axis(Self::position(axis) + 1, new.info())
    }

    fn with_new_axis<M: Dims>(&self, at: usize, new: DimInfo<'_>) -> Result<Stream<T, M, D>, DimError> {
        new.unify(1, None)?;
        let out = self.silently_with_axis(at);
        out.note(CostClass::Free, || format!("new_axis({})", new.name), || vec![self.shape()]);
        Ok(out)
    }

    /// One more axis, which is not noted as an operation.
    pub(super) fn silently_with_axis<M: Dims>(&self, at: usize) -> Stream<T, M, D> {
        let mut axes: Axes = self.data.axes().into();
        axes.insert(at, Axis::new(1, 0));
        Stream::from_shared(self.data.with_axes(0, axes))
    }

    /// The stream with the dim `new`, of any size, in the place of `one`, an axis of one element, whose elements are the same at all its positions.
    /// `new` comes with its size; it can be the same dim: `x.broadcast(A, A.of(4))`.
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
    /// If the axis has not one element, or `new` no size.
    #[track_caller]
    pub fn broadcast<A: UnitDim, N: TakesPlaceOf<A, L, D> + KeepsRole<A>>(
        &self,
        one: A,
        new: N,
    ) -> Stream<T, N::Axes, N::Data> {
        unwrap(self.try_broadcast(one, new))
    }

    /// As [`broadcast`](Stream::broadcast), but what sizes decide is an error.
    pub fn try_broadcast<A: UnitDim, N: TakesPlaceOf<A, L, D> + KeepsRole<A>>(
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
                "dim `{}` of size {} cannot be broadcast to `{}` = {size}: only one element can",
                from.name, axes[at].size, to.name
            );
            return Err(DimError::Shape { what });
        }
        axes[at] = Axis::new(size, 0);
        let out = Stream::<T, N::Axes, N::Data>::from_shared(self.data.with_axes(0, axes));
        let cost = if Self::is_data(one) { CostClass::CloseToFree } else { CostClass::Free };
        out.note(cost, || format!("broadcast({}, {})", from.name, to.name), || vec![self.shape()]);
        Ok(out)
    }

    /// The stream with the dim `old` under the name `new`; free, and no operation: the hardware knows no names.
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
    /// If `new` already has another size.
    #[track_caller]
    pub fn rename<A: DimRef, N: TakesPlaceOf<A, L, D> + NameOfAxis<A> + KeepsRole<A>>(
        &self,
        old: A,
        new: N,
    ) -> Stream<T, N::Axes, N::Data> {
        unwrap(self.try_rename(old, new))
    }

    /// As [`rename`](Stream::rename), but what sizes decide is an error.
    pub fn try_rename<A: DimRef, N: TakesPlaceOf<A, L, D> + NameOfAxis<A> + KeepsRole<A>>(
        &self,
        old: A,
        new: N,
    ) -> Result<Stream<T, N::Axes, N::Data>, DimError> {
        self.check_given(&old)?;
        new.info().unify(self.data.axes()[Self::position(old)].size, None)?;
        Ok(Stream::from_shared(self.data.clone()))
    }
}

/// A dim that can be another name of the dim `A`: their static sizes do not differ.
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
