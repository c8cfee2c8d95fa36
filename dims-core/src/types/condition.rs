//! Type-level booleans, and dims that may be absent: conditions on sets, roles, layouts, streams and batches, which rustc computes.

use crate::brand::Brand;

/// It holds.
#[derive(Debug)]
pub struct True;
/// It does not hold.
#[derive(Debug)]
pub struct False;

/// [`True`] or [`False`].
pub trait Bool {
    /// Whether it is [`True`].
    const VALUE: bool;
    /// `Y` if it is [`True`], else `N`.
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

impl Bool for True {
    const VALUE: bool = true;
    type Pick<Y: Brand, N: Brand> = Y;
    type OrNothing<Y: MaybeDim> = Y;
    type And<V: Bool> = V;
    type Or<V: Bool> = True;
    type Implies<V: Bool> = V;
    type Differs<V: Bool> = V::Not;
    type Not = False;
}

impl Bool for False {
    const VALUE: bool = false;
    type Pick<Y: Brand, N: Brand> = N;
    type OrNothing<Y: MaybeDim> = Nothing;
    type And<V: Bool> = False;
    type Or<V: Bool> = V;
    type Implies<V: Bool> = True;
    type Differs<V: Bool> = V;
    type Not = True;
}

/// In place of a dim: no dim violates the condition.
pub struct Nothing;

/// The dim that violates a condition, or [`Nothing`].
///
/// The traits that carry messages are implemented for [`True`], not for the dim or the set: rustc reports the trait whose `Self` is that of the
/// method's own bound, and it guesses a parameter of a trait that has only one impl.
pub trait MaybeDim {
    /// [`True`] if this is [`Nothing`], else [`False`].
    type IsNothing;
    /// The dim itself, or else `Next`.
    type Or<Next: MaybeDim>: MaybeDim;
}

impl MaybeDim for Nothing {
    type IsNothing = True;
    type Or<Next: MaybeDim> = Next;
}

impl<D: Brand> MaybeDim for D {
    type IsNothing = False;
    type Or<Next: MaybeDim> = D;
}

/// Whether no dim violates a condition.
pub type NoDim<D> = <D as MaybeDim>::IsNothing;
