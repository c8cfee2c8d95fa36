//! Type-level booleans, dims that may be absent, and conditions on the elements of lists: what rustc computes of sets, roles, layouts, streams and
//! batches is made of these.

use crate::brand::{Brand, Rest};
use crate::role::Undenoted;
use core::marker::PhantomData;
use typenum::{B0, B1};

/// It holds.
#[derive(Debug)]
pub struct True;
/// It does not hold.
#[derive(Debug)]
pub struct False;

/// [`True`] or [`False`]; typenum's bits are booleans too, which combine to these.
pub trait Bool {
    /// Whether it is [`True`].
    const VALUE: bool;
    /// `Y` if it is [`True`], else `N`. (Both are computed: a choice of what to compute next takes a trait of its own.)
    type If<Y, N>;
    /// As [`If`](Bool::If), of brands.
    type Pick<Y: Brand, N: Brand>: Brand;
    /// `Y` if it is [`True`], else [`Nothing`].
    type OrNothing<Y: MaybeDim>: MaybeDim;
    /// [`True`] if this and `V` are.
    type And<V: Bool>: Bool;
    /// [`True`] if this or `V` is.
    type Or<V: Bool>: Bool;
    /// `V` if it is [`True`], else [`True`].
    type Implies<V: Bool>: Bool;
    /// [`True`] if either this or `V` is, but not both.
    type Differs<V: Bool>: Bool;
    /// The other one.
    type Not: Bool;
}

macro_rules! booleans {
    ($($holds:ident $not:ident),*) => {$(
        impl Bool for $holds {
            const VALUE: bool = true;
            type If<Y, N> = Y;
            type Pick<Y: Brand, N: Brand> = Y;
            type OrNothing<Y: MaybeDim> = Y;
            type And<V: Bool> = V;
            type Or<V: Bool> = True;
            type Implies<V: Bool> = V;
            type Differs<V: Bool> = V::Not;
            type Not = False;
        }

        impl Bool for $not {
            const VALUE: bool = false;
            type If<Y, N> = N;
            type Pick<Y: Brand, N: Brand> = N;
            type OrNothing<Y: MaybeDim> = Nothing;
            type And<V: Bool> = False;
            type Or<V: Bool> = V;
            type Implies<V: Bool> = True;
            type Differs<V: Bool> = V;
            type Not = True;
        }
    )*};
}

booleans!(True False, B1 B0);

/// In place of a dim: no dim violates the condition.
pub struct Nothing;

/// The dim that violates a condition, or [`Nothing`].
///
/// The traits that carry messages are implemented for [`True`], not for the dim or the set: rustc reports the trait whose `Self` is that of the
/// method's own bound, and it guesses a parameter of a trait that has only one impl.
pub trait MaybeDim {
    /// [`True`] if this is [`Nothing`], else [`False`].
    type IsNothing: Bool;
    /// The dim itself, or else `Next`.
    type Or<Next: MaybeDim>: MaybeDim;
    /// The role of the dim.
    type Role;
}

impl MaybeDim for Nothing {
    type IsNothing = True;
    type Or<Next: MaybeDim> = Next;
    type Role = Undenoted;
}

impl<D: Brand> MaybeDim for D {
    type IsNothing = False;
    type Or<Next: MaybeDim> = D;
    type Role = D::Role;
}

/// A rest that violates the condition.
impl<B> MaybeDim for Rest<B> {
    type IsNothing = False;
    type Or<Next: MaybeDim> = Rest<B>;
    type Role = Undenoted;
}

/// Whether no dim violates a condition.
pub type NoDim<D> = <D as MaybeDim>::IsNothing;

/// Tests an element of a list against the condition `C`. Conditions are types: [`Within`](super::set::remove::Within),
/// [`StaticSize`](super::size::StaticSize), [`OfRole`](super::role::OfRole) and the like.
pub trait Satisfies<C> {
    /// [`True`] or [`False`].
    type Holds: Bool;
}

/// The condition that `C` does not hold.
pub struct Fails<C>(PhantomData<C>);

#[diagnostic::do_not_recommend]
impl<D: Satisfies<C>, C> Satisfies<Fails<C>> for D {
    type Holds = <D::Holds as Bool>::Not;
}

/// The first element of a list that satisfies the condition `C`.
pub trait FirstWith<C> {
    /// The element, or [`Nothing`].
    type Found: MaybeDim;
}

#[diagnostic::do_not_recommend]
impl<C> FirstWith<C> for () {
    type Found = Nothing;
}

#[diagnostic::do_not_recommend]
impl<H: Satisfies<C> + MaybeDim, T: FirstWith<C>, C> FirstWith<C> for (H, T) {
    type Found = <<H::Holds as Bool>::OrNothing<H> as MaybeDim>::Or<T::Found>;
}
