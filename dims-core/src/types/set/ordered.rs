//! Lists of dims in the order of axes: finding, replacing and removing elements.
//!
//! As with sets of dims, a mistake does not make these operations fail: they yield a type-level
//! boolean or a dim, and a trait with a message is implemented only for `True`, or only for
//! `False`.

use super::list::{List, NestedPairs};
use super::{Bool, Bound, Dims, False, MaybeDim, NamedOnce, NoDim, NotYetBound, Nothing, Satisfies, True};
use crate::types::brand::{Brand, CompareKeys, Equal, Greater, Less, SetElement};
use crate::types::condition::condition;
use crate::types::dim::{DimList, DimRef};
use core::marker::PhantomData;

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

/// Dims that can replace the dim `A` among the axes `L`: at least one, each named once, and none of
/// them another axis of `L`. [`AxisOf`] checks that `A` is an axis.
pub trait InPlaceOf<A, L>: DimList {
    #[doc(hidden)]
    const SEAL: crate::seal::Seal;
    /// The axes after the replacement.
    type Axes: Dims;
}
impl<P, A, L> InPlaceOf<A, L> for P
where
    P: DimList<Brands: NestedPairs<IsEmpty: NamesSome<P>>>,
    A: DimRef,
    L: Dims<List: DividesInto<A::Brand, P::Brands> + DividesInto<A::Brand, ()>>,
    (): Shares<P::Brands>,
    Replaced<L, A, ()>: Shares<P::Brands>,
    // If `A` is not an axis, only `AxisOf` reports it. If a dim is named twice, only that is
    // reported.
    AxisImplies<L, A, NoDim<NamedTwice<P>>>: NamedOnce<NamedTwice<P>, P>,
    AxisImplies<L, A, <NoDim<NamedTwice<P>> as Bool>::Implies<NoDim<AxisBeside<L, A, P>>>>:
        NotYetBound<AxisBeside<L, A, P>, L>,
{
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    type Axes = <Replaced<L, A, P::Brands> as List>::Tuple;
}

/// The dims `L` as nested pairs, with the dim `A` replaced by the dims `B`, also nested pairs.
pub type Replaced<L, A, B> = <<L as Dims>::List as DividesInto<<A as DimRef>::Brand, B>>::Out;

/// The condition `V` if the dim `A` is one of the axes `L`, otherwise [`True`].
type AxisImplies<L, A, V> =
    <<<L as Dims>::List as DividesInto<<A as DimRef>::Brand, ()>>::Holds as Bool>::Implies<V>;

/// The first brand of the dims `P` that is an axis of `L` other than `A` or that `P` repeats;
/// otherwise [`Nothing`].
type AxisBeside<L, A, P> = <Replaced<L, A, ()> as Shares<<P as DimList>::Brands>>::Found;

/// The condition that an element is the brand `D`.
pub struct Is<D>(PhantomData<D>);

#[diagnostic::do_not_recommend]
impl<A, D> Satisfies<Is<D>> for A
where
    A: SetElement<Key: CompareKeys<D::Key, Out: Satisfies<OfTypes<A, D>>>>,
    D: Brand,
{
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    type Holds = <<A::Key as CompareKeys<D::Key>>::Out as Satisfies<OfTypes<A, D>>>::Holds;
}

/// The condition that `A` and `D` are the same type. It applies to the result of comparing their
/// keys.
pub struct OfTypes<A, D>(PhantomData<(A, D)>);

// Two different dims or roles with the same key do not compile.
#[diagnostic::do_not_recommend]
impl<A> Satisfies<OfTypes<A, A>> for Equal {
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    type Holds = True;
}
#[diagnostic::do_not_recommend]
impl<A, D> Satisfies<OfTypes<A, D>> for Less {
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    type Holds = False;
}
#[diagnostic::do_not_recommend]
impl<A, D> Satisfies<OfTypes<A, D>> for Greater {
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    type Holds = False;
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

/// A list from which the brands `B` can be removed; those that it lacks are ignored.
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

// An empty `B` is reported elsewhere.
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
    X: Satisfies<Is<B>>,
    T: StartsWith<BT> + MergesIn<(B, BT), W>,
    <X::Holds as Bool>::If<(W, T::Rest), (X, <T as MergesIn<(B, BT), W>>::Out)>: List,
{
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    type Out = <X::Holds as Bool>::If<(W, T::Rest), (X, <T as MergesIn<(B, BT), W>>::Out)>;
    type Holds = <<X::Holds as Bool>::And<<T as StartsWith<BT>>::Holds> as Bool>::Or<
        <T as MergesIn<(B, BT), W>>::Holds,
    >;
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
impl<X: Satisfies<Is<B>>, T: StartsWith<BT>, B, BT> StartsWith<(B, BT)> for (X, T) {
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    type Rest = T::Rest;
    type Holds = <X::Holds as Bool>::And<T::Holds>;
}

/// A list in which the brands `B` can replace the brand `W`.
pub trait DividesInto<W, B> {
    #[doc(hidden)]
    const SEAL: crate::seal::Seal;
    /// The list with the brands `B` in place of `W`, unchanged if it lacks `W`.
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
    X: Satisfies<Is<W>>,
    T: DividesInto<W, B>,
    B: NestedPairs,
    <X::Holds as Bool>::If<B::Then<T>, (X, T::Out)>: List,
{
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    type Out = <X::Holds as Bool>::If<B::Then<T>, (X, T::Out)>;
    type Behind = <X::Holds as Bool>::If<T, T::Behind>;
    type Holds = <X::Holds as Bool>::Or<T::Holds>;
}
