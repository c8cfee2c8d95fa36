//! Sets of dims as flat tuples, `(Batch, Seq)`, and operations on them.
//!
//! Users write flat tuples; the operations recurse on nested pairs, `(Batch, (Seq, ()))`.
//! [`Dims::List`] converts to pairs and [`list::List::Tuple`] back. A set is canonical when it is
//! sorted by key; [`SetOf`] sorts the tuples that users write.
//!
//! An operation does not fail if a dim is missing or is named twice. It yields that dim, or
//! [`Nothing`] if there is no mistake. The trait that carries the message ([`Bound`],
//! [`NamedOnce`]) is required of the result's [`NoDim`], and is implemented only for [`True`]. So a
//! mistake gives one error, in the user's terms, and no follow-up errors.

pub mod distinct;
pub mod keys;
pub mod list;
pub mod ordered;
pub mod remove;
pub mod rename;
pub mod shared;
pub mod union;

pub use keys::{DimKey, Keys, MAX_DIMS};
pub use remove::DimsOf;
pub use rename::NameFor;
pub use shared::DimsOfBoth;
pub use union::Union;

use crate::types::axes::AxisBlock;
use crate::types::condition::condition;
pub use crate::types::condition::{Bool, Fails, False, FirstWith, MaybeDim, NoDim, Nothing, Satisfies, True};
use distinct::{OneAxisEach, SortOnce, SortedOnce};
use list::List;

/// A set of dims, as a tuple: `()`, `(Batch,)`, `(Batch, Seq)`, `(Seq, Rest<B>)`.
///
/// With this bound, a function is generic over its caller's dims:
/// `fn f<B: Dims>(x: Tensor<f32, (Seq, Rest<B>)>)`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a set of dims",
    label = "a tuple of dims is expected here",
    note = "write a set of one dim as `(Batch,)`, an empty set as `()`; `Rest<B>` needs `B: Dims`"
)]
pub trait Dims {
    #[doc(hidden)]
    const SEAL: crate::seal::Seal;
    /// The same elements as nested pairs.
    #[doc(hidden)]
    type List: List<Axes = Self::Axes>;
    /// Sizes and strides of the dims, in the order of the set.
    #[doc(hidden)]
    type Axes: AxisBlock;
    /// The same set with `Rest<B>`, which sorts last. A tuple of 26 elements has no room for it and
    /// stays as it is.
    #[doc(hidden)]
    type Sealed<B: Dims>: Dims;
    /// The dims' keys, for use at run time.
    #[doc(hidden)]
    const KEYS: &'static Keys;
}

/// The canonical set of the dims in a tuple, written in any order.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a set of dims",
    label = "a tuple of dims is expected here",
    note = "write a set of one dim as `(Batch,)`, an empty set as `()`; `Rest<B>` needs `B: Dims`",
    note = "a generic dim needs `D: AnyDim`, and its order among the others, stated for both dims: `D: Before<Next>` and `where Next: After<D>`, or `D: After<First>` and `where First: Before<D>`; a struct that only stores the tensor needs `where (D, Next): SetOf` instead"
)]
pub trait SetOf {
    #[doc(hidden)]
    const SEAL: crate::seal::Seal;
    /// The sorted tuple.
    type Set: Dims;
}

impl<D: Sortable> SetOf for D
where
    NoDim<Repetition<D>>: OneAxisEach<Repetition<D>, D>,
{
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    type Set = <<D::Sorted as SortedOnce>::List as List>::Tuple;
}

/// A dim that is named twice in `D`, or [`Nothing`].
type Repetition<D> = <<D as Sortable>::Sorted as SortedOnce>::Twice;

/// A tuple of dims whose order rustc knows.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a set of dims",
    label = "a tuple of dims is expected here",
    note = "write a set of one dim as `(Batch,)`, an empty set as `()`; `Rest<B>` needs `B: Dims`",
    note = "a generic dim needs `D: AnyDim`, and its order among the others, stated for both dims: `D: Before<Next>` and `where Next: After<D>`, or `D: After<First>` and `where First: Before<D>`; a struct that only stores the tensor needs `where (D, Next): SetOf` instead"
)]
pub trait Sortable {
    #[doc(hidden)]
    const SEAL: crate::seal::Seal;
    /// The dims in canonical order.
    type Sorted: SortedOnce;
}

#[diagnostic::do_not_recommend]
impl<D: Dims<List: SortOnce<Out = Out>>, Out: SortedOnce> Sortable for D {
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    // `Out` is a parameter of the impl, because with a projection in its place, the errors would be
    // about `D::List` instead of `D`.
    type Sorted = Out;
}

/// A set of dims as a tensor has it: each dim once, sorted. Dims of one `dims!` are in order of
/// declaration, primes come after the other dims, and a `Rest` comes last. A set inferred from a
/// `Tensor<T, ..>` is sorted; one written out might not be.
pub trait Sorted: Dims {
    #[doc(hidden)]
    const SEAL: crate::seal::Seal;
}
impl<S: Sortable + SetOf + Dims> Sorted for S
where
    // If a dim is named twice, only that is reported.
    <NoDim<Repetition<S>> as Bool>::If<<S as SetOf>::Set, S>: SortedFrom<S>,
{
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
}

/// The condition that sorting the dims `S` leaves them as they are.
#[diagnostic::on_unimplemented(
    message = "the dims `{S}` are not in order of declaration: `{Self}`",
    label = "write them in the order in which `dims!` declares them: `{Self}`"
)]
pub trait SortedFrom<S> {
    #[doc(hidden)]
    const SEAL: crate::seal::Seal;
}
#[diagnostic::do_not_recommend]
impl<S> SortedFrom<S> for S {
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
}

condition! {
    /// No dim is missing from the set `S`; `D` is the first missing dim, or [`Nothing`].
    #[diagnostic::on_unimplemented(
        message = "dimension `{D}` is not bound in a tensor with dims `{S}`",
        label = "`{D}` is not a dim of this tensor"
    )]
    pub trait Bound<D, S> for True {
        /// `X` if the condition holds. Otherwise, a bound on this type gives no second error.
        type Then<X>;
    }
}

condition! {
    /// No dim of the list `L` is named twice; `D` is the first one that is, or [`Nothing`].
    #[diagnostic::on_unimplemented(
        message = "dimension `{D}` is named twice in `{L}`",
        label = "each dim can be named once here"
    )]
    pub trait NamedOnce<D, L> for True;
}

condition! {
    /// None of the new dims is already in the set `S`; `D` is the first that is, or [`Nothing`].
    #[diagnostic::on_unimplemented(
        message = "dimension `{D}` is already bound in a tensor with dims `{S}`",
        label = "this tensor has `{D}` already: choose another name"
    )]
    pub trait NotYetBound<D, S> for True;
}
