//! Replacing one dim of a set by another.

use super::list::List;
use super::remove::Remove;
use super::union::Merge;
use super::{Bound, Dims, Nothing};
use crate::brand::{Brand, Compare, CompareKeys, Element, Equal, Greater, Less};
use crate::dim::DimRef;
use crate::size::SameSize;

/// The set with `Old` replaced by `New`; `Old` must be bound, `New` must not, and their static sizes must not differ.
pub trait Rename<Old: DimRef, New: DimRef>: Dims {
    /// The set after renaming.
    type Out: Dims;
}

impl<S: Dims, Old: DimRef, New: DimRef> Rename<Old, New> for S
where
    S::List: Remove<Old::Brand>,
    S: Bound<<S::List as Remove<Old::Brand>>::Missing>,
    <S::List as Remove<Old::Brand>>::Out: Has<New::Brand>,
    S: Free<<<S::List as Remove<Old::Brand>>::Out as Has<New::Brand>>::Found>,
    (New::Brand, ()): Merge<<S::List as Remove<Old::Brand>>::Out>,
    <Old::Brand as Brand>::Size: SameSize<<New::Brand as Brand>::Size>,
{
    type Out = <<(New::Brand, ()) as Merge<<S::List as Remove<Old::Brand>>::Out>>::Out as List>::Tuple;
}

/// `D` is not yet a dim of the set.
#[diagnostic::on_unimplemented(
    message = "dimension `{D}` is already bound in a tensor with dims `{Self}`",
    label = "this tensor has `{D}` already",
    note = "a tensor has a dim once: choose another name"
)]
pub trait Free<D> {}
#[diagnostic::do_not_recommend]
impl<S> Free<Nothing> for S {}

/// A set that `D` can join as a new dim.
#[diagnostic::on_unimplemented(
    message = "dimension `{D}` is already bound in a tensor with dims `{Self}`",
    label = "this tensor has `{D}` already",
    note = "a tensor has a dim once: choose another name"
)]
pub trait CanGain<D>: Dims {}
#[diagnostic::do_not_recommend]
impl<S: Dims<List: Has<D, Found = Nothing>>, D> CanGain<D> for S {}

/// Whether a sorted list has the brand `D`.
pub trait Has<D> {
    /// `D`, or [`Nothing`].
    type Found;
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
    type Found;
}

#[diagnostic::do_not_recommend]
impl<D, H, T> HasStep<D, H, T> for Less {
    type Found = Nothing;
}

#[diagnostic::do_not_recommend]
impl<D, T> HasStep<D, D, T> for Equal {
    type Found = D;
}

#[diagnostic::do_not_recommend]
impl<D, H, T: Has<D>> HasStep<D, H, T> for Greater {
    type Found = T::Found;
}
