//! Whether each dim of an expression has a size, as far as rustc can tell.
//!
//! A declared dim is a value, its indices, and need not have a size: `x * Seq.cast::<f32>()` takes that of `x`. Where no operand has the dim,
//! the expression cannot be computed. So each expression lists the dims that wait for a size ([`Expr::Open`](super::Expr::Open)), and says whether it
//! gives one ([`Gives`]). The list is nearly always empty, and then rustc asks no further.

use super::index::ComputedIndex;
use super::{Binary, Expand, Iota, Remap, Scalar, Select, Unary};
use crate::expr::keyed::Keyed;
use crate::storage::{Evaluated, View};
use crate::types::brand::Brand;
use crate::types::rank::Rank;
use crate::types::set::ordered::SameBrand;
use crate::types::set::remove::{Found, RemovalStep, Remove};
use crate::types::set::{Bool, Dims, MaybeDim, NoDim, Nothing};
use crate::types::size::Size;

pub use crate::types::open::{NoSize, Open, OpenInEither};

/// An expression that may have a size for the dim `D`.
pub trait Gives<D> {
    #[doc(hidden)]
    const SEAL: crate::seal::Seal;
    /// `D`, or [`Nothing`].
    type Found: MaybeDim;
}

/// The first of the open dims for which the expression `E` has no size.
#[diagnostic::on_unimplemented(
    message = "rustc does not know whether all dims of this tensor have a size",
    label = "if the tensor is a parameter of the function, bound it by `Evaluable`"
)]
pub trait Without<E> {
    #[doc(hidden)]
    const SEAL: crate::seal::Seal;
    /// The dim, or [`Nothing`].
    type First: MaybeDim;
}

impl<E> Without<E> for () {
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    type First = Nothing;
}

impl<D: Brand, T: Without<E>, E: Gives<D>> Without<E> for NoSize<D, T> {
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    type First = <<LacksSize<D, E> as Bool>::OrNothing<D> as MaybeDim>::Or<T::First>;
}

/// Whether neither the expression `E` nor the dim `D` itself has a size for it.
type LacksSize<D, E> =
    <NoDim<<E as Gives<D>>::Found> as Bool>::And<<<<D as Brand>::Size as Size>::IsStatic as Bool>::Not>;

impl<D, E: Gives<D>> Gives<D> for &E {
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    type Found = E::Found;
}

impl<D: MaybeDim, B> Gives<D> for Iota<'_, B, ()>
where
    B: SameBrand<D>,
{
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    type Found = <B::Out as Bool>::OrNothing<D>;
}

impl<D, B, T> Gives<D> for Iota<'_, B, NoSize<B, T>> {
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    type Found = Nothing;
}

impl<D, T> Gives<D> for Scalar<T> {
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    type Found = Nothing;
}

impl<D: MaybeDim, T, S: Dims<List: Remove<D, Out: RemovalStep>>, R: Rank> Gives<D> for Evaluated<T, S, R> {
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    type Found = Found<D, S>;
}

impl<D: MaybeDim, T, S: Dims<List: Remove<D, Out: RemovalStep>>, R: Rank, X: Gives<D>> Gives<D>
    for View<'_, T, S, R, X>
{
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    type Found = <Found<D, S> as MaybeDim>::Or<X::Found>;
}

impl<D> Gives<D> for () {
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    type Found = Nothing;
}

// The dims of an index can have their sizes from the axis that it looks at.
impl<D: Brand, E, X> Gives<D> for ComputedIndex<E, X> {
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    type Found = D;
}

// Which dims these have is known at run time alone.
impl<D: Brand, T> Gives<D> for Keyed<T> {
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    type Found = D;
}

impl<D: Brand, E, S, R> Gives<D> for Remap<E, S, R> {
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    type Found = D;
}

impl<D, E: Gives<D>, S, B, O> Gives<D> for Expand<'_, E, S, B, O>
where
    Iota<'static, B, O>: Gives<D>,
{
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    type Found = <E::Found as MaybeDim>::Or<<Iota<'static, B, O> as Gives<D>>::Found>;
}

impl<D, O, A: Gives<D>> Gives<D> for Unary<O, A> {
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    type Found = A::Found;
}

impl<D, O, A: Gives<D>, B: Gives<D>> Gives<D> for Binary<O, A, B> {
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    type Found = <A::Found as MaybeDim>::Or<B::Found>;
}

impl<D, C: Gives<D>, A: Gives<D>, B: Gives<D>> Gives<D> for Select<C, A, B> {
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    type Found = <<C::Found as MaybeDim>::Or<A::Found> as MaybeDim>::Or<B::Found>;
}
