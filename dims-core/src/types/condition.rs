//! Type-level booleans, dims that may be absent, and conditions on list elements.

use crate::types::brand::{Brand, Rest};
use crate::types::role::Undenoted;
use core::marker::PhantomData;
use typenum::{B0, B1};

/// Declares conditions: traits with an error message, each implemented only for [`True`] or only
/// for [`False`].
///
/// The traits are sealed, because plans trust them: if a dim could be named twice, its axis would
/// be read twice. The optional `type Then<X>;` is `X` if the condition holds.
macro_rules! condition {
    (
        $(#[$about:meta])*
        pub trait $name:ident<$($parameter:ident),*> for $holds:ident;
    ) => {
        $(#[$about])*
        pub trait $name<$($parameter),*> {
            #[doc(hidden)]
            const SEAL: crate::seal::Seal;
        }
        #[diagnostic::do_not_recommend]
        impl<$($parameter),*> $name<$($parameter),*> for $crate::types::condition::$holds {
            const SEAL: crate::seal::Seal = crate::seal::SEAL;
        }
    };
    (
        $(#[$about:meta])*
        pub trait $name:ident<$($parameter:ident),*> for $holds:ident {
            $(#[$about_then:meta])*
            type $then:ident<$x:ident>;
        }
    ) => {
        $(#[$about])*
        pub trait $name<$($parameter),*> {
            #[doc(hidden)]
            const SEAL: crate::seal::Seal;
            $(#[$about_then])*
            type $then<$x>;
        }
        #[diagnostic::do_not_recommend]
        impl<$($parameter),*> $name<$($parameter),*> for $crate::types::condition::$holds {
            const SEAL: crate::seal::Seal = crate::seal::SEAL;
            type $then<$x> = $x;
        }
    };
}

pub(crate) use condition;

/// The condition holds.
#[derive(Debug)]
pub struct True;
/// The condition does not hold.
#[derive(Debug)]
pub struct False;

/// [`True`], [`False`] or a bit of typenum.
pub trait Bool {
    #[doc(hidden)]
    const SEAL: crate::seal::Seal;
    /// Whether this is [`True`].
    const VALUE: bool;
    /// `Y` if this is [`True`], otherwise `N`. Both are evaluated; to evaluate only one, use a
    /// trait.
    type If<Y, N>;
    /// [`If`](Bool::If) for brands.
    type Pick<Y: Brand, N: Brand>: Brand;
    /// `Y` if this is [`True`], otherwise [`Nothing`].
    type OrNothing<Y: MaybeDim>: MaybeDim;
    /// [`True`] if this and `V` are both [`True`].
    type And<V: Bool>: Bool;
    /// [`True`] if this or `V` is [`True`].
    type Or<V: Bool>: Bool;
    /// `V` if this is [`True`], otherwise [`True`].
    type Implies<V: Bool>: Bool;
    /// [`True`] if exactly one of this and `V` is [`True`].
    type Differs<V: Bool>: Bool;
    /// The negation.
    type Not: Bool;
}

macro_rules! booleans {
    ($($holds:ident $not:ident),*) => {$(
        impl Bool for $holds {
            const SEAL: crate::seal::Seal = crate::seal::SEAL;
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
            const SEAL: crate::seal::Seal = crate::seal::SEAL;
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

/// Stands for a missing dim.
pub struct Nothing;

/// A dim, such as the first that violates a condition, or [`Nothing`].
///
/// The traits that carry messages are implemented for [`True`] or [`False`], not for the dim or the
/// set, for two reasons. If a failed bound has the same `Self` as the method's own bound, rustc
/// reports the method's bound instead. And if a trait has only one impl, rustc infers the trait's
/// parameters from that impl.
pub trait MaybeDim {
    #[doc(hidden)]
    const SEAL: crate::seal::Seal;
    /// [`True`] if this is [`Nothing`], otherwise [`False`].
    type IsMissing: Bool;
    /// The dim itself. For [`Nothing`], `Next`.
    type Or<Next: MaybeDim>: MaybeDim;
    /// The role of the dim, or [`Undenoted`].
    type Role;
}

impl MaybeDim for Nothing {
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    type IsMissing = True;
    type Or<Next: MaybeDim> = Next;
    type Role = Undenoted;
}

impl<D: Brand> MaybeDim for D {
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    type IsMissing = False;
    type Or<Next: MaybeDim> = D;
    type Role = D::Role;
}

impl<B> MaybeDim for Rest<B> {
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    type IsMissing = False;
    type Or<Next: MaybeDim> = Rest<B>;
    type Role = Undenoted;
}

/// Whether `D` is [`Nothing`].
pub type NoDim<D> = <D as MaybeDim>::IsMissing;

/// Whether a type satisfies the condition `C`. Here, conditions are types, not traits. For example,
/// [`Within`](super::set::remove::Within) and [`StaticSize`](super::size::StaticSize) apply to a
/// brand, and [`Refines`](super::role::Refines) applies to the roles on a path.
pub trait Satisfies<C> {
    #[doc(hidden)]
    const SEAL: crate::seal::Seal;
    /// [`True`] or [`False`].
    type Holds: Bool;
}

/// The condition that `C` does not hold.
pub struct Fails<C>(PhantomData<C>);

#[diagnostic::do_not_recommend]
impl<D: Satisfies<C>, C> Satisfies<Fails<C>> for D {
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    type Holds = <D::Holds as Bool>::Not;
}

/// Implemented for no type. With one impl of `Trait<True>` for all `T: Bound` and another of
/// `Trait<False>` for all `T: Never`, rustc must check the bounds before it chooses an impl. The
/// associated types of a type without the bound are then unknown, which prevents further errors.
pub trait Never {
    #[doc(hidden)]
    const SEAL: crate::seal::Seal;
}

/// The first element of a list that satisfies the condition `C`.
pub trait FirstWith<C> {
    #[doc(hidden)]
    const SEAL: crate::seal::Seal;
    /// The element, or [`Nothing`].
    type Found: MaybeDim;
}

#[diagnostic::do_not_recommend]
impl<C> FirstWith<C> for () {
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    type Found = Nothing;
}

#[diagnostic::do_not_recommend]
impl<H: Satisfies<C> + MaybeDim, T: FirstWith<C>, C> FirstWith<C> for (H, T) {
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    type Found = <<H::Holds as Bool>::OrNothing<H> as MaybeDim>::Or<T::Found>;
}
