//! Replacing one dim of a set by another.

use super::list::List;
use super::remove::{Remove, Taking};
use super::union::Merge;
use super::{Bound, Dims, Judged, Nothing, Right, Verdict};
use crate::brand::{Brand, Compare, CompareKeys, Element, Equal, Greater, Less};
use crate::dim::{DimList, DimRef};
use crate::role::KeepsRole;
use crate::size::SameSize;

/// A name for the dim `Old` of the set `S`: `Old` must be bound, the name must not, and their static sizes must not differ.
pub trait NameFor<Old: DimRef, S: Dims>: DimRef {
    /// The set after renaming.
    type Out: Dims;
}

impl<S: Dims, Old: DimRef, New: DimRef> NameFor<Old, S> for New
where
    S::List: Remove<Old::Brand, Out: Taking>,
    Verdict<MissingOld<S, Old>>: Bound<MissingOld<S, Old>, S>,
    WithoutOld<S, Old>: Has<New::Brand>,
    Verdict<<WithoutOld<S, Old> as Has<New::Brand>>::Found>:
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
    Verdict<MissingOld<S, Old>>: Bound<MissingOld<S, Old>, S>,
    WithoutOld<S, Old>: Has<New::Brand>,
    Verdict<<WithoutOld<S, Old> as Has<New::Brand>>::Found>:
        NotYetBound<<WithoutOld<S, Old> as Has<New::Brand>>::Found, S>,
    (New::Brand, ()): Merge<WithoutOld<S, Old>, Out: List>,
{
    type Out = <<(New::Brand, ()) as Merge<WithoutOld<S, Old>>>::Out as List>::Tuple;
}

/// Names for the dims of the tuple `Old`, one for each, in a tensor whose other dims are `X`: none of these has a new name, no name comes twice,
/// and static sizes and roles must not differ. Names can be exchanged, as all old ones go before the new ones come.
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not have a name for each of the dims `{Old}`",
    label = "a tuple of as many dims, 2 to 4, is expected here"
)]
pub trait NamesFor<Old, X: Dims>: DimList {
    /// The set after renaming.
    type Out: Dims;
}

/// The set with the dim `N`, which it must not have.
pub trait Gains<N>: Dims {
    /// The set with the dim.
    type With: Dims;
}

impl<S: Dims, N: DimRef> Gains<N> for S
where
    S::List: Has<N::Brand>,
    Verdict<<S::List as Has<N::Brand>>::Found>: NotYetBound<<S::List as Has<N::Brand>>::Found, S>,
    (N::Brand, ()): Merge<S::List, Out: List>,
{
    type With = <<(N::Brand, ()) as Merge<S::List>>::Out as List>::Tuple;
}

/// The set `S` with the dim `N`.
type With<S, N> = <S as Gains<N>>::With;

macro_rules! names {
    ($($old:ident $new:ident $sets:ty,)*; $out:ty) => {
        #[diagnostic::do_not_recommend]
        impl<X: Dims, $($old: DimRef, $new: DimRef),*> NamesFor<($($old,)*), X> for ($($new,)*)
        where
            ($($new,)*): DimList,
            $($sets: Gains<$new>,)*
            $($new: KeepsRole<$old>,)*
            $(<$old::Brand as Brand>::Size: SameSize<<$new::Brand as Brand>::Size, $old::Brand, $new::Brand>,)*
        {
            type Out = $out;
        }
    };
}

names!(A P X, B Q With<X, P>,; With<With<X, P>, Q>);
names!(A P X, B Q With<X, P>, C U With<With<X, P>, Q>,; With<With<With<X, P>, Q>, U>);
names!(
    A P X, B Q With<X, P>, C U With<With<X, P>, Q>, D V With<With<With<X, P>, Q>, U>,;
    With<With<With<With<X, P>, Q>, U>, V>
);

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
impl<D, S> NotYetBound<D, S> for Right {}

/// A set that `D` can join as a new dim.
pub trait CanGain<D>: Dims {}
impl<S: Dims, D> CanGain<D> for S
where
    S::List: Has<D>,
    Verdict<<S::List as Has<D>>::Found>: NotYetBound<<S::List as Has<D>>::Found, S>,
{
}

/// A new dim is wanted, which the set does not have.
#[diagnostic::on_unimplemented(
    message = "dimension `{D}` is already bound in a tensor with dims `{S}`",
    label = "a dim that the tensor does not have is expected here"
)]
pub trait New<D, S> {}
#[diagnostic::do_not_recommend]
impl<D, S> New<D, S> for Right {}

/// A dim that the set `S` does not have.
pub trait NotIn<S>: DimRef {}
impl<S: Dims, D: DimRef> NotIn<S> for D
where
    S::List: Has<D::Brand>,
    Verdict<<S::List as Has<D::Brand>>::Found>: New<<S::List as Has<D::Brand>>::Found, S>,
{
}

/// Whether a sorted list has the brand `D`.
pub trait Has<D> {
    /// `D`, or [`Nothing`].
    type Found: Judged;
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
    type Found: Judged;
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
