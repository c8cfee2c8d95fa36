//! The dims of Jacobians.

use crate::types::brand::{Brand, Rest};
use crate::types::condition::condition;
use crate::types::prime::Prime;
use crate::types::set::distinct::{SortOnce, SortedOnce};
use crate::types::set::list::List;
use crate::types::set::remove::Within;
use crate::types::set::{Bool, Dims, FirstWith, MaybeDim, Satisfies, Union};

/// The dims of a Jacobian: the dims of the output and of the input `S`. A dim `N` that both have is
/// `Prime<N>` for the input.
pub trait JacobianOf<S: Dims>: Dims {
    #[doc(hidden)]
    const SEAL: crate::seal::Seal;
    /// The dims of the Jacobian.
    type Out: Dims;
    /// The first dim that the Jacobian would have twice, or
    /// [`Nothing`](crate::types::set::Nothing).
    type Twice: MaybeDim;
}

impl<O, S> JacobianOf<S> for O
where
    O: Dims<List: FirstWith<Within<InputDims<O, S>>>> + Union<<InputDims<O, S> as List>::Tuple>,
    S: Dims<List: PrimedWithin<O::List, Out: SortOnce>>,
{
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    type Out = <O as Union<<InputDims<O, S> as List>::Tuple>>::Out;
    type Twice = DimTwice<O, S>;
}

/// The dims of the Jacobian of an output with the dims `O` with respect to an input with the dims
/// `S`.
pub type JacobianDims<O, S> = <O as JacobianOf<S>>::Out;

/// The dims of the input in the Jacobian, sorted.
type InputSorted<O, S> = <<<S as Dims>::List as PrimedWithin<<O as Dims>::List>>::Out as SortOnce>::Out;
/// [`InputSorted`] as a list.
type InputDims<O, S> = <InputSorted<O, S> as SortedOnce>::List;
/// The first dim that the Jacobian would have twice, or [`Nothing`](crate::types::set::Nothing).
type DimTwice<O, S> = <<<O as Dims>::List as FirstWith<Within<InputDims<O, S>>>>::Found as MaybeDim>::Or<
    <InputSorted<O, S> as SortedOnce>::Twice,
>;

/// The elements of a set, with primes in place of the dims in the list `L`.
pub trait PrimedWithin<L> {
    #[doc(hidden)]
    const SEAL: crate::seal::Seal;
    /// The elements, in order.
    type Out;
}

impl<L> PrimedWithin<L> for () {
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    type Out = ();
}

#[diagnostic::do_not_recommend]
impl<H: Satisfies<Within<L>> + OtherAxis, T: PrimedWithin<L>, L> PrimedWithin<L> for (H, T) {
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    type Out = (<H::Holds as Bool>::If<H::Prime, H>, T::Out);
}

/// An element of a set, which the output and the input of a Jacobian can share.
pub trait OtherAxis {
    #[doc(hidden)]
    const SEAL: crate::seal::Seal;
    /// The prime of a dim. A `Rest` is unchanged, because it has no prime.
    type Prime;
}

#[diagnostic::do_not_recommend]
impl<D: Brand> OtherAxis for D {
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    type Prime = Prime<D>;
}

#[diagnostic::do_not_recommend]
impl<B> OtherAxis for Rest<B> {
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    type Prime = Rest<B>;
}

condition! {
    /// The condition that no dim occurs twice in a Jacobian.
    #[diagnostic::on_unimplemented(
        message = "the Jacobian would have the dim `{D}` twice",
        label = "for a dim that the output and the input share, the Jacobian has its prime, and `{D}` is there already: rename a dim of the output, `y.rename(dim, other)`",
        note = "instead of `#[batched]`, write `vmap(|x: &Tensor<f64, (N,)>| jacobian(f, x), Batch)(&x)`, which loops over the examples"
    )]
    pub trait OncePerDim<D> for True;
}

condition! {
    /// The condition that no dim occurs twice in a Hessian.
    #[diagnostic::on_unimplemented(
        message = "the Hessian would have the dim `{D}` twice",
        label = "the Hessian has each dim of the input and its prime, and `{D}` is there already: give the rows other dims, `hessian(f, &x, (N, prime(N)), (M, prime(M)))`",
        note = "instead of `#[batched]`, write `vmap(|x: &Tensor<f64, (N,)>| hessian_primed(f, x), Batch)(&x)`, which loops over the examples"
    )]
    pub trait OncePerDimOfHessian<D> for True;
}
