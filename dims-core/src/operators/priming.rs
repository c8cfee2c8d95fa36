//! Tensors with two axes over one set: [`prime`](Priming::prime), [`compose`](Priming::compose) and the like. See [`Prime`](crate::prime).

use crate::brand::{Brand, DimInfo};
use crate::dim::DimRef;
use crate::error::{DimError, unwrap};
use crate::expr::remap::Changes;
use crate::expr::{Binary, Remap};
use crate::linalg::{Dotted, Operable};
use crate::named::{Named, position};
use crate::prime::Prime;
use crate::rank::Rank;
use crate::reduce::sum;
use crate::restructure::{Remapped, Restructure, whole};
use crate::role::KeepsRole;
use crate::set::list::List;
use crate::set::remove::{Missing, Removal, RemoveAll};
use crate::set::rename::CanGain;
use crate::set::{Bool, Dims, DimsOf, NameFor, NoDim, Union};
use crate::size::SameSize;
use crate::tensor::{AsTensor, Computable, checked, reference};
use crate::types::condition::condition;
use kernels::ops;
use kernels::scalar::Num;

/// A dim of a tensor with the dims `S` that can become its [prime](crate::prime): the tensor has it, and does not have the prime.
pub trait Primable<S: Dims>: DimRef<Prime: NameFor<Self, S>> {
    #[doc(hidden)]
    const SEAL: crate::seal::Seal;
}

impl<S: Dims, D: DimRef<Prime: NameFor<D, S>>> Primable<S> for D {
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
}

/// A dim whose [prime](crate::prime) is a dim of a tensor with the dims `S`, which does not have the dim itself.
pub trait Unprimable<S: Dims>: NameFor<<Self as DimRef>::Prime, S> {
    #[doc(hidden)]
    const SEAL: crate::seal::Seal;
}

impl<S: Dims, D: DimRef + NameFor<<D as DimRef>::Prime, S>> Unprimable<S> for D {
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
}

/// The result of [`prime`](Priming::prime).
pub type PrimedTensor<A, D> = Remapped<A, <<D as DimRef>::Prime as NameFor<D, <A as AsTensor>::Dims>>::Out>;

/// The result of [`unprime`](Priming::unprime).
pub type UnprimedTensor<A, D> =
    Remapped<A, <D as NameFor<<D as DimRef>::Prime, <A as AsTensor>::Dims>>::Out>;

/// A dim that a tensor with the dims `A` and one with the dims `B` both have, together with its [prime](crate::prime). `X` are the dims of both tensors.
pub trait Composes<A: Dims, B: Dims, X: Dims>: DimRef {
    #[doc(hidden)]
    const SEAL: crate::seal::Seal;
    /// The dim that is summed over: the prime of the prime.
    #[doc(hidden)]
    type Between: DimRef + DimsOf<Self::All, X>;
    /// The dims of the product before that.
    #[doc(hidden)]
    type All: Dims;
    #[doc(hidden)]
    fn between(self) -> Self::Between;
}

/// The brands of a dim and its prime.
type WithPrime<D> = (<D as DimRef>::Brand, (Prime<<D as DimRef>::Brand>, ()));
/// The value of the prime of the prime.
type Twice<D> = <<D as DimRef>::Prime as DimRef>::Prime;
/// Its brand.
type TwiceBrand<D> = Prime<Prime<<D as DimRef>::Brand>>;
/// The set `X` with the prime of the prime.
type Widened<X, D> = <X as Union<(TwiceBrand<D>,)>>::Out;
/// The first of a dim and its prime that `B` does not have, if `A` has both.
type MissingSecond<A, B, D> =
    <NoDim<Missing<A, WithPrime<D>>> as Bool>::OrNothing<Missing<B, WithPrime<D>>>;

impl<A, B, X, D> Composes<A, B, X> for D
where
    D: DimRef,
    A: Dims<List: RemoveAll<WithPrime<D>, A, Out: Removal<Left: List>>> + Union<B, Out = X>,
    B: Dims<List: RemoveAll<WithPrime<D>, B, Out: Removal<Left: List>>>,
    X: Union<(TwiceBrand<D>,)> + CanGain<TwiceBrand<D>>,
    NoDim<Missing<A, WithPrime<D>>>: HasWithPrime<Missing<A, WithPrime<D>>, A, D::Brand>,
    NoDim<MissingSecond<A, B, D>>: HasWithPrime<MissingSecond<A, B, D>, B, D::Brand>,
    Twice<D>: DimsOf<Widened<X, D>, X>,
{
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    type Between = Twice<D>;
    type All = Widened<X, D>;

    fn between(self) -> Twice<D> {
        self.primed().primed()
    }
}

/// A dim of a tensor with the dims `S` whose axis can be exchanged with that of `B`: both are dims of the tensor, of the same static size and role. `X` are
/// the other dims.
pub trait SwapsWith<B: DimRef, S: Dims, X: Dims>: DimRef {
    #[doc(hidden)]
    const SEAL: crate::seal::Seal;
}

impl<A, B, S: Dims, X: Dims> SwapsWith<B, S, X> for A
where
    A: DimRef + KeepsRole<B>,
    B: DimRef + KeepsRole<A>,
    (A, B): DimsOf<S, X>,
    <A::Brand as Brand>::Size: SameSize<<B::Brand as Brand>::Size, A::Brand, B::Brand>,
{
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
}

condition! {
    /// The condition that the dims `S` of an operand of [`compose`](Priming::compose) have `D`, which is `N` or its prime.
    #[diagnostic::on_unimplemented(
        message = "dimension `{D}` is not bound in the tensor with dims `{S}`",
        label = "`compose` takes two tensors with the dims `({N}, Prime<{N}>)`; of others: `x.contract(&y, dim)`"
    )]
    pub trait HasWithPrime<D, S, N> for True;
}

/// Operations on tensors that have an axis twice, along a dim and along its [prime](crate::prime).
pub trait Priming: Computable {
    operator! {
        /// The tensor with its axis along `dim` along the [prime](crate::prime) of `dim` instead: `out[n'] = x[n]`. A view.
        ///
        /// ```
        /// use typed_dims::prelude::*;
        ///
        /// dims! { struct City; }
        /// let at = from_vec(City.of(3), vec![1, 4, 9]);
        /// let distances: Tensor<i32, (City, Prime<City>)> = (&at - (&at).prime(City)).abs().eval();
        /// assert_eq!(distances.order((City, prime(City))), ndarray::array![[0, 3, 8], [3, 0, 5], [8, 5, 0]]);
        /// ```
        prime try_prime, "so is that the dim has another size",
        [D: Primable<Self::Dims>]
        (self, dim: D) -> PrimedTensor<Self, D> {
            self.try_redefine(dim, dim.primed())
        }
    }

    operator! {
        /// The tensor with its axis along the [prime](crate::prime) of `dim` along `dim` itself: `out[n] = x[n']`, the inverse of
        /// [`prime`](Priming::prime). A view.
        ///
        /// ```
        /// use typed_dims::prelude::*;
        ///
        /// dims! { struct City; }
        /// let distances = from_vec((City.of(2), prime(City.of(2))), vec![0, 3, 5, 0]);
        /// let farthest: Tensor<i32, (City,)> = distances.max(City).unprime(City).eval();   // the greatest distance to each city
        /// assert_eq!(farthest.order(City), ndarray::array![5, 3]);
        /// ```
        unprime try_unprime, "so is that the dim has another size",
        [D: Unprimable<Self::Dims>]
        (self, dim: D) -> UnprimedTensor<Self, D> {
            self.try_redefine(dim.primed(), dim)
        }
    }

    operator! {
        /// The tensor with the axes of two dims exchanged: `out[a, b] = x[b, a]`, where both run over one set. A view. `x.swap(N, prime(N))` is the transpose of a
        /// square matrix.
        ///
        /// ```
        /// use typed_dims::prelude::*;
        ///
        /// dims! { struct City; }
        /// let roads = from_vec((City.of(2), prime(City.of(2))), vec![0, 1, 0, 0]);
        /// let back = (&roads).swap(City, prime(City));
        /// assert_eq!(back.order((City, prime(City))), ndarray::array![[0, 0], [1, 0]]);
        /// ```
        swap try_swap, "so is that a local dim, or one that comes with its size, has another size than the axis that it gets",
        [A: SwapsWith<B, Self::Dims, X>, B: DimRef, X: Dims]
        (self, a: A, b: B) -> Remapped<Self, Self::Dims> {
            let tensor = checked(self, &(a, b))?;
            let shape = tensor.unified_shape()?;
            let known = |dim: DimInfo<'_>| shape.known(position(&shape, dim));
            let (of_a, of_b) = (known(a.info()), known(b.info()));
            a.info().unify(of_b.0, of_b.1)?;
            b.info().unify(of_a.0, of_a.1)?;
            let (a, b) = (a.info().key(), b.info().key());
            Ok(Named::from_expr(Remap::of(tensor.expr, Changes::from_iter([(a, whole(b)), (b, whole(a))]))))
        }
    }

    /// The matrix product of two tensors along a dim and its [prime](crate::prime): `out[n, n'] = sum over k of x[n, k] * other[k, n']`. All
    /// other dims of either tensor are kept.
    ///
    /// ```
    /// use typed_dims::prelude::*;
    ///
    /// dims! { struct City; }
    /// let roads = from_vec((City.of(3), prime(City.of(3))), vec![0, 1, 0, 0, 0, 1, 0, 0, 0]);
    /// let two_steps: Tensor<i32, (City, Prime<City>)> = roads.compose(&roads, City);
    /// assert_eq!(two_steps.order((City, prime(City))), ndarray::array![[0, 0, 1], [0, 0, 0], [0, 0, 0]]);
    /// ```
    ///
    /// The sum runs over the prime of the prime, which neither tensor can have. A matrix times a vector is `x.contract(v.prime(City), prime(City))`, which
    /// has the dim `City`.
    ///
    /// # Panics
    ///
    /// Where [`try_compose`](Priming::try_compose) returns an error.
    #[track_caller]
    fn compose<B: Operable<Self::Elem>, D: Composes<Self::Dims, B::Dims, X>, X: Dims>(
        &self,
        other: B,
        dim: D,
    ) -> Dotted<Self, B, X>
    where
        Self: AsTensor<Elem: Num>,
    {
        unwrap(self.try_compose(other, dim))
    }

    /// As [`compose`](Priming::compose), but what sizes decide is an error.
    #[track_caller]
    fn try_compose<B: Operable<Self::Elem>, D: Composes<Self::Dims, B::Dims, X>, X: Dims>(
        &self,
        other: B,
        dim: D,
    ) -> Result<Dotted<Self, B, X>, DimError>
    where
        Self: AsTensor<Elem: Num>,
    {
        let (own, other) = (self.borrowed(), other.into_named());
        let (column, row) = (dim.primed().info(), dim.info());
        for (shape, of) in [(reference::<Self>(&own).unified_shape()?, row), (other.unified_shape()?, row)] {
            shape.check_given(&of)?;
        }
        let between = whole(dim.between().info().key());
        let a = Remap::<_, Self::Dims, Self::Rank>::new(&*own, column.key(), between.clone());
        let b = Remap::<_, B::Dims, B::Rank>::new(other.expr, row.key(), between);
        let product: Composed<'_, Self, B, D::All> = Named::from_expr(Binary { op: ops::Mul, a, b });
        sum::<Named<_, D::All, _, _>, D::Between, X>(&product.expr)
    }
}

/// The product of two matrices before it is summed, over the dims `U`.
type Composed<'a, A, B, U> = Named<
    <A as AsTensor>::Elem,
    U,
    <<A as AsTensor>::Rank as Rank>::Max<<B as AsTensor>::Rank>,
    Binary<
        ops::Mul,
        Remap<&'a <A as AsTensor>::Expr, <A as AsTensor>::Dims, <A as AsTensor>::Rank>,
        Remap<<B as AsTensor>::Expr, <B as AsTensor>::Dims, <B as AsTensor>::Rank>,
    >,
>;

impl<A: Computable> Priming for A {}
