//! Type-level computations with the axes of streams: the data dimension, and ordered lists of axes.
//!
//! As with sets of dims, the computations are total: a check yields a type-level boolean, and a
//! trait with an error message is implemented only for `True`, or only for `False`.

use crate::types::brand::Brand;
use crate::types::condition::condition;
use crate::types::dim::DimRef;
use crate::types::role::KeepsRole;
use crate::types::set::list::{List, NestedPairs};
use crate::types::set::ordered::{AxisOf, DividesInto, InPlaceOf, Is, Replaced, Shares};
use crate::types::set::{Bool, Dims, NoDim, NotYetBound, Satisfies};
use crate::types::size::SizeWith;

/// Whether the dim `A` is `D`.
pub(super) type IsData<A, D> = <<A as DimRef>::Brand as Satisfies<Is<D>>>::Holds;

/// Dims that can replace the dim `A` among the axes `L` of a stream with the data dimension `D`. If
/// `A` is `D`, the last of the dims becomes the data dimension.
pub trait TakesPlaceOf<A, L, D>: InPlaceOf<A, L> {
    #[doc(hidden)]
    const SEAL: crate::seal::Seal;
    /// The data dimension afterwards.
    type Data: Brand;
}
impl<P, A, L, D> TakesPlaceOf<A, L, D> for P
where
    P: InPlaceOf<A, L>,
    A: DimRef<Brand: Satisfies<Is<D>>>,
    D: Brand,
    <P::Brands as NestedPairs>::LastOr<D>: Brand,
{
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    type Data = <IsData<A, D> as Bool>::Pick<<P::Brands as NestedPairs>::LastOr<D>, D>;
}

/// A dim that is not one of the axes `L`.
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

/// A dim that can be a new axis before or after `A` among the axes `L`. Other traits check that `A`
/// is an axis and that the new dim is not. This trait does not, because rustc computes the result's
/// type even after it has reported such a mistake.
pub trait Beside<A, L>: DimRef {
    #[doc(hidden)]
    const SEAL: crate::seal::Seal;
    /// The axes with the new axis before `A`.
    type Before: Dims;
    /// The axes with the new axis after `A`.
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
    N: DimRef<Brand: Brand<Num: SizeWith<typenum::U1, MaySame: HoldsOne<N::Brand>>>>,
{
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
}

/// A dim that can have one element, can replace the axis `A` as in [`TakesPlaceOf`], and
/// [keeps the role](KeepsRole) of `A`.
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
    A: AxisOf<L>,
    N: TakesPlaceOf<A, L, D>
        + KeepsRole<A>
        + DimRef<Brand: Brand<Num: SizeWith<typenum::U1, MaySame: HoldsOne<N::Brand>>>>,
{
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    type Axes = <N as InPlaceOf<A, L>>::Axes;
    type Data = <N as TakesPlaceOf<A, L, D>>::Data;
}

condition! {
    /// The condition that `D` can have one element.
    #[diagnostic::on_unimplemented(
        message = "`{D}` has a static size other than 1, but this axis must have one element",
        label = "expected a dim of size 1, such as `One = 1`, or one without a static size"
    )]
    pub trait HoldsOne<D> for True;
}
