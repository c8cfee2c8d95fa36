//! Type-level computations with the axes of streams: the data dimension, and ordered lists of axes.
//!
//! As with sets of dims, the computations are total: a mistake yields a type-level boolean, and a
//! trait with a message is implemented only for `True`.

use crate::types::brand::Brand;
use crate::types::condition::condition;
use crate::types::dim::{DimList, DimRef};
use crate::types::role::KeepsRole;
use crate::types::set::Bool;
use crate::types::set::list::List;
use crate::types::set::ordered::{DividesInto, NamedTwice, SameBrand, Shares};
use crate::types::set::rename::NotYetBound;
use crate::types::set::{Bound, Dims, NamedOnce, NoDim};
use crate::types::size::MaySame;

/// Whether the dim `A` is `D`.
pub(super) type IsData<A, D> = <<A as DimRef>::Brand as SameBrand<D>>::Out;

/// The list `L` with the dim `A` replaced by the dims `B` (as nested pairs).
pub(super) type Replaced<L, A, B> = <<L as Dims>::List as DividesInto<<A as DimRef>::Brand, B>>::Out;

/// Dims that can replace the dim `A` among the axes `L`: none of them is another axis of `L`.
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
    L: Dims<List: DividesInto<A::Brand, P::Brands> + DividesInto<A::Brand, (), Holds: Bound<A::Brand, L>>>,
    (): Shares<P::Brands>,
    Replaced<L, A, ()>: Shares<P::Brands>,
    // If `A` is not an axis, only this is reported. Otherwise, if a dim is named twice, only that.
    AxisImplies<L, A, NoDim<NamedTwice<P>>>: NamedOnce<NamedTwice<P>, P>,
    AxisImplies<L, A, <NoDim<NamedTwice<P>> as Bool>::Implies<NoDim<AxisBeside<L, A, P>>>>:
        NotYetBound<AxisBeside<L, A, P>, L>,
{
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    type Axes = <Replaced<L, A, P::Brands> as List>::Tuple;
}

/// The condition `V` if the dim `A` is one of the axes `L`, else [`True`].
type AxisImplies<L, A, V> =
    <<<L as Dims>::List as DividesInto<<A as DimRef>::Brand, ()>>::Holds as Bool>::Implies<V>;

/// The first brand of the dims `P` that is an axis of `L` other than `A`, or
/// [`Nothing`](crate::types::set::Nothing).
type AxisBeside<L, A, P> = <Replaced<L, A, ()> as Shares<<P as DimList>::Brands>>::Found;

/// A dim that can replace the dim `A` among the axes `L` of a stream along `D`. If `A` is the data
/// dimension, so is the replacement.
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

/// A dim that is not an axis of a stream of `L`.
pub trait NoAxisYet<L>: DimRef {
    #[doc(hidden)]
    const SEAL: crate::seal::Seal;
}
impl<N, L> NoAxisYet<L> for N
where
    N: DimRef,
    L: Dims<List: Shares<(N::Brand, ())>>,
    NoDim<<L::List as Shares<(N::Brand, ())>>::Found>:
        NotYetBound<<L::List as Shares<(N::Brand, ())>>::Found, L>,
{
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
}

/// The axes `L` with a new one before or after the dim `A`. Other traits check that `A` is an axis
/// and the new dim is not, because rustc computes the result's type even if it has reported a
/// mistake.
pub trait Beside<A, L>: DimRef {
    #[doc(hidden)]
    const SEAL: crate::seal::Seal;
    /// The axes with the new one before `A`.
    type Before: Dims;
    /// The axes with the new one after `A`.
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

/// A dim of one element that can replace the dim `A` as in [`TakesPlaceOf`], and has its role.
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
