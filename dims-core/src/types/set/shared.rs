//! Dims that two tensors share, as in a contraction, and the condition that one set is a subset of
//! another.

use super::Bool;
use super::list::List;
use super::remove::{Left, Missing, Removal, RemoveAll, Twice};
use super::{Bound, Dims, NamedOnce, NoDim};
use crate::types::condition::condition;
use crate::types::dim::DimList;

/// A dim or a tuple of dims that a tensor with the dims `A` and one with the dims `B` both have;
/// each is named once. `U` are the dims of both tensors together. `Others` are the remaining dims
/// of `U`, which rustc infers.
///
/// This is the bound of operations that sum over dims of two tensors, such as
/// [`contract`](crate::operators::linalg::LinearAlgebra::contract) and convolutions. To sum over a
/// dim that only one tensor has, write `(x * y).sum(dim)`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a dim",
    label = "a dim of both tensors, or a tuple of such dims, is expected here",
    note = "pass a dim by its name: `Batch` if it is declared, `i` after `dims!(i);`"
)]
pub trait DimsOfBoth<A: Dims, B: Dims, U: Dims, Others: Dims>: DimList {
    #[doc(hidden)]
    const SEAL: crate::seal::Seal;
}

impl<A: Dims, B: Dims, U: Dims, Others: Dims, D: DimList> DimsOfBoth<A, B, U, Others> for D
where
    A::List: RemoveAll<D::Brands, A, Out: Removal>,
    B::List: RemoveAll<D::Brands, B, Out: Removal>,
    U::List: RemoveAll<D::Brands, U, Out: Removal<Left: List>>,
    NoDim<Missing<A, D::Brands>>: Bound<Missing<A, D::Brands>, A, Then<Left<U, D::Brands>> = Others>,
    NoDim<Second<A, B, D::Brands>>: Bound<Second<A, B, D::Brands>, B>,
    NoDim<Twice<U, D::Brands>>: NamedOnce<Twice<U, D::Brands>, D>,
{
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
}

/// The first brand of `L` that `B` lacks, or [`Nothing`](super::Nothing). Also `Nothing` if `A`
/// lacks a brand of `L`, because then only that brand is reported.
type Second<A, B, L> = <NoDim<Missing<A, L>> as Bool>::OrNothing<Missing<B, L>>;

condition! {
    /// All dims of an operand are in `S`; `D` is the first one that is not, or
    /// [`Nothing`](super::Nothing).
    #[diagnostic::on_unimplemented(
        message = "dimension `{D}` of this operand is not bound in a tensor with dims `{S}`",
        label = "it can only have the dims `{S}`; if `{D}` is another name of one of them, rename it: `.rename({D}, ..)`"
    )]
    pub trait Covered<D, S> for True;
}
