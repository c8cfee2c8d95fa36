//! What rustc computes of the axes of streams: which of them is the data dimension, and lists of axes in their order.
//!
//! As with sets of dims, nothing here fails: a mistake yields a type-level boolean, and one trait with a message is implemented for `True` alone.

use crate::types::brand::Brand;
use crate::types::condition::condition;
use crate::types::dim::{DimList, DimRef};
use crate::types::role::KeepsRole;
use crate::types::set::Bool;
use crate::types::set::list::List;
use crate::types::set::ordered::{DividesInto, NamedTwice, SameBrand, Shares};
use crate::types::set::{Dims, NamedOnce, NoDim};
use crate::types::size::MaySame;

/// Whether the dim `A` is `D`.
pub(super) type IsData<A, D> = <<A as DimRef>::Brand as SameBrand<D>>::Out;

/// The list `L` with the dims `B` (as nested pairs) in the place of the dim `A`.
pub(super) type Replaced<L, A, B> = <<L as Dims>::List as DividesInto<<A as DimRef>::Brand, B>>::Out;

/// One of the axes `L` of a stream.
pub trait StreamAxis<L>: DimRef {
    #[doc(hidden)]
    const SEAL: crate::seal::Seal;
}
impl<A: DimRef, L: Dims> StreamAxis<L> for A
where
    L::List: DividesInto<A::Brand, (), Holds: IsAxis<A::Brand, L>>,
{
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
}

condition! {
    /// The condition that `D` is one of the axes `L` of a stream.
    #[diagnostic::on_unimplemented(
        message = "dimension `{D}` is not an axis of a stream of `{L}`",
        label = "`{D}` is not an axis of this stream"
    )]
    pub trait IsAxis<D, L> for True;
}

condition! {
    /// No brand among the new ones is one of the axes `L`; `D` is the first that is, or [`Nothing`](crate::types::set::Nothing).
    #[diagnostic::on_unimplemented(
        message = "dimension `{D}` is already an axis of a stream of `{L}`",
        label = "expected a dim that is not an axis yet"
    )]
    pub trait NotYetAxis<D, L> for True;
}

/// Dims that can stand in the place of the dim `A` among the axes `L`: none of them is one of the others.
pub trait InPlaceOf<A, L>: DimList {
    #[doc(hidden)]
    const SEAL: crate::seal::Seal;
    /// The axes afterwards.
    type Axes: Dims;
}
impl<P, A, L> InPlaceOf<A, L> for P
where
    P: DimList,
    A: DimRef,
    L: Dims<List: DividesInto<A::Brand, P::Brands> + DividesInto<A::Brand, (), Holds: IsAxis<A::Brand, L>>>,
    (): Shares<P::Brands>,
    Replaced<L, A, ()>: Shares<P::Brands>,
    // Where `A` is no axis, that alone is to be said, and then that a dim is named twice.
    AxisImplies<L, A, NoDim<NamedTwice<P>>>: NamedOnce<NamedTwice<P>, P>,
    AxisImplies<L, A, <NoDim<NamedTwice<P>> as Bool>::Implies<NoDim<AxisBeside<L, A, P>>>>:
        NotYetAxis<AxisBeside<L, A, P>, L>,
{
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    type Axes = <Replaced<L, A, P::Brands> as List>::Tuple;
}

/// The condition `V` if the dim `A` is one of the axes `L`, else [`True`].
type AxisImplies<L, A, V> =
    <<<L as Dims>::List as DividesInto<<A as DimRef>::Brand, ()>>::Holds as Bool>::Implies<V>;

/// The first brand of the dims `P` that an axis of `L` other than `A` is, or [`Nothing`](crate::types::set::Nothing).
type AxisBeside<L, A, P> = <Replaced<L, A, ()> as Shares<<P as DimList>::Brands>>::Found;

/// A dim that can stand in the place of the dim `A` among the axes `L` of a stream along `D`, as its data dimension if `A` is that.
pub trait TakesPlaceOf<A, L, D>: DimRef {
    #[doc(hidden)]
    const SEAL: crate::seal::Seal;
    /// The axes afterwards.
    type Axes: Dims;
    /// The data dimension afterwards.
    type Data: Brand;
}
impl<N, A, L, D> TakesPlaceOf<A, L, D> for N
where
    N: DimRef + InPlaceOf<A, L>,
    A: DimRef<Brand: SameBrand<D>>,
    D: Brand,
{
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    type Axes = <N as InPlaceOf<A, L>>::Axes;
    type Data = <IsData<A, D> as Bool>::Pick<N::Brand, D>;
}

/// A dim that is no axis of a stream of `L` yet.
pub trait NoAxisYet<L>: DimRef {
    #[doc(hidden)]
    const SEAL: crate::seal::Seal;
}
impl<N, L> NoAxisYet<L> for N
where
    N: DimRef,
    L: Dims<List: Shares<(N::Brand, ())>>,
    NoDim<<L::List as Shares<(N::Brand, ())>>::Found>:
        NotYetAxis<<L::List as Shares<(N::Brand, ())>>::Found, L>,
{
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
}

/// The axes `L` with a new one beside the dim `A`. That `A` is one of them and the new one is not is asked elsewhere, as rustc works out the
/// type of a result even where it has reported the mistake.
pub trait Beside<A, L>: DimRef {
    #[doc(hidden)]
    const SEAL: crate::seal::Seal;
    /// The axes with the new one in front of `A`.
    type Before: Dims;
    /// The axes with the new one behind `A`.
    type Behind: Dims;
}
impl<N, A, L> Beside<A, L> for N
where
    N: DimRef,
    A: DimRef,
    L: Dims<
        List: DividesInto<A::Brand, (N::Brand, (A::Brand, ()))>
                  + DividesInto<A::Brand, (A::Brand, (N::Brand, ()))>,
    >,
{
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    type Before = <Replaced<L, A, (N::Brand, (A::Brand, ()))> as List>::Tuple;
    type Behind = <Replaced<L, A, (A::Brand, (N::Brand, ()))> as List>::Tuple;
}

/// A dim that can have one element.
pub trait UnitDim: DimRef {
    #[doc(hidden)]
    const SEAL: crate::seal::Seal;
}
impl<N> UnitDim for N
where
    N: DimRef<Brand: Brand<Num: MaySame<typenum::U1, Out: HoldsOne<N::Brand>>>>,
{
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
}

/// A dim of one element that can stand in the place of the dim `A`, as [`TakesPlaceOf`], and means what that does.
pub trait KeptAs<A, L, D>: DimRef {
    #[doc(hidden)]
    const SEAL: crate::seal::Seal;
    /// The axes afterwards.
    type Axes: Dims;
    /// The data dimension afterwards.
    type Data: Brand;
}
impl<N, A, L, D> KeptAs<A, L, D> for N
where
    N: TakesPlaceOf<A, L, D>
        + KeepsRole<A>
        + DimRef<Brand: Brand<Num: MaySame<typenum::U1, Out: HoldsOne<N::Brand>>>>,
{
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    type Axes = <N as TakesPlaceOf<A, L, D>>::Axes;
    type Data = <N as TakesPlaceOf<A, L, D>>::Data;
}

condition! {
    /// The condition that `D` can have one element.
    #[diagnostic::on_unimplemented(
        message = "`{D}` has a static size other than 1, but this axis has one element",
        label = "expected a dim of size 1, such as `One = 1`, or one without a static size"
    )]
    pub trait HoldsOne<D> for True;
}
