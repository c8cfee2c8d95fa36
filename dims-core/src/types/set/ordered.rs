//! Lists of dims in the order of axes: finding and replacing elements.
//!
//! As with sets of dims, nothing here fails: a mistake yields a type-level boolean, and a trait
//! with a message is implemented only for `True`.

use super::list::{List, NestedPairs};
use super::{Bool, Bound, Dims, False, MaybeDim, Nothing, True};
use crate::types::brand::{Brand, CompareKeys, Equal, Greater, Less, SetElement};
use crate::types::condition::condition;
use crate::types::dim::{DimList, DimRef};

/// One of the axes `L` of a layout or a stream.
pub trait AxisOf<L>: DimRef {
    #[doc(hidden)]
    const SEAL: crate::seal::Seal;
}
impl<A: DimRef, L: Dims> AxisOf<L> for A
where
    L::List: DividesInto<A::Brand, (), Holds: Bound<A::Brand, L>>,
{
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
}

/// Whether an element is the brand `D`.
pub trait SameBrand<D> {
    #[doc(hidden)]
    const SEAL: crate::seal::Seal;
    /// [`True`] or [`False`].
    type Out: Bool;
}

#[diagnostic::do_not_recommend]
impl<A, D> SameBrand<D> for A
where
    A: SetElement<Key: CompareKeys<D::Key, Out: Same<A, D>>>,
    D: Brand,
{
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    type Out = <<A::Key as CompareKeys<D::Key>>::Out as Same<A, D>>::Out;
}

/// Whether `A` and `D` are the same type, given how their keys compare.
pub trait Same<A, D> {
    #[doc(hidden)]
    const SEAL: crate::seal::Seal;
    /// [`True`] or [`False`].
    type Out: Bool;
}
// Two different dims or roles with the same key do not compile.
#[diagnostic::do_not_recommend]
impl<A> Same<A, A> for Equal {
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    type Out = True;
}
#[diagnostic::do_not_recommend]
impl<A, D> Same<A, D> for Less {
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    type Out = False;
}
#[diagnostic::do_not_recommend]
impl<A, D> Same<A, D> for Greater {
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    type Out = False;
}

/// The first of the brands `B` that the list already has or that `B` repeats.
pub trait Shares<B> {
    #[doc(hidden)]
    const SEAL: crate::seal::Seal;
    /// The brand, or [`Nothing`].
    type Found: MaybeDim;
}
impl<X> Shares<()> for X {
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    type Found = Nothing;
}
#[diagnostic::do_not_recommend]
impl<X, H, T> Shares<(H, T)> for X
where
    H: Brand,
    X: DividesInto<H, ()>,
    (H, X): Shares<T>,
{
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    type Found = <<<X as DividesInto<H, ()>>::Holds as Bool>::OrNothing<H> as MaybeDim>::Or<
        <(H, X) as Shares<T>>::Found,
    >;
}

/// The first brand that the dims `P` name twice, or [`Nothing`].
pub type NamedTwice<P> = <() as Shares<<P as DimList>::Brands>>::Found;

/// A list without the brands of another one.
pub trait Minus<B> {
    #[doc(hidden)]
    const SEAL: crate::seal::Seal;
    /// The remaining list.
    type Out: List;
}
impl<X: List> Minus<()> for X {
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    type Out = X;
}
#[diagnostic::do_not_recommend]
impl<X, H, T> Minus<(H, T)> for X
where
    X: DividesInto<H, (), Out: Minus<T>>,
{
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    type Out = <<X as DividesInto<H, ()>>::Out as Minus<T>>::Out;
}

condition! {
    /// The condition that `P` names at least one dim.
    #[diagnostic::on_unimplemented(
        message = "no dims are named here",
        label = "`flatten` and `unflatten` take at least one dim"
    )]
    pub trait NamesSome<P> for False;
}

/// A list in which the brands `B` must be adjacent and in order.
pub trait MergesIn<B, W> {
    #[doc(hidden)]
    const SEAL: crate::seal::Seal;
    /// The list with `W` in place of the brands.
    type Out: List;
    /// [`True`] if the brands are adjacent and in order.
    type Holds: Bool;
}

impl<B, W> MergesIn<B, W> for () {
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    type Out = ();
    type Holds = False;
}

// (An empty `B` is reported elsewhere.)
#[diagnostic::do_not_recommend]
impl<X, T, W> MergesIn<(), W> for (X, T)
where
    (X, T): List,
{
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    type Out = (X, T);
    type Holds = True;
}

#[diagnostic::do_not_recommend]
impl<X, T, B, BT, W> MergesIn<(B, BT), W> for (X, T)
where
    X: SameBrand<B>,
    T: StartsWith<BT> + MergesIn<(B, BT), W>,
    <X::Out as Bool>::If<(W, T::Rest), (X, <T as MergesIn<(B, BT), W>>::Out)>: List,
{
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    type Out = <X::Out as Bool>::If<(W, T::Rest), (X, <T as MergesIn<(B, BT), W>>::Out)>;
    type Holds =
        <<X::Out as Bool>::And<<T as StartsWith<BT>>::Holds> as Bool>::Or<<T as MergesIn<(B, BT), W>>::Holds>;
}

/// A list that must start with the elements of `B`.
pub trait StartsWith<B> {
    #[doc(hidden)]
    const SEAL: crate::seal::Seal;
    /// The remaining elements.
    type Rest;
    /// [`True`] if it starts with them.
    type Holds: Bool;
}
impl<X> StartsWith<()> for X {
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    type Rest = X;
    type Holds = True;
}
#[diagnostic::do_not_recommend]
impl<B, BT> StartsWith<(B, BT)> for () {
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    type Rest = ();
    type Holds = False;
}
#[diagnostic::do_not_recommend]
impl<X: SameBrand<B>, T: StartsWith<BT>, B, BT> StartsWith<(B, BT)> for (X, T) {
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    type Rest = T::Rest;
    type Holds = <X::Out as Bool>::And<T::Holds>;
}

/// A list that must have the brand `W`.
pub trait DividesInto<W, B> {
    #[doc(hidden)]
    const SEAL: crate::seal::Seal;
    /// The list with the brands `B` in place of `W`.
    type Out: List;
    /// The elements after `W`; empty if the list lacks `W`.
    type Behind;
    /// [`True`] if the list has `W`.
    type Holds: Bool;
}

impl<W, B> DividesInto<W, B> for () {
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    type Out = ();
    type Behind = ();
    type Holds = False;
}

#[diagnostic::do_not_recommend]
impl<X, T, W, B> DividesInto<W, B> for (X, T)
where
    X: SameBrand<W>,
    T: DividesInto<W, B>,
    B: NestedPairs,
    <X::Out as Bool>::If<B::Then<T>, (X, T::Out)>: List,
{
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    type Out = <X::Out as Bool>::If<B::Then<T>, (X, T::Out)>;
    type Behind = <X::Out as Bool>::If<T, T::Behind>;
    type Holds = <X::Out as Bool>::Or<T::Holds>;
}
