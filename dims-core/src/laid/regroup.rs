//! Neighbours among the axes of a layout as one dim, and one dim as several neighbours: the type proves that nothing moves.

use super::ListOf;
use crate::brand::{Brand, CompareKeys, Element as InSet, Equal, Greater, Less};
use crate::dim::{DimList, DimRef};
use crate::set::list::List;
use crate::set::remove::{Removal, RemoveAll};
use crate::set::rename::NotYetBound;
use crate::set::union::Sort;
use crate::set::{Bound, Dims, Judged, Right, Verdict, Wrong};

/// The order `L` with the neighbours `P` as one dim.
pub type Merged<L, P, W> = <MergedList<L, P, W> as List>::Tuple;

/// The order `L` with the dim `W` as several.
pub type Divided<L, W, P> = <DividedList<L, W, P> as List>::Tuple;

/// Dims that lie side by side in the layout `L`, in this order.
pub trait Neighbours<L, W>: DimList {}
impl<P, L, W> Neighbours<L, W> for P
where
    P: DimList,
    W: DimRef,
    L: Dims<List: MergesIn<P::Brands, W::Brand, Verdict: SideBySide<P, L>>>,
{
}

/// The verdict that the dims `P` lie side by side in `L`.
#[diagnostic::on_unimplemented(
    message = "`{P}` are not neighbours, in this order, in the layout `{L}`",
    label = "only axes that lie side by side can be merged without moving elements"
)]
pub trait SideBySide<P, L> {}
#[diagnostic::do_not_recommend]
impl<P, L> SideBySide<P, L> for Right {}

/// A name for the neighbours `P` that no other axis of `L` has.
pub trait NewBeside<L, P>: DimRef {}
impl<W, L, P> NewBeside<L, P> for W
where
    W: DimRef,
    P: DimList,
    L: Dims<List: MergesIn<P::Brands, W::Brand, Out: Distinct>>,
    Verdict<TwiceIn<MergedList<L, P, W>>>: NotYetBound<TwiceIn<MergedList<L, P, W>>, L>,
{
}

/// Dims that no axis of `L` besides `W` is.
pub trait NewInPlaceOf<W, L>: DimList {}
impl<P, W, L> NewInPlaceOf<W, L> for P
where
    P: DimList,
    W: DimRef,
    L: Dims<List: DividesInto<W::Brand, P::Brands, Out: Distinct>>,
    Verdict<TwiceIn<DividedList<L, W, P>>>: NotYetBound<TwiceIn<DividedList<L, W, P>>, L>,
{
}

/// The axes of [`Merged`], as nested pairs.
type MergedList<L, P, W> = <ListOf<L> as MergesIn<<P as DimList>::Brands, <W as DimRef>::Brand>>::Out;

/// The axes of [`Divided`], as nested pairs.
type DividedList<L, W, P> = <ListOf<L> as DividesInto<<W as DimRef>::Brand, <P as DimList>::Brands>>::Out;

/// A list that may have a brand twice.
pub trait Distinct {
    /// The first brand that it has twice, or [`Nothing`](crate::set::Nothing).
    type Twice: Judged;
}
#[diagnostic::do_not_recommend]
impl<X: Sort> Distinct for X
where
    X::Out: RemoveAll<X, <X::Out as List>::Tuple, Out: Removal>,
{
    type Twice = <<X::Out as RemoveAll<X, <X::Out as List>::Tuple>>::Out as Removal>::Twice;
}

/// The first brand that a list has twice.
type TwiceIn<X> = <X as Distinct>::Twice;

/// A dim of the layout `L`.
pub trait AxisOf<L, P>: DimRef {}
impl<W, L, P> AxisOf<L, P> for W
where
    W: DimRef,
    P: DimList,
    L: Dims<List: DividesInto<W::Brand, P::Brands, Verdict: Bound<W::Brand, L>>>,
{
}

/// A list in which the brands `B` are to stand one behind the other.
pub trait MergesIn<B, W> {
    /// The list with `W` in their place.
    type Out: List;
    /// [`Right`], or [`Wrong`] if they do not stand so.
    type Verdict;
}

impl<B, W> MergesIn<B, W> for () {
    type Out = ();
    type Verdict = Wrong;
}

#[diagnostic::do_not_recommend]
impl<X, T, B, BT, W> MergesIn<(B, BT), W> for (X, T)
where
    X: InSet,
    B: Brand,
    X::Key: CompareKeys<B::Key, Out: MergeStep<X, T, (B, BT), W>>,
{
    type Out = <<X::Key as CompareKeys<B::Key>>::Out as MergeStep<X, T, (B, BT), W>>::Out;
    type Verdict = <<X::Key as CompareKeys<B::Key>>::Out as MergeStep<X, T, (B, BT), W>>::Verdict;
}

/// One step of [`MergesIn`].
pub trait MergeStep<X, T, B, W> {
    /// See [`MergesIn`].
    type Out: List;
    /// See [`MergesIn`].
    type Verdict;
}
#[diagnostic::do_not_recommend]
impl<X, T, BT, W> MergeStep<X, T, (X, BT), W> for Equal
where
    T: StartsWith<BT>,
    (W, T::Rest): List,
{
    type Out = (W, T::Rest);
    type Verdict = T::Verdict;
}

/// A list whose first elements are to be those of `B`.
pub trait StartsWith<B> {
    /// The others.
    type Rest;
    /// [`Right`], or [`Wrong`] if they are not.
    type Verdict;
}
impl<X> StartsWith<()> for X {
    type Rest = X;
    type Verdict = Right;
}
#[diagnostic::do_not_recommend]
impl<B, BT> StartsWith<(B, BT)> for () {
    type Rest = ();
    type Verdict = Wrong;
}
#[diagnostic::do_not_recommend]
impl<X, T, B, BT> StartsWith<(B, BT)> for (X, T)
where
    X: InSet,
    B: Brand,
    X::Key: CompareKeys<B::Key, Out: StartStep<X, T, (B, BT)>>,
{
    type Rest = <<X::Key as CompareKeys<B::Key>>::Out as StartStep<X, T, (B, BT)>>::Rest;
    type Verdict = <<X::Key as CompareKeys<B::Key>>::Out as StartStep<X, T, (B, BT)>>::Verdict;
}

/// One step of [`StartsWith`].
pub trait StartStep<X, T, B> {
    /// See [`StartsWith`].
    type Rest;
    /// See [`StartsWith`].
    type Verdict;
}
#[diagnostic::do_not_recommend]
impl<X, T: StartsWith<BT>, BT> StartStep<X, T, (X, BT)> for Equal {
    type Rest = T::Rest;
    type Verdict = T::Verdict;
}

/// A list that is to have the brand `W`.
pub trait DividesInto<W, B> {
    /// The list with the brands `B` in its place.
    type Out: List;
    /// [`Right`], or [`Wrong`] if it has not.
    type Verdict;
}

impl<W, B> DividesInto<W, B> for () {
    type Out = ();
    type Verdict = Wrong;
}

#[diagnostic::do_not_recommend]
impl<X, T, W, B> DividesInto<W, B> for (X, T)
where
    X: InSet,
    W: Brand,
    X::Key: CompareKeys<W::Key, Out: DivideStep<X, T, W, B>>,
{
    type Out = <<X::Key as CompareKeys<W::Key>>::Out as DivideStep<X, T, W, B>>::Out;
    type Verdict = <<X::Key as CompareKeys<W::Key>>::Out as DivideStep<X, T, W, B>>::Verdict;
}

/// One step of [`DividesInto`].
pub trait DivideStep<X, T, W, B> {
    /// See [`DividesInto`].
    type Out: List;
    /// See [`DividesInto`].
    type Verdict;
}
#[diagnostic::do_not_recommend]
impl<X, T, B: InFrontOf<T, Out: List>> DivideStep<X, T, X, B> for Equal {
    type Out = B::Out;
    type Verdict = Right;
}

macro_rules! further {
    ($($verdict:ident)*) => {$(
        #[diagnostic::do_not_recommend]
        impl<X, T, B, W> MergeStep<X, T, B, W> for $verdict
        where
            T: MergesIn<B, W>,
            (X, T::Out): List,
        {
            type Out = (X, T::Out);
            type Verdict = T::Verdict;
        }

        #[diagnostic::do_not_recommend]
        impl<X, T, B> StartStep<X, T, B> for $verdict {
            type Rest = ();
            type Verdict = Wrong;
        }

        #[diagnostic::do_not_recommend]
        impl<X, T, W, B> DivideStep<X, T, W, B> for $verdict
        where
            T: DividesInto<W, B>,
            (X, T::Out): List,
        {
            type Out = (X, T::Out);
            type Verdict = T::Verdict;
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
