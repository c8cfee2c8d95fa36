//! Lists of dims in the order of axes: which one is where, others in its place, and choices by type-level booleans.
//!
//! As with sets of dims, nothing here fails: a mistake yields a type-level boolean, and one trait with a message is implemented for `True` alone.

use super::list::List;
use super::{Bool, False, MaybeDim, Nothing, True};
use crate::brand::{Brand, CompareKeys, Element as InSet, Equal, Greater, Less};
use crate::dim::DimList;

/// Whether a brand is `D`.
pub trait SameBrand<D> {
    /// [`True`] or [`False`].
    type Out: Bool;
}

#[diagnostic::do_not_recommend]
impl<A, D> SameBrand<D> for A
where
    A: Brand<Key: CompareKeys<D::Key, Out: SameBrandStep<A, D>>>,
    D: Brand,
{
    type Out = <<A::Key as CompareKeys<D::Key>>::Out as SameBrandStep<A, D>>::Out;
}

/// One step of [`SameBrand`].
pub trait SameBrandStep<A, D> {
    /// [`True`] or [`False`].
    type Out: Bool;
}
// Two dims with one key never pass for one another.
#[diagnostic::do_not_recommend]
impl<A> SameBrandStep<A, A> for Equal {
    type Out = True;
}
#[diagnostic::do_not_recommend]
impl<A, D> SameBrandStep<A, D> for Less {
    type Out = False;
}
#[diagnostic::do_not_recommend]
impl<A, D> SameBrandStep<A, D> for Greater {
    type Out = False;
}

/// The first of the brands `B` that a list has already, or that `B` names twice.
pub trait Shares<B> {
    /// The brand, or [`Nothing`].
    type Found: MaybeDim;
}
impl<X> Shares<()> for X {
    type Found = Nothing;
}
#[diagnostic::do_not_recommend]
impl<X, H, T> Shares<(H, T)> for X
where
    H: Brand,
    X: DividesInto<H, (), Holds: Bool>,
    (H, X): Shares<T>,
{
    type Found = <<<X as DividesInto<H, ()>>::Holds as Bool>::OrNothing<H> as MaybeDim>::Or<
        <(H, X) as Shares<T>>::Found,
    >;
}

/// The first brand that the dims `P` name twice, or [`Nothing`].
pub type NamedTwice<P> = <() as Shares<<P as DimList>::Brands>>::Found;

/// A list without the brands of another one.
pub trait Minus<B> {
    /// What is left.
    type Out: List;
}
impl<X: List> Minus<()> for X {
    type Out = X;
}
#[diagnostic::do_not_recommend]
impl<X, H, T> Minus<(H, T)> for X
where
    X: DividesInto<H, (), Out: Minus<T>>,
{
    type Out = <<X as DividesInto<H, ()>>::Out as Minus<T>>::Out;
}

/// Whether a list is empty.
pub trait IsNone {
    /// [`True`] or [`False`].
    type Out: Bool;
}
impl IsNone for () {
    type Out = True;
}
#[diagnostic::do_not_recommend]
impl<H, T> IsNone for (H, T) {
    type Out = False;
}

/// The condition that `P` names at least one dim.
#[diagnostic::on_unimplemented(
    message = "no dims are named here",
    label = "`flatten` and `unflatten` take at least one dim"
)]
pub trait NamesSome<P> {}
#[diagnostic::do_not_recommend]
impl<P> NamesSome<P> for False {}

/// A list that has a last brand.
#[diagnostic::on_unimplemented(
    message = "no dims are named here",
    label = "`unflatten` takes at least one dim"
)]
pub trait LastPart {
    /// The last one.
    type Out: Brand;
}
#[diagnostic::do_not_recommend]
impl<H: Brand> LastPart for (H, ()) {
    type Out = H;
}
#[diagnostic::do_not_recommend]
impl<H, G, T> LastPart for (H, (G, T))
where
    (G, T): LastPart,
{
    type Out = <(G, T) as LastPart>::Out;
}

/// A list in which the brands `B` are to stand one behind the other.
pub trait MergesIn<B, W> {
    /// The list with `W` in their place.
    type Out: List;
    /// [`True`], or [`False`] if they do not stand so.
    type Holds;
}

impl<B, W> MergesIn<B, W> for () {
    type Out = ();
    type Holds = False;
}

// (That no brand is named is said elsewhere.)
#[diagnostic::do_not_recommend]
impl<X, T, W> MergesIn<(), W> for (X, T)
where
    (X, T): List,
{
    type Out = (X, T);
    type Holds = True;
}

#[diagnostic::do_not_recommend]
impl<X, T, B, BT, W> MergesIn<(B, BT), W> for (X, T)
where
    X: InSet,
    B: Brand,
    X::Key: CompareKeys<B::Key, Out: MergeInOrder<X, T, (B, BT), W>>,
{
    type Out = <<X::Key as CompareKeys<B::Key>>::Out as MergeInOrder<X, T, (B, BT), W>>::Out;
    type Holds = <<X::Key as CompareKeys<B::Key>>::Out as MergeInOrder<X, T, (B, BT), W>>::Holds;
}

/// One step of [`MergesIn`].
pub trait MergeInOrder<X, T, B, W> {
    /// See [`MergesIn`].
    type Out: List;
    /// See [`MergesIn`].
    type Holds;
}
#[diagnostic::do_not_recommend]
impl<X, T, BT, W> MergeInOrder<X, T, (X, BT), W> for Equal
where
    T: StartsWith<BT>,
    (W, T::Rest): List,
{
    type Out = (W, T::Rest);
    type Holds = T::Holds;
}

/// A list whose first elements are to be those of `B`.
pub trait StartsWith<B> {
    /// The others.
    type Rest;
    /// [`True`], or [`False`] if they are not.
    type Holds;
}
impl<X> StartsWith<()> for X {
    type Rest = X;
    type Holds = True;
}
#[diagnostic::do_not_recommend]
impl<B, BT> StartsWith<(B, BT)> for () {
    type Rest = ();
    type Holds = False;
}
#[diagnostic::do_not_recommend]
impl<X, T, B, BT> StartsWith<(B, BT)> for (X, T)
where
    X: InSet,
    B: Brand,
    X::Key: CompareKeys<B::Key, Out: StartStep<X, T, (B, BT)>>,
{
    type Rest = <<X::Key as CompareKeys<B::Key>>::Out as StartStep<X, T, (B, BT)>>::Rest;
    type Holds = <<X::Key as CompareKeys<B::Key>>::Out as StartStep<X, T, (B, BT)>>::Holds;
}

/// One step of [`StartsWith`].
pub trait StartStep<X, T, B> {
    /// See [`StartsWith`].
    type Rest;
    /// See [`StartsWith`].
    type Holds;
}
#[diagnostic::do_not_recommend]
impl<X, T: StartsWith<BT>, BT> StartStep<X, T, (X, BT)> for Equal {
    type Rest = T::Rest;
    type Holds = T::Holds;
}

/// A list that is to have the brand `W`.
pub trait DividesInto<W, B> {
    /// The list with the brands `B` in its place.
    type Out: List;
    /// [`True`], or [`False`] if it has not.
    type Holds;
}

impl<W, B> DividesInto<W, B> for () {
    type Out = ();
    type Holds = False;
}

#[diagnostic::do_not_recommend]
impl<X, T, W, B> DividesInto<W, B> for (X, T)
where
    X: InSet,
    W: Brand,
    X::Key: CompareKeys<W::Key, Out: DivideStep<X, T, W, B>>,
{
    type Out = <<X::Key as CompareKeys<W::Key>>::Out as DivideStep<X, T, W, B>>::Out;
    type Holds = <<X::Key as CompareKeys<W::Key>>::Out as DivideStep<X, T, W, B>>::Holds;
}

/// One step of [`DividesInto`].
pub trait DivideStep<X, T, W, B> {
    /// See [`DividesInto`].
    type Out: List;
    /// See [`DividesInto`].
    type Holds;
}
#[diagnostic::do_not_recommend]
impl<X, T, B: InFrontOf<T, Out: List>> DivideStep<X, T, X, B> for Equal {
    type Out = B::Out;
    type Holds = True;
}

macro_rules! further {
    ($($order:ident)*) => {$(
        #[diagnostic::do_not_recommend]
        impl<X, T, B, W> MergeInOrder<X, T, B, W> for $order
        where
            T: MergesIn<B, W>,
            (X, T::Out): List,
        {
            type Out = (X, T::Out);
            type Holds = T::Holds;
        }

        #[diagnostic::do_not_recommend]
        impl<X, T, B> StartStep<X, T, B> for $order {
            type Rest = ();
            type Holds = False;
        }

        #[diagnostic::do_not_recommend]
        impl<X, T, W, B> DivideStep<X, T, W, B> for $order
        where
            T: DividesInto<W, B>,
            (X, T::Out): List,
        {
            type Out = (X, T::Out);
            type Holds = T::Holds;
        }
    )*};
}

further!(Less Greater);

/// A list with another one behind it.
pub trait InFrontOf<T> {
    /// Both.
    type Out;
}
impl<T> InFrontOf<T> for () {
    type Out = T;
}
#[diagnostic::do_not_recommend]
impl<B, BT: InFrontOf<T>, T> InFrontOf<T> for (B, BT) {
    type Out = (B, BT::Out);
}
