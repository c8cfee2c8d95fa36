//! Whether each dim of an expression has a size, as far as rustc can tell.
//!
//! A declared dim used as a value (its indices) need not have a size: `x * Seq.cast::<f32>()` takes
//! the size from `x`. If no operand has the dim, the expression cannot be computed. So each
//! expression lists the dims that still need a size ([`Expr::Open`](super::Expr::Open)), and says
//! to which dims it gives a size ([`Gives`]).

use super::index::ComputedIndex;
use super::{Binary, Expand, Iota, Remap, Scalar, Select, Unary};
use crate::expr::keyed::Keyed;
use crate::storage::{Evaluated, View};
use crate::types::brand::Brand;
use crate::types::rank::Rank;
use crate::types::set::ordered::Is;
use crate::types::set::remove::{Found, Removal, Remove};
use crate::types::set::{Bool, Dims, MaybeDim, NoDim, Nothing, Satisfies};
use crate::types::size::Size;

pub use crate::types::open::{NoSize, Open, OpenInEither};

/// An expression that may have a size for the dim `D`.
pub trait Gives<D> {
    #[doc(hidden)]
    const SEAL: crate::seal::Seal;
    /// `D` if the expression has a size for it, otherwise [`Nothing`].
    type Found: MaybeDim;
}

/// The first open dim that has no static size and gets no size from the expression `E`.
#[diagnostic::on_unimplemented(
    message = "rustc does not know whether all dims of this tensor have a size",
    label = "if the tensor is a parameter of the function, bound it by `Evaluable`"
)]
pub trait Without<E> {
    #[doc(hidden)]
    const SEAL: crate::seal::Seal;
    /// The dim, or [`Nothing`] if there is none.
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

/// Whether neither the expression `E` nor the dim `D` itself determines the dim's size.
type LacksSize<D, E> =
    <NoDim<<E as Gives<D>>::Found> as Bool>::And<<<<D as Brand>::Size as Size>::IsStatic as Bool>::Not>;

impl<D, E: Gives<D>> Gives<D> for &E {
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    type Found = E::Found;
}

impl<D: MaybeDim, B> Gives<D> for Iota<'_, B, ()>
where
    B: Satisfies<Is<D>>,
{
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    type Found = <B::Holds as Bool>::OrNothing<D>;
}

impl<D, B, T> Gives<D> for Iota<'_, B, NoSize<B, T>> {
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    type Found = Nothing;
}

impl<D, T> Gives<D> for Scalar<T> {
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    type Found = Nothing;
}

impl<D: MaybeDim, T, S: Dims<List: Remove<D, Out: Removal>>, R: Rank> Gives<D> for Evaluated<T, S, R> {
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    type Found = Found<D, S>;
}

impl<D: MaybeDim, T, S: Dims<List: Remove<D, Out: Removal>>, R: Rank, X: Gives<D>> Gives<D>
    for View<'_, T, S, R, X>
{
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    type Found = <Found<D, S> as MaybeDim>::Or<X::Found>;
}

impl<D> Gives<D> for () {
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    type Found = Nothing;
}

// The dims of an index can get their sizes from the axis that it selects from.
impl<D: Brand, E, X> Gives<D> for ComputedIndex<E, X> {
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    type Found = D;
}

// The dims of these elements are known only at run time.
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
