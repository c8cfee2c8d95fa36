//! Replacing one dim of a set by another.

use super::list::List;
use super::remove::{Found, Removal, Remove};
use super::union::Merge;
use super::{Bool, Bound, Dims, MaybeDim, NoDim, NotYetBound};
use crate::types::brand::Brand;
use crate::types::dim::DimRef;
use crate::types::size::SameSize;

/// A new name for the dim `Old` of the set `S`: `Old` must be bound, no other dim of `S` may have
/// the name, and the static sizes of the old and the new dim must not differ.
pub trait NameFor<Old: DimRef, S: Dims>: DimRef {
    #[doc(hidden)]
    const SEAL: crate::seal::Seal;
    /// The set after renaming.
    type Out: Dims;
}

impl<S: Dims, Old: DimRef, New: DimRef> NameFor<Old, S> for New
where
    S::List: Remove<Old::Brand, Out: Removal>,
    NoDim<MissingOld<S, Old>>: Bound<MissingOld<S, Old>, S>,
    WithoutOld<S, Old>: Remove<New::Brand, Out: Removal>,
    NoDim<OtherThanOld<S, Old, New>>: NotYetBound<OtherThanOld<S, Old, New>, S>,
    (New::Brand, ()): Merge<WithoutOld<S, Old>, Out: List>,
    <Old::Brand as Brand>::Size: SameSize<<New::Brand as Brand>::Size, Old::Brand, New::Brand>,
{
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    type Out = <<(New::Brand, ()) as Merge<WithoutOld<S, Old>>>::Out as List>::Tuple;
}

/// A name for a part of the dim `Old` of the set `S`: like [`NameFor`], but with any size.
pub trait PartOf<Old: DimRef, S: Dims>: DimRef {
    #[doc(hidden)]
    const SEAL: crate::seal::Seal;
    /// The set with the part in place of the dim.
    type Out: Dims;
}

impl<S: Dims, Old: DimRef, New: DimRef> PartOf<Old, S> for New
where
    S::List: Remove<Old::Brand, Out: Removal>,
    NoDim<MissingOld<S, Old>>: Bound<MissingOld<S, Old>, S>,
    WithoutOld<S, Old>: Remove<New::Brand, Out: Removal>,
    NoDim<OtherThanOld<S, Old, New>>: NotYetBound<OtherThanOld<S, Old, New>, S>,
    (New::Brand, ()): Merge<WithoutOld<S, Old>, Out: List>,
{
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    type Out = <<(New::Brand, ()) as Merge<WithoutOld<S, Old>>>::Out as List>::Tuple;
}

/// The result of removing the dim `Old` from the set `S`.
type TakingOld<S, Old> = <<S as Dims>::List as Remove<<Old as DimRef>::Brand>>::Out;
/// The list that is left.
type WithoutOld<S, Old> = <TakingOld<S, Old> as Removal>::Left;
/// `Old` if it was missing, otherwise [`Nothing`](super::Nothing).
type MissingOld<S, Old> = <TakingOld<S, Old> as Removal>::Missing;

/// `New` if a dim other than `Old` has that name, otherwise [`Nothing`](super::Nothing). Also
/// `Nothing` if `Old` is missing, so that only the missing dim is reported.
type OtherThanOld<S, Old, New> = <NoDim<MissingOld<S, Old>> as Bool>::OrNothing<NamedAlike<S, Old, New>>;
/// `New` if the set without `Old` has it, otherwise [`Nothing`](super::Nothing).
type NamedAlike<S, Old, New> =
    <<<WithoutOld<S, Old> as Remove<<New as DimRef>::Brand>>::Out as Removal>::Had as Bool>::OrNothing<
        <New as DimRef>::Brand,
    >;

/// A set that `D` can join as a new dim.
pub trait CanGain<D>: Dims {
    #[doc(hidden)]
    const SEAL: crate::seal::Seal;
}
impl<S: Dims, D: MaybeDim> CanGain<D> for S
where
    S::List: Remove<D, Out: Removal>,
    NoDim<Found<D, S>>: NotYetBound<Found<D, S>, S>,
{
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
}

/// A dim that the set `S` does not have.
pub trait NotIn<S>: DimRef {
    #[doc(hidden)]
    const SEAL: crate::seal::Seal;
}
impl<S: Dims, D: DimRef> NotIn<S> for D
where
    S::List: Remove<D::Brand, Out: Removal>,
    NoDim<Found<D::Brand, S>>: NotYetBound<Found<D::Brand, S>, S>,
{
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
}
