//! Removing dims from a set: what reductions and `order` do.

use super::list::List;
use super::{Bound, Dims, Judged, NamedOnce, Nothing, Verdict};
use crate::brand::{Brand, Compare, CompareKeys, Element, Equal, Greater, Less};
use crate::dim::DimList;

/// Dims, one or a tuple of them, that a tensor with the dims `S` has: each is bound, and named once.
///
/// The bound of everything that works along dims of a tensor: reductions, `softmax`, `index`. It is a bound of the dims
/// that a method is given, not of the tensor's, because rustc then reports it without quoting the method's signature.
pub trait DimsOf<S: Dims>: DimList {
    /// The other dims of `S`.
    type Others: Dims;
}

impl<S: Dims, D: DimList> DimsOf<S> for D
where
    S::List: RemoveAll<D::Brands, S, Out: List>,
    Verdict<<S::List as RemoveAll<D::Brands, S>>::Missing>:
        Bound<<S::List as RemoveAll<D::Brands, S>>::Missing, S>,
    Verdict<<S::List as RemoveAll<D::Brands, S>>::Twice>:
        NamedOnce<<S::List as RemoveAll<D::Brands, S>>::Twice, D>,
{
    type Others = <Verdict<<S::List as RemoveAll<D::Brands, S>>::Missing> as Bound<
        <S::List as RemoveAll<D::Brands, S>>::Missing,
        S,
    >>::Then<<<S::List as RemoveAll<D::Brands, S>>::Out as List>::Tuple>;
}

/// Removes one brand from a sorted list.
pub trait Remove<D> {
    /// The list without it.
    type Out;
    /// [`Nothing`], or `D` if the list did not have it.
    type Missing: Judged;
}

#[diagnostic::do_not_recommend]
impl<D: Brand> Remove<D> for () {
    type Out = ();
    type Missing = D;
}

#[diagnostic::do_not_recommend]
impl<D: Brand, H: Element, T> Remove<D> for (H, T)
where
    D::Key: CompareKeys<H::Key>,
    Compare<D, H>: RemoveStep<D, H, T>,
{
    type Out = <Compare<D, H> as RemoveStep<D, H, T>>::Out;
    type Missing = <Compare<D, H> as RemoveStep<D, H, T>>::Missing;
}

/// Stops at the brand, or at an element behind it, or goes on.
pub trait RemoveStep<D, H, T> {
    /// The list without the brand.
    type Out;
    /// [`Nothing`], or `D`.
    type Missing: Judged;
}

#[diagnostic::do_not_recommend]
impl<D: Brand, H, T> RemoveStep<D, H, T> for Less {
    type Out = (H, T);
    type Missing = D;
}

#[diagnostic::do_not_recommend]
impl<D, T> RemoveStep<D, D, T> for Equal {
    type Out = T;
    type Missing = Nothing;
}

#[diagnostic::do_not_recommend]
impl<D, H, T: Remove<D>> RemoveStep<D, H, T> for Greater {
    type Out = (H, T::Out);
    type Missing = T::Missing;
}

/// Removes each brand of the list `L` from a sorted list that was that of the set `S` at first.
pub trait RemoveAll<L, S> {
    /// The list without them.
    type Out;
    /// The first brand that `S` does not have, or [`Nothing`].
    type Missing: Judged;
    /// The first brand that `L` names twice, or [`Nothing`].
    type Twice: Judged;
}

#[diagnostic::do_not_recommend]
impl<S, X> RemoveAll<(), S> for X {
    type Out = X;
    type Missing = Nothing;
    type Twice = Nothing;
}

#[diagnostic::do_not_recommend]
impl<S, X, H, T> RemoveAll<(H, T), S> for X
where
    X: Remove<H>,
    X::Missing: RemoveNext<X::Out, T, S>,
{
    type Out = <X::Missing as RemoveNext<X::Out, T, S>>::Out;
    type Missing = <X::Missing as RemoveNext<X::Out, T, S>>::Missing;
    type Twice = <X::Missing as RemoveNext<X::Out, T, S>>::Twice;
}

/// Goes on after [`Nothing`] was missing; else finds out whether the missing brand was named twice or never bound.
pub trait RemoveNext<X, T, S> {
    /// The list without the brands.
    type Out;
    /// See [`RemoveAll::Missing`].
    type Missing: Judged;
    /// See [`RemoveAll::Twice`].
    type Twice: Judged;
}

#[diagnostic::do_not_recommend]
impl<X: RemoveAll<T, S>, T, S> RemoveNext<X, T, S> for Nothing {
    type Out = X::Out;
    type Missing = X::Missing;
    type Twice = X::Twice;
}

#[diagnostic::do_not_recommend]
impl<D: Brand, X, T, S: Dims> RemoveNext<X, T, S> for D
where
    S::List: Remove<D>,
    <S::List as Remove<D>>::Missing: NeverBound<D>,
{
    type Out = X;
    type Missing = <S::List as Remove<D>>::Missing;
    type Twice = <<S::List as Remove<D>>::Missing as NeverBound<D>>::Twice;
}

/// A brand that the original set has was named twice.
pub trait NeverBound<D> {
    /// [`Nothing`], or `D`.
    type Twice: Judged;
}

#[diagnostic::do_not_recommend]
impl<D: Brand> NeverBound<D> for Nothing {
    type Twice = D;
}

#[diagnostic::do_not_recommend]
impl<D: Brand> NeverBound<D> for D {
    type Twice = Nothing;
}
