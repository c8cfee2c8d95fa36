//! The conditions under which dims can replace others: static sizes, roles, and no duplicates.

use crate::types::brand::Brand;
use crate::types::condition::condition;
use crate::types::dim::{DimList, DimRef};
use crate::types::role::{KeepsRole, RolesFlatten};
use crate::types::set::Bool;
use crate::types::set::distinct::SortOnce;
use crate::types::set::list::NestedPairs;
use crate::types::set::ordered::{NamedTwice, Shares};
use crate::types::set::rename::CanGain;
use crate::types::set::union::SetNamed;
use crate::types::set::{Dims, NamedOnce, NoDim, NotYetBound, Union};
use crate::types::size::{ProductOf, SameSize, SizeWith, SizesTogether};

condition! {
    /// The condition that the static `Sizes` multiply to the size of `Whole`. Dynamic sizes are
    /// checked at run time.
    #[diagnostic::on_unimplemented(
        message = "`{Whole}` has `{Size}` elements, which is not the product of `{Sizes}`",
        label = "the static sizes do not fit together"
    )]
    pub trait FitsInto<Whole, Size, Sizes> for True;
}

condition! {
    /// The condition that the static `Sizes` add up to the size of `Whole`. Dynamic sizes are
    /// checked at run time.
    #[diagnostic::on_unimplemented(
        message = "`{Whole}` has `{Size}` elements, which is not the sum of `{Sizes}`",
        label = "the static sizes do not add up"
    )]
    pub trait AddsUpTo<Whole, Size, Sizes> for True;
}

/// Whether the product of the sizes of the dims `L` can equal the size of `Whole`.
type ProductAgrees<L, Whole> =
    <ProductOf<<L as DimList>::Brands> as SizeWith<<<Whole as DimRef>::Brand as Brand>::Num>>::MaySame;

/// Dims that a dim `Whole` can be split into, or flattened from.
pub trait PartsOf<Whole: DimRef>: DimList {
    #[doc(hidden)]
    const SEAL: crate::seal::Seal;
    /// The set of the dims.
    type Set: Dims;
}

impl<L, Whole> PartsOf<Whole> for L
where
    Whole: DimRef,
    L: DimList<Brands: SortOnce + SizesTogether<Unsized: NestedPairs>>,
    ProductOf<L::Brands>: SizeWith<<Whole::Brand as Brand>::Num>,
    ProductAgrees<L, Whole>: FitsInto<Whole::Brand, <Whole::Brand as Brand>::Size, L::Sizes>,
{
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    type Set = SetNamed<L>;
}

/// New dims for a tensor with the dims `S` that keeps the dims `X`. Each new dim is named once, and
/// is not in `X`.
pub trait NewDims<X, S = X>: DimList {
    #[doc(hidden)]
    const SEAL: crate::seal::Seal;
    /// The dims of the tensor afterwards.
    type Out: Dims;
}

impl<L, X, S> NewDims<X, S> for L
where
    L: DimList<Brands: SortOnce>,
    (): Shares<L::Brands>,
    NoDim<NamedTwice<L>>: NamedOnce<NamedTwice<L>, L>,
    X: Union<SetNamed<L>> + Dims<List: Shares<L::Brands>>,
    // Holds if a dim is named twice, so that only the repeated name is reported.
    <NoDim<NamedTwice<L>> as Bool>::Implies<NoDim<BoundAlready<X, L>>>: NotYetBound<BoundAlready<X, L>, S>,
{
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    type Out = <X as Union<SetNamed<L>>>::Out;
}

/// New names for the dims `Old` of a tensor with the dims `S`, whose other dims are `X`. The names
/// are [`NewDims`], one for each of `Old`, with a compatible static size and role.
pub trait NamesFor<Old, S, X>: DimList {
    #[doc(hidden)]
    const SEAL: crate::seal::Seal;
    /// The dims of the tensor afterwards.
    type Out: Dims;
}

impl<L, Old, S, X> NamesFor<Old, S, X> for L
where
    L: NamesEach<Old> + NewDims<X, S>,
{
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    type Out = <L as NewDims<X, S>>::Out;
}

/// A tuple with one dim for each of `Old`, with a compatible static size and role.
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not have a name for each of the dims `{Old}`",
    label = "expected as many dims as are renamed, at most 6"
)]
pub trait NamesEach<Old>: DimList {
    #[doc(hidden)]
    const SEAL: crate::seal::Seal;
}

macro_rules! names_each {
    ($($old:ident $new:ident),*) => {
        impl<$($old: DimRef, $new: DimRef),*> NamesEach<($($old,)*)> for ($($new,)*)
        where
            ($($new,)*): DimList,
            $($new: KeepsRole<$old>,)*
            $(<$old::Brand as Brand>::Size: SameSize<<$new::Brand as Brand>::Size, $old::Brand, $new::Brand>,)*
        {
            const SEAL: crate::seal::Seal = crate::seal::SEAL;
        }
    };
}

names_each!(A P);
names_each!(A P, B Q);
names_each!(A P, B Q, C R);
names_each!(A P, B Q, C R, D T);
names_each!(A P, B Q, C R, D T, E U);
names_each!(A P, B Q, C R, D T, E U, F V);

/// The first brand of the dims `L` that the set `X` has or that `L` repeats, or
/// [`Nothing`](crate::types::set::Nothing).
type BoundAlready<X, L> = <<X as Dims>::List as Shares<<L as DimList>::Brands>>::Found;

/// A dim that the dims `P` of a tensor with the other dims `X` can be flattened into: it is not in
/// `X`, and its static size and role are compatible with those of `P`.
pub trait WholeIn<P, X>: DimRef {
    #[doc(hidden)]
    const SEAL: crate::seal::Seal;
    /// The dims of the tensor afterwards.
    type Out: Dims;
}

impl<W, P, X> WholeIn<P, X> for W
where
    W: DimRef,
    P: PartsOf<W> + RolesFlatten<W>,
    X: Union<(W::Brand,)> + CanGain<W::Brand>,
{
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    type Out = <X as Union<(W::Brand,)>>::Out;
}
