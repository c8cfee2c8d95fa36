//! Dims that several tensors have: those along which a product is summed, and sets that lie within others.

use super::Bool;
use super::list::List;
use super::remove::{Left, Missing, Removal, RemoveAll, Twice};
use super::{Dims, MaybeDim, NamedOnce, NoDim, Nothing, True};
use crate::brand::{Compare, CompareKeys, Element, Equal, Greater, Less, Rest};
use crate::dim::DimList;

/// Dims, one or a tuple of them, that a tensor with the dims `A` and one with the dims `B` both have; each is named once. `U` are the dims of
/// both tensors together, and `Others` those of `U` that are not named, which rustc infers.
///
/// The bound of what sums products over dims: [`contract`](crate::linalg::LinearAlgebra::contract), `cdist`, convolutions.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a dim",
    label = "a dim of both tensors, or a tuple of such dims, is expected here",
    note = "a declared dim is passed by its name, `Batch`; a local one too, after `dims!(i);`"
)]
pub trait DimsOfBoth<A: Dims, B: Dims, U: Dims, Others: Dims>: DimList {}

impl<A: Dims, B: Dims, U: Dims, Others: Dims, D: DimList> DimsOfBoth<A, B, U, Others> for D
where
    A::List: RemoveAll<D::Brands, A, Out: Removal>,
    B::List: RemoveAll<D::Brands, B, Out: Removal>,
    U::List: RemoveAll<D::Brands, U, Out: Removal<Left: List>>,
    NoDim<Missing<A, D::Brands>>: Bool + Shared<Missing<A, D::Brands>, A, Then<Left<U, D::Brands>> = Others>,
    NoDim<Second<A, B, D::Brands>>: Shared<Second<A, B, D::Brands>, B>,
    NoDim<Twice<U, D::Brands>>: NamedOnce<Twice<U, D::Brands>, D>,
{
}

/// The first brand of `L` that `B` does not have, if `A` has them all: where both tensors lack dims, one error says so of the first.
type Second<A, B, L> = <NoDim<Missing<A, L>> as Bool>::OrNothing<Missing<B, L>>;

/// `D` is one of the dims of the operand with the dims `S`, or [`Nothing`] that was asked for is missing.
#[diagnostic::on_unimplemented(
    message = "dimension `{D}` is not bound in the tensor with dims `{S}`",
    label = "each operand must have `{D}`; only `(x * y).sum({D})` takes it of either one"
)]
pub trait Shared<D, S> {
    /// `X`, if the condition holds.
    type Then<X>;
}
#[diagnostic::do_not_recommend]
impl<D, S> Shared<D, S> for True {
    type Then<X> = X;
}

/// The first dim of the set `A` that `B` does not have, or [`Nothing`].
pub type Surplus<A, B> = <<A as Dims>::List as Beyond<<B as Dims>::List>>::Found;

/// The first element of a sorted list that a set does not have.
pub trait Beyond<O> {
    /// The element, or [`Nothing`].
    type Found: MaybeDim;
}

#[diagnostic::do_not_recommend]
impl<O> Beyond<O> for () {
    type Found = Nothing;
}

#[diagnostic::do_not_recommend]
impl<H: MaybeDim, T> Beyond<()> for (H, T) {
    type Found = H;
}

#[diagnostic::do_not_recommend]
impl<H1: Element, T1, H2: Element, T2> Beyond<(H2, T2)> for (H1, T1)
where
    H1::Key: CompareKeys<H2::Key>,
    Compare<H1, H2>: BeyondStep<H1, T1, H2, T2>,
{
    type Found = <Compare<H1, H2> as BeyondStep<H1, T1, H2, T2>>::Found;
}

/// One step of [`Beyond`].
pub trait BeyondStep<H1, T1, H2, T2> {
    /// The element, or [`Nothing`].
    type Found: MaybeDim;
}

#[diagnostic::do_not_recommend]
impl<H1: MaybeDim, T1, H2, T2> BeyondStep<H1, T1, H2, T2> for Less {
    type Found = H1;
}

#[diagnostic::do_not_recommend]
impl<H1, T1, H2, T2> BeyondStep<H1, T1, H2, T2> for Greater
where
    (H1, T1): Beyond<T2>,
{
    type Found = <(H1, T1) as Beyond<T2>>::Found;
}

#[diagnostic::do_not_recommend]
impl<H, T1: Beyond<T2>, T2> BeyondStep<H, T1, H, T2> for Equal {
    type Found = T1::Found;
}

/// A rest that violates the condition.
impl<B> MaybeDim for Rest<B> {
    type IsNothing = super::False;
    type Or<Next: MaybeDim> = Rest<B>;
}
