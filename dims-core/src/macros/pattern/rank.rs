//! The ranks of the operands and the results of patterns, as types.

use crate::bind::source::RankDyn;
use crate::error::DimError;
use crate::execute::loops::taken;
use crate::execute::order::OrderResult;
use crate::storage::array::array;
use crate::types::rank::*;
use crate::types::set::Dims;
use alloc::vec::Vec;
use kernels::memory::buffer::Buffer;
use kernels::scalar::Element;
use ndarray::{ArrayD, Dimension, IxDyn};

/// A number of axes, static ([`Rank0`] to [`Rank26`]) or dynamic ([`RankDyn`]).
pub trait AnyRank: 'static {
    #[doc(hidden)]
    const SEAL: crate::seal::Seal;
    /// This number plus 1, but at most [`Rank26`].
    type Next: AnyRank;
    /// This number plus `N`, but at most [`Rank26`].
    type With<N: Rank>: AnyRank;
    /// The dimension type of an ndarray array of this rank.
    #[doc(hidden)]
    type Nd: Dimension;
    /// The greater of this number and `O`, or [`RankDyn`] if either is dynamic.
    type Or<O: AnyRank>: AnyRank;
    #[doc(hidden)]
    type OrStatic<O: Rank>: AnyRank;
}

impl<R: Rank> AnyRank for R {
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    type Next = R::Succ;
    type Nd = R::Nd;
    type With<N: Rank> = R::Plus<N>;
    type Or<O: AnyRank> = O::OrStatic<R>;
    type OrStatic<O: Rank> = R::Max<O>;
}

impl AnyRank for RankDyn {
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    type Next = RankDyn;
    type Nd = IxDyn;
    type With<N: Rank> = RankDyn;
    type Or<O: AnyRank> = RankDyn;
    type OrStatic<O: Rank> = RankDyn;
}

/// The operand has as many axes as the pattern names. (A dynamic rank is checked at run time.)
#[diagnostic::on_unimplemented(
    message = "the pattern has `{N}`, but this operand has `{Self}`",
    label = "has `{Self}`, where the pattern has `{N}`",
    note = "name each axis of the operand once, or write `...` for those that stay as they are",
    note = "the dims of a tensor are not axes of the pattern: for dims, use `x.order((i, j))`, `flatten` or `unflatten`"
)]
pub trait HasExactly<N> {
    #[doc(hidden)]
    const SEAL: crate::seal::Seal;
}
#[diagnostic::do_not_recommend]
impl<R: Rank> HasExactly<R> for R {
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
}
#[diagnostic::do_not_recommend]
impl<R> HasExactly<R> for RankDyn {
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
}

/// The operand has at least as many axes as the pattern names. (A dynamic rank is checked at run
/// time.)
#[diagnostic::on_unimplemented(
    message = "the pattern has at least `{N}`, but this operand has `{Self}`",
    label = "has `{Self}`, where the pattern names `{N}`",
    note = "the dims of a tensor are not axes of the pattern: for dims, use `x.order((i, j))`, `flatten` or `unflatten`"
)]
pub trait HasAtLeast<N> {
    #[doc(hidden)]
    const SEAL: crate::seal::Seal;
    /// The number of axes of `...`.
    type Rest: AnyRank;
}
#[diagnostic::do_not_recommend]
impl<N: Rank, R: Rank<Max<N> = R>> HasAtLeast<N> for R {
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    type Rest = N::TakenFrom<R>;
}
#[diagnostic::do_not_recommend]
impl<N> HasAtLeast<N> for RankDyn {
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    type Rest = RankDyn;
}

/// The axes of a result whose pattern has no `...`.
#[derive(Clone, Copy, Debug)]
pub struct Fixed<N>(N);

/// The axes of a result whose pattern has `N` axes and `...`.
#[derive(Clone, Copy, Debug)]
pub struct Spread<N>(N);

/// The number of axes of a result in which `...` has the rank `Rest`.
pub trait OutRank<Rest> {
    #[doc(hidden)]
    const SEAL: crate::seal::Seal;
    /// The number.
    type Rank: AnyRank;
}
impl<N: AnyRank, Rest> OutRank<Rest> for Fixed<N> {
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    type Rank = N;
}
impl<N: Rank, Rest: AnyRank> OutRank<Rest> for Spread<N> {
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    type Rank = Rest::With<N>;
}

/// The type of a result with the dims `S` and `Self` positional axes. With dims, this is a tensor.
/// Without dims, it is a single element for [`Rank0`], and otherwise an ndarray array.
#[diagnostic::on_unimplemented(
    message = "a tensor with dims `{S}` cannot have a dynamic number of further axes",
    label = "bind the array's axes, or convert it to a static rank first: `a.into_dimensionality::<Ix3>()`"
)]
pub trait ResultOf<T, S: Dims>: AnyRank {
    #[doc(hidden)]
    const SEAL: crate::seal::Seal;
    /// The result.
    type Out;
    #[doc(hidden)]
    fn build(data: Vec<T>, sizes: &[usize]) -> Self::Out;
    /// Like `build`, but if the elements are traced and the result is not a tensor, returns an
    /// error that names the operation.
    #[doc(hidden)]
    fn build_of(data: Buffer<T>, sizes: &[usize], operation: &'static str) -> Result<Self::Out, DimError>;
}

#[diagnostic::do_not_recommend]
impl<T, R: Rank, S: Dims + OrderResult<T, R>> ResultOf<T, S> for R {
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    type Out = S::Out;

    #[inline]
    fn build(data: Vec<T>, sizes: &[usize]) -> S::Out {
        S::build(data, sizes)
    }

    #[inline]
    #[track_caller]
    fn build_of(data: Buffer<T>, sizes: &[usize], operation: &'static str) -> Result<S::Out, DimError> {
        S::build_of(data, sizes, operation)
    }
}

#[diagnostic::do_not_recommend]
impl<T: Element> ResultOf<T, ()> for RankDyn {
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    type Out = ArrayD<T>;

    #[inline]
    fn build(data: Vec<T>, sizes: &[usize]) -> ArrayD<T> {
        array(IxDyn(sizes), data)
    }

    #[track_caller]
    fn build_of(data: Buffer<T>, sizes: &[usize], operation: &'static str) -> Result<ArrayD<T>, DimError> {
        Ok(array(IxDyn(sizes), taken(data, operation)?))
    }
}
