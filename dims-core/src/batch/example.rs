//! Types as written for one example, and their types in a batch.

use crate::storage::View;
use crate::tensors::named::Named;
use crate::types::rank::Rank;
use crate::types::set::Dims;
use alloc::vec::Vec;
use core::marker::PhantomData;
use kernels::scalar::Element;

/// A tensor type in the signature of a batched function: `Tensor<f32, (Seq,)>` or a reference to
/// one.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a tensor, so it cannot be batched",
    label = "`Tensor<..>` or `&Tensor<..>` is expected here"
)]
pub trait Example {
    #[doc(hidden)]
    const SEAL: crate::seal::Seal;
    /// The type of the elements.
    type Elem: Element;
    /// The dims of one example.
    type Dims: Dims;
    /// The positional axes of one example.
    type Rank: Rank;
}

impl<T: Element, S: Dims, R: Rank> Example for Named<T, S, R> {
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    type Elem = T;
    type Dims = S;
    type Rank = R;
}

impl<W: Example> Example for &W {
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    type Elem = W::Elem;
    type Dims = W::Dims;
    type Rank = W::Rank;
}

/// The dims of an example, and a rest.
type SealedDims<W, B> = <<W as Example>::Dims as Dims>::Sealed<B>;

/// A tensor type with the extra dims `B`: `Tensor<f32, (Seq,)>` becomes
/// `Tensor<f32, (Seq, Rest<B>)>`.
pub type In<W, B> = Named<<W as Example>::Elem, SealedDims<W, B>, <W as Example>::Rank>;

/// The type of a parameter inside a batched function: a view of the argument.
pub type Param<'a, W, B> = Named<
    <W as Example>::Elem,
    SealedDims<W, B>,
    <W as Example>::Rank,
    View<'a, <W as Example>::Elem, SealedDims<W, B>, <W as Example>::Rank>,
>;

/// The type of a parameter inside a batched function, if it takes no extra dims.
pub type Alone<'a, W> = Named<
    <W as Example>::Elem,
    <W as Example>::Dims,
    <W as Example>::Rank,
    View<'a, <W as Example>::Elem, <W as Example>::Dims, <W as Example>::Rank>,
>;

/// Checks the type of a parameter of a `#[batched]` function, if it is not written as a tensor.
/// An attribute only sees names, so an alias of a tensor type looks like any other type. For a
/// tensor type, `check` is the inherent method, whose bound nothing satisfies; for all other types
/// it is the method of [`NoTensor`].
pub struct Spelling<T: ?Sized>(PhantomData<T>);

impl<T: ?Sized> Spelling<T> {
    /// The value to call `check` on.
    pub const LOOK: Self = Spelling(PhantomData);
}

impl<T: Example> Spelling<T> {
    /// A call does not compile.
    pub fn check(&self, _: impl Spelled<T>) {}
}

/// See [`Spelling`].
pub trait NoTensor {
    #[doc(hidden)]
    const SEAL: crate::seal::Seal;
    /// Does nothing.
    fn check(&self, (): ()) {}
}

impl<T: ?Sized> NoTensor for Spelling<T> {
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
}

/// Never implemented.
#[diagnostic::on_unimplemented(
    message = "this parameter of a batched function is an alias of the tensor `{T}`",
    label = "write `Tensor<..>` or `&Tensor<..>` here",
    note = "`#[batched]` sees how a type is written, and cannot look through an alias"
)]
pub trait Spelled<T> {
    #[doc(hidden)]
    const SEAL: crate::seal::Seal;
}

/// A part of a result that is the same for all examples: a type other than a tensor.
pub struct Plain<T>(PhantomData<T>);

/// A result type as written for one example: a tensor or [`Plain`], or these in a tuple, `Option`,
/// `Result`, `Vec` or array.
#[diagnostic::on_unimplemented(
    message = "a batched function cannot return `{Self}`",
    label = "`Tensor<..>`, or a tuple, `Option`, `Result`, `Vec` or array of tensors, is expected here"
)]
pub trait Output {
    #[doc(hidden)]
    const SEAL: crate::seal::Seal;
    /// The type with the extra dims `B`.
    type In<B: Dims>;
}

impl<T: Element, S: Dims, R: Rank> Output for Named<T, S, R> {
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    type In<B: Dims> = In<Self, B>;
}

impl<T> Output for Plain<T> {
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    type In<B: Dims> = T;
}

impl<W: Output> Output for Option<W> {
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    type In<B: Dims> = Option<W::In<B>>;
}

impl<W: Output, E> Output for Result<W, E> {
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    type In<B: Dims> = Result<W::In<B>, E>;
}

impl<W: Output> Output for Vec<W> {
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    type In<B: Dims> = Vec<W::In<B>>;
}

impl<W: Output, const N: usize> Output for [W; N] {
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    type In<B: Dims> = [W::In<B>; N];
}

macro_rules! tuples {
    ($($w:ident)*) => {
        impl<$($w: Output),*> Output for ($($w,)*) {
            const SEAL: crate::seal::Seal = crate::seal::SEAL;
            type In<X: Dims> = ($($w::In<X>,)*);
        }
    };
}

tuples! {}
tuples! { A }
tuples! { A B }
tuples! { A B C }
tuples! { A B C D }
tuples! { A B C D E }
tuples! { A B C D E F }
tuples! { A B C D E F G }
tuples! { A B C D E F G H }
