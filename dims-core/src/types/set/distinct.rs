//! Sorting dims and finding dims that are named twice.
//!
//! Sorting itself finds a dim that is named twice. A separate search would compare more pairs of
//! dims, and rustc does not know the order of every pair: it may know that `A: Before<B>`, but not
//! how `B` compares with `A`.

use super::list::List;
use super::union::Merge;
use super::{False, MaybeDim, Nothing};
use crate::types::brand::{Compare, CompareKeys, Equal, Greater, Less, SetElement};
use crate::types::condition::{Never, condition};
use core::marker::PhantomData;

condition! {
    /// No dim of `L`, a tensor's dims, is named twice; `D` is one that is, or [`Nothing`].
    #[diagnostic::on_unimplemented(
        message = "dimension `{D}` is named twice in `{L}`",
        label = "each dim can be named once here",
        note = "a tensor has one axis for each dim: a second axis over the same indices is the dim's prime, `Prime<{D}>` as a type and `x.prime({D})` on a tensor; for another dim: `x.rename({D}, Other)`"
    )]
    pub trait OneAxisEach<D, L> for True;
}

// This impl never applies. Without it, rustc reports a violation in a function's parameter twice:
// for the type of the parameter, and for the part of the type that names the dims. With it, the
// violated bound is `D: Never`, and rustc reports it only for the type of the parameter.
#[diagnostic::do_not_recommend]
impl<D: Never, L> OneAxisEach<D, L> for False {
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
}

/// The elements of a list in canonical order.
#[diagnostic::on_unimplemented(
    message = "these are not the dims of a set",
    label = "expected a tuple of dims; a generic dim among others needs an order, `D: AnyDim + Before<Other>`, and `Rest<B>` needs `B: Dims`"
)]
pub trait SortOnce {
    #[doc(hidden)]
    const SEAL: crate::seal::Seal;
    /// The sorted list. If an element is repeated, the list ends in [`Repeated`].
    type Out: SortedOnce;
}

#[diagnostic::do_not_recommend]
impl SortOnce for () {
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    type Out = ();
}

#[diagnostic::do_not_recommend]
impl<H: SetElement, T: SortOnce> SortOnce for (H, T)
where
    T::Out: Insert<H, Out: SortedOnce>,
{
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    type Out = <T::Out as Insert<H>>::Out;
}

/// `L`, a list or the end of one, in which the element `D` was repeated.
pub struct Repeated<D, L>(PhantomData<(D, L)>);

/// The elements of the list `L` in canonical order. Repeated elements appear once.
pub type Canonical<L> = <<L as SortOnce>::Out as SortedOnce>::List;

/// The list `L` as a tuple; `()` if an element is repeated, which another bound reports.
pub type Once<L> = <<<L as SortOnce>::Out as SortedOnce>::Given<L> as List>::Tuple;

/// The result of sorting: a list, which may end in [`Repeated`].
pub trait SortedOnce {
    #[doc(hidden)]
    const SEAL: crate::seal::Seal;
    /// A repeated element, or [`Nothing`].
    type Twice: MaybeDim;
    /// The list with each element once.
    type List: List;
    /// `L` if no element is repeated, otherwise the empty list.
    type Given<L: List>: List;
}

impl SortedOnce for () {
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    type Twice = Nothing;
    type List = ();
    type Given<L: List> = L;
}

// `List` is the same as if the dim had been named once, so that code that uses it gets no second
// error.
impl<D: MaybeDim, L: List> SortedOnce for Repeated<D, L> {
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    type Twice = D;
    type List = L;
    type Given<G: List> = ();
}

#[diagnostic::do_not_recommend]
impl<H, T: SortedOnce> SortedOnce for (H, T)
where
    (H, T::List): List,
{
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    type Twice = T::Twice;
    type List = (H, T::List);
    type Given<L: List> = T::Given<L>;
}

/// Inserts the element `H` into a sorted list. `Self` is the list and not the element, because
/// rustc selects no impl for a type that it has yet to infer.
pub trait Insert<H> {
    #[doc(hidden)]
    const SEAL: crate::seal::Seal;
    /// The list with the element. It ends in [`Repeated`] if an element is repeated.
    type Out;
}

#[diagnostic::do_not_recommend]
impl<H> Insert<H> for () {
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    type Out = (H, ());
}

#[diagnostic::do_not_recommend]
impl<H, D, L> Insert<H> for Repeated<D, L>
where
    (H, ()): Merge<L>,
{
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    type Out = Repeated<D, <(H, ()) as Merge<L>>::Out>;
}

#[diagnostic::do_not_recommend]
impl<H: SetElement, G: SetElement, T> Insert<H> for (G, T)
where
    H::Key: CompareKeys<G::Key>,
    Compare<H, G>: InsertStep<H, G, T>,
{
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    type Out = <Compare<H, G> as InsertStep<H, G, T>>::Out;
}

/// Inserts `H` before `G` or into `T`, or marks it as [`Repeated`] if it is `G`.
pub trait InsertStep<H, G, T> {
    #[doc(hidden)]
    const SEAL: crate::seal::Seal;
    /// The list `(G, T)` with `H`.
    type Out;
}

#[diagnostic::do_not_recommend]
impl<H, G, T> InsertStep<H, G, T> for Less {
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    type Out = (H, (G, T));
}

#[diagnostic::do_not_recommend]
impl<H, G, T: Insert<H>> InsertStep<H, G, T> for Greater {
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    type Out = (G, T::Out);
}

// Two different types with the same key do not compile.
#[diagnostic::do_not_recommend]
impl<H, T: SortedOnce> InsertStep<H, H, T> for Equal {
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    type Out = Repeated<H, (H, T::List)>;
}
