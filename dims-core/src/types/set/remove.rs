//! Removing dims from a set, as reductions and `order` do.
//!
//! Each step has one result type that holds all of its results: rustc evaluates every occurrence of
//! a projection, so one projection is much cheaper than three.

use super::list::List;
use super::{
    Bool, Bound, Dims, Fails, False, FirstWith, MaybeDim, NamedOnce, NoDim, Nothing, Satisfies, True,
};
use crate::types::brand::{Compare, CompareKeys, Equal, Greater, Less, SetElement};
use crate::types::dim::DimList;
use core::marker::PhantomData;

/// A dim or a tuple of dims that a tensor with the dims `S` has: each is bound, and named once.
/// `Others` are the other dims of `S`, which rustc infers.
///
/// This is the bound of methods that work along dims of one tensor, such as reductions, `softmax`
/// and `index`. It is a bound on the dims passed to a method, not on the tensor, because rustc then
/// reports it without quoting the method's signature. `Others` is a parameter rather than an
/// associated type, so a method's result is a plain type and rustc evaluates the removal once for
/// each call.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a dim",
    label = "a dim of the tensor, or a tuple of its dims, is expected here",
    note = "pass a dim by its name: `Batch` if it is declared, `i` after `dims!(i);`; an axis number is not accepted: to name a positional axis, bind it to a dim, `a.at((i, ..))`"
)]
pub trait DimsOf<S: Dims, Others: Dims>: DimList {
    #[doc(hidden)]
    const SEAL: crate::seal::Seal;
}

impl<S, Others: Dims, D: DimList> DimsOf<S, Others> for D
where
    S: Loses<D, D::Brands, Others>,
    NoDim<S::Missing>: Bound<S::Missing, S, Then<S::Left> = Others>,
    NoDim<S::Twice>: NamedOnce<S::Twice, D>,
{
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
}

/// A set from which the dims `D` with the brands `L` can be removed, because enough of its dims are
/// known.
///
/// `Others` is not used, but while it is not inferred, rustc does not suggest this trait as a bound
/// of the user's function.
#[diagnostic::on_unimplemented(
    message = "rustc cannot find `{D}` among the dims `{Self}`",
    label = "the signature does not name this dim, or does not state the order of a generic dim",
    note = "name it in the signature, with `Rest` for the other dims: `fn f<B: Dims>(x: &Tensor<f32, (Feat, Rest<B>)>)`",
    note = "a generic dim needs `D: AnyDim`, and its order among the others, stated for both dims: `D: Before<Next>` and `where Next: After<D>`, or `D: After<First>` and `where First: Before<D>`"
)]
pub trait Loses<D, L, Others>: Dims {
    #[doc(hidden)]
    const SEAL: crate::seal::Seal;
    /// The first dim that the set does not have, or [`Nothing`].
    type Missing: MaybeDim;
    /// The first dim that is named twice, or [`Nothing`].
    type Twice: MaybeDim;
    /// The other dims.
    type Left: Dims;
}

#[diagnostic::do_not_recommend]
impl<S, D, L, Others> Loses<D, L, Others> for S
where
    S: Dims<List: RemoveAll<L, S, Out: Removal<Left: List>>>,
{
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    type Missing = Missing<S, L>;
    type Twice = Twice<S, L>;
    type Left = Left<S, L>;
}

/// The result of removing the brands `L` from the set `S`.
type RemovalOf<S, L> = <<S as Dims>::List as RemoveAll<L, S>>::Out;
/// The first brand of `L` that `S` does not have, or [`Nothing`].
pub type Missing<S, L> = <RemovalOf<S, L> as Removal>::Missing;
/// The first brand that `L` names twice, or [`Nothing`]. Brands after a missing one do not count:
/// see [`Removed`].
pub type Twice<S, L> = <RemovalOf<S, L> as Removal>::Twice;

/// The set `S` without the brands `L`.
pub type Left<S, L> = <<RemovalOf<S, L> as Removal>::Left as List>::Tuple;

/// The list of the set `S` without the brand `D`.
pub(crate) type ListWithout<S, D> = <<<S as Dims>::List as Remove<D>>::Out as Removal>::Left;

/// Removes one brand from a sorted list.
#[diagnostic::on_unimplemented(
    message = "the order of `{D}` among the dims of this tensor is not known",
    label = "a set or a dim here is generic, and lacks a bound",
    note = "a generic dim needs `D: AnyDim`, and its order among the others, stated for both dims: `D: Before<Next>` and `where Next: After<D>`, or `D: After<First>` and `where First: Before<D>`"
)]
pub trait Remove<D> {
    #[doc(hidden)]
    const SEAL: crate::seal::Seal;
    /// [`Taken`] or [`Absent`].
    type Out;
}

/// The list had the brand; `X` is left.
pub struct Taken<X>(PhantomData<X>);
/// The list `X` does not have the brand `D`.
pub struct Absent<D, X>(PhantomData<(D, X)>);

/// The result of removing brands.
pub trait Removal {
    #[doc(hidden)]
    const SEAL: crate::seal::Seal;
    /// The list that is left.
    type Left;
    /// [`True`] if the list had all of the brands.
    type Had: Bool;
    /// The first brand that the list did not have, or [`Nothing`].
    type Missing: MaybeDim;
    /// The first brand that was named twice, or [`Nothing`].
    type Twice: MaybeDim;
    /// The same result for a list with `H` in front.
    type Behind<H>: Removal;
}

impl<X> Removal for Taken<X> {
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    type Left = X;
    type Had = True;
    type Missing = Nothing;
    type Twice = Nothing;
    type Behind<H> = Taken<(H, X)>;
}

impl<D: MaybeDim, X> Removal for Absent<D, X> {
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    type Left = X;
    type Had = False;
    type Missing = D;
    type Twice = Nothing;
    type Behind<H> = Absent<D, (H, X)>;
}

/// The condition that an element is in the sorted list `L`.
pub struct Within<L>(PhantomData<L>);

#[diagnostic::do_not_recommend]
impl<D, L: Remove<D, Out: Removal>> Satisfies<Within<L>> for D {
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    type Holds = <L::Out as Removal>::Had;
}

/// The dim `D` if the set `S` has it, otherwise [`Nothing`].
pub type Found<D, S> = <<<<S as Dims>::List as Remove<D>>::Out as Removal>::Had as Bool>::OrNothing<D>;

/// The first dim of the set `A` that `B` does not have, or [`Nothing`].
pub type Surplus<A, B> = <<A as Dims>::List as FirstWith<Fails<Within<<B as Dims>::List>>>>::Found;

/// The first dim of the set `A` that `B` has too, or [`Nothing`].
pub type Overlap<A, B> = <<A as Dims>::List as FirstWith<Within<<B as Dims>::List>>>::Found;

#[diagnostic::do_not_recommend]
impl<D> Remove<D> for () {
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    type Out = Absent<D, ()>;
}

#[diagnostic::do_not_recommend]
impl<D: SetElement, H: SetElement, T> Remove<D> for (H, T)
where
    D::Key: CompareKeys<H::Key>,
    Compare<D, H>: RemoveStep<D, H, T>,
{
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    type Out = <Compare<D, H> as RemoveStep<D, H, T>>::Out;
}

/// Stops at the brand or at an element that sorts after it; otherwise goes on.
pub trait RemoveStep<D, H, T> {
    #[doc(hidden)]
    const SEAL: crate::seal::Seal;
    /// [`Taken`] or [`Absent`].
    type Out;
}

#[diagnostic::do_not_recommend]
impl<D, H, T> RemoveStep<D, H, T> for Less {
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    type Out = Absent<D, (H, T)>;
}

#[diagnostic::do_not_recommend]
impl<D, T> RemoveStep<D, D, T> for Equal {
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    type Out = Taken<T>;
}

#[diagnostic::do_not_recommend]
impl<D, H, T> RemoveStep<D, H, T> for Greater
where
    T: Remove<D, Out: Removal>,
{
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    type Out = <T::Out as Removal>::Behind<H>;
}

/// Removes each brand of the list `L` from a sorted list. `S` is the set before anything was
/// removed.
#[diagnostic::on_unimplemented(
    message = "rustc cannot find the dims `{L}` among the dims `{S}`",
    label = "the signature does not name these dims, or does not state the order of a generic dim",
    note = "name them in the signature, with `Rest` for the other dims: `fn f<B: Dims>(x: &Tensor<f32, (Feat, Rest<B>)>)`",
    note = "a generic dim needs `D: AnyDim`, and its order among the others, stated for both dims: `D: Before<Next>` and `where Next: After<D>`, or `D: After<First>` and `where First: Before<D>`"
)]
pub trait RemoveAll<L, S> {
    #[doc(hidden)]
    const SEAL: crate::seal::Seal;
    /// [`Removed`].
    type Out;
}

/// The result of removing several brands. `X` is the remaining list, `M` is the first missing brand
/// and `W` the first one that was named twice; both can be [`Nothing`]. Brands after a missing one
/// are not reported as named twice.
pub struct Removed<X, M, W>(PhantomData<(X, M, W)>);

impl<X, M: MaybeDim, W: MaybeDim> Removal for Removed<X, M, W> {
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    type Left = X;
    type Had = NoDim<M>;
    type Missing = M;
    type Twice = W;
    type Behind<H> = Removed<(H, X), M, W>;
}

#[diagnostic::do_not_recommend]
impl<S, X> RemoveAll<(), S> for X {
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    type Out = Removed<X, Nothing, Nothing>;
}

/// A list that is never used. Without it, `()` would be the only list that can be removed from
/// every set, and rustc would suggest it when a dim is missing.
pub enum NoList {}

#[diagnostic::do_not_recommend]
impl<S, X> RemoveAll<NoList, S> for X {
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    type Out = Removed<X, Nothing, Nothing>;
}

#[diagnostic::do_not_recommend]
impl<S, X, H, T> RemoveAll<(H, T), S> for X
where
    X: Remove<H, Out: AndThen<T, S>>,
{
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    type Out = <X::Out as AndThen<T, S>>::Out;
}

/// Goes on with the next brands. If the brand was absent, also finds out whether it was named twice
/// or never bound.
pub trait AndThen<T, S> {
    #[doc(hidden)]
    const SEAL: crate::seal::Seal;
    /// [`Removed`].
    type Out;
}

#[diagnostic::do_not_recommend]
impl<X: RemoveAll<T, S>, T, S> AndThen<T, S> for Taken<X> {
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    type Out = X::Out;
}

// If the original set has the brand, it was named twice; otherwise it was never bound. The
// remaining list is the same as if each brand had been named once, so that code that uses it gets
// no second error.
#[diagnostic::do_not_recommend]
impl<D: MaybeDim, X, T, S: Dims> AndThen<T, S> for Absent<D, X>
where
    S::List: Remove<D, Out: Removal>,
    X: RemoveAll<T, S, Out: Removal>,
{
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    type Out = Removed<
        <X::Out as Removal>::Left,
        <<<S::List as Remove<D>>::Out as Removal>::Missing as MaybeDim>::Or<<X::Out as Removal>::Missing>,
        Found<D, S>,
    >;
}
