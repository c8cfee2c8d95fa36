//! Replacing one dim of a set by another.

use super::list::List;
use super::remove::{Remove, Taking};
use super::union::Merge;
use super::{Bound, Dims, MaybeDim, NoDim, Nothing, True};
use crate::brand::{Brand, Compare, CompareKeys, Element, Equal, Greater, Less};
use crate::dim::DimRef;
use crate::size::SameSize;

/// A name for the dim `Old` of the set `S`: `Old` must be bound, the name must not, and their static sizes must not differ.
pub trait NameFor<Old: DimRef, S: Dims>: DimRef {
    /// The set after renaming.
    type Out: Dims;
}

impl<S: Dims, Old: DimRef, New: DimRef> NameFor<Old, S> for New
where
    S::List: Remove<Old::Brand, Out: Taking>,
    NoDim<MissingOld<S, Old>>: Bound<MissingOld<S, Old>, S>,
    WithoutOld<S, Old>: Has<New::Brand>,
    NoDim<<WithoutOld<S, Old> as Has<New::Brand>>::Found>:
        NotYetBound<<WithoutOld<S, Old> as Has<New::Brand>>::Found, S>,
    (New::Brand, ()): Merge<WithoutOld<S, Old>, Out: List>,
    <Old::Brand as Brand>::Size: SameSize<<New::Brand as Brand>::Size, Old::Brand, New::Brand>,
{
    type Out = <<(New::Brand, ()) as Merge<WithoutOld<S, Old>>>::Out as List>::Tuple;
}

/// A name for a part of the dim `Old` of the set `S`: as [`NameFor`], but of any size.
pub trait PartOf<Old: DimRef, S: Dims>: DimRef {
    /// The set with the part in the place of the dim.
    type Out: Dims;
}

impl<S: Dims, Old: DimRef, New: DimRef> PartOf<Old, S> for New
where
    S::List: Remove<Old::Brand, Out: Taking>,
    NoDim<MissingOld<S, Old>>: Bound<MissingOld<S, Old>, S>,
    WithoutOld<S, Old>: Has<New::Brand>,
    NoDim<<WithoutOld<S, Old> as Has<New::Brand>>::Found>:
        NotYetBound<<WithoutOld<S, Old> as Has<New::Brand>>::Found, S>,
    (New::Brand, ()): Merge<WithoutOld<S, Old>, Out: List>,
{
    type Out = <<(New::Brand, ()) as Merge<WithoutOld<S, Old>>>::Out as List>::Tuple;
}

/// What came of taking the dim `Old` out of the set `S`.
type TakingOld<S, Old> = <<S as Dims>::List as Remove<<Old as DimRef>::Brand>>::Out;
/// The list that is left.
type WithoutOld<S, Old> = <TakingOld<S, Old> as Taking>::Left;
/// `Old`, if it was not there.
type MissingOld<S, Old> = <TakingOld<S, Old> as Taking>::Missing;

/// `D` is not yet a dim of the set.
#[diagnostic::on_unimplemented(
    message = "dimension `{D}` is already bound in a tensor with dims `{S}`",
    label = "this tensor has `{D}` already",
    note = "a tensor has a dim once: choose another name"
)]
pub trait NotYetBound<D, S> {}
#[diagnostic::do_not_recommend]
impl<D, S> NotYetBound<D, S> for True {}

/// A set that `D` can join as a new dim.
pub trait CanGain<D>: Dims {}
impl<S: Dims, D> CanGain<D> for S
where
    S::List: Has<D>,
    NoDim<<S::List as Has<D>>::Found>: NotYetBound<<S::List as Has<D>>::Found, S>,
{
}

/// A new dim is wanted, which the set does not have.
#[diagnostic::on_unimplemented(
    message = "dimension `{D}` is already bound in a tensor with dims `{S}`",
    label = "a dim that the tensor does not have is expected here"
)]
pub trait New<D, S> {}
#[diagnostic::do_not_recommend]
impl<D, S> New<D, S> for True {}

/// A dim that the set `S` does not have.
pub trait NotIn<S>: DimRef {}
impl<S: Dims, D: DimRef> NotIn<S> for D
where
    S::List: Has<D::Brand>,
    NoDim<<S::List as Has<D::Brand>>::Found>: New<<S::List as Has<D::Brand>>::Found, S>,
{
}

/// Whether a sorted list has the brand `D`.
pub trait Has<D> {
    /// `D`, or [`Nothing`].
    type Found: MaybeDim;
}

#[diagnostic::do_not_recommend]
impl<D> Has<D> for () {
    type Found = Nothing;
}

#[diagnostic::do_not_recommend]
impl<D: Brand, H: Element, T> Has<D> for (H, T)
where
    D::Key: CompareKeys<H::Key>,
    Compare<D, H>: HasStep<D, H, T>,
{
    type Found = <Compare<D, H> as HasStep<D, H, T>>::Found;
}

/// One step of [`Has`].
pub trait HasStep<D, H, T> {
    /// `D`, or [`Nothing`].
    type Found: MaybeDim;
}

#[diagnostic::do_not_recommend]
impl<D, H, T> HasStep<D, H, T> for Less {
    type Found = Nothing;
}

#[diagnostic::do_not_recommend]
impl<D: Brand, T> HasStep<D, D, T> for Equal {
    type Found = D;
}

#[diagnostic::do_not_recommend]
impl<D, H, T: Has<D>> HasStep<D, H, T> for Greater {
    type Found = T::Found;
}
