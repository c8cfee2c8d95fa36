//! Dims that several tensors have: those along which a product is summed, and sets that lie within others.

use super::Bool;
use super::list::List;
use super::remove::{Left, Missing, Removal, RemoveAll, Twice};
use super::{Dims, NamedOnce, NoDim};
use crate::types::condition::condition;
use crate::types::dim::DimList;

/// Dims, one or a tuple of them, that a tensor with the dims `A` and one with the dims `B` both have; each is named once. `U` are the dims of
/// both tensors together, and `Others` those of `U` that are not named, which rustc infers.
///
/// The bound of what sums products over dims: [`contract`](crate::operators::linalg::LinearAlgebra::contract), `cdist`, convolutions.
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
    NoDim<Missing<A, D::Brands>>: Shared<Missing<A, D::Brands>, A, Then<Left<U, D::Brands>> = Others>,
    NoDim<Second<A, B, D::Brands>>: Shared<Second<A, B, D::Brands>, B>,
    NoDim<Twice<U, D::Brands>>: NamedOnce<Twice<U, D::Brands>, D>,
{
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
}

/// The first brand of `L` that `B` does not have, if `A` has them all: where both tensors lack dims, one error says so of the first.
type Second<A, B, L> = <NoDim<Missing<A, L>> as Bool>::OrNothing<Missing<B, L>>;

condition! {
    /// `D` is one of the dims of the operand with the dims `S`, or no dim that was asked for is missing.
    #[diagnostic::on_unimplemented(
        message = "dimension `{D}` is not bound in the tensor with dims `{S}`",
        label = "each operand must have `{D}`; if only one has it: `(x * y).sum({D})`"
    )]
    pub trait Shared<D, S> for True {
        /// `X`, if the condition holds.
        type Then<X>;
    }
}
