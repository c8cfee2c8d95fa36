//! Tensors with two axes of the same kind, along a dim and along its [prime](crate::types::prime).

use crate::error::DimError;
use crate::execute::reduce::sum;
use crate::expr::remap::Changes;
use crate::expr::{Binary, Remap};
use crate::operators::linalg::{Dotted, Operable};
use crate::operators::restructure::{Remapped, renamed, whole};
use crate::tensors::named::Named;
use crate::tensors::tensor::{AsTensor, Computable, reference};
use crate::types::condition::condition;
use crate::types::dim::DimRef;
use crate::types::prime::Prime;
use crate::types::rank::Rank;
use crate::types::set::remove::{Missing, Removal, RemoveAll};
use crate::types::set::rename::{CanGain, PartOf};
use crate::types::set::{Bool, Dims, DimsOf, NoDim, Union};
use kernels::ops;
use kernels::scalar::Num;
use twins::panicking_twin;

/// A dim that a tensor with the dims `S` has together with its [prime](crate::types::prime).
pub trait WithPrimeIn<S: Dims>: DimRef {
    #[doc(hidden)]
    const SEAL: crate::seal::Seal;
}

impl<S, D> WithPrimeIn<S> for D
where
    D: DimRef,
    S: Dims<List: RemoveAll<WithPrime<D>, S, Out: Removal>>,
    NoDim<Missing<S, WithPrime<D>>>: HasWithPrime<Missing<S, WithPrime<D>>, S, D::Brand>,
{
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
}

/// A dim that a tensor with the dims `A` and one with the dims `B` both have, together with its
/// [prime](crate::types::prime). `X` is the union of `A` and `B`.
pub trait Composes<A: Dims, B: Dims, X: Dims>: DimRef {
    #[doc(hidden)]
    const SEAL: crate::seal::Seal;
    /// The dim that is summed over: the prime of the prime.
    #[doc(hidden)]
    type Between: DimRef + DimsOf<Self::All, X>;
    /// The dims of the product before the sum.
    #[doc(hidden)]
    type All: Dims;
    #[doc(hidden)]
    fn between(self) -> Self::Between;
}

type WithPrime<D> = (<D as DimRef>::Brand, (Prime<<D as DimRef>::Brand>, ()));
type PrimeOfPrime<D> = <<D as DimRef>::Prime as DimRef>::Prime;
type BrandBetween<D> = Prime<Prime<<D as DimRef>::Brand>>;
type Widened<X, D> = <X as Union<(BrandBetween<D>,)>>::Out;
/// The first of a dim and its prime that `B` does not have, if `A` has both.
type MissingSecond<A, B, D> = <NoDim<Missing<A, WithPrime<D>>> as Bool>::OrNothing<Missing<B, WithPrime<D>>>;

impl<A, B, X, D> Composes<A, B, X> for D
where
    D: DimRef,
    A: Dims<List: RemoveAll<WithPrime<D>, A, Out: Removal>> + Union<B, Out = X>,
    B: Dims<List: RemoveAll<WithPrime<D>, B, Out: Removal>>,
    X: Union<(BrandBetween<D>,)> + CanGain<BrandBetween<D>>,
    NoDim<Missing<A, WithPrime<D>>>: HasWithPrime<Missing<A, WithPrime<D>>, A, D::Brand>,
    NoDim<MissingSecond<A, B, D>>: HasWithPrime<MissingSecond<A, B, D>, B, D::Brand>,
    PrimeOfPrime<D>: DimsOf<Widened<X, D>, X>,
{
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    type Between = PrimeOfPrime<D>;
    type All = Widened<X, D>;

    fn between(self) -> PrimeOfPrime<D> {
        self.primed().primed()
    }
}

condition! {
    /// The condition that a tensor with the dims `S` has `D`, which is `N` or its prime.
    #[diagnostic::on_unimplemented(
        message = "dimension `{D}` is not bound in the tensor with dims `{S}`",
        label = "a tensor with the dims `{N}` and `Prime<{N}>` is expected here: `x.prime({N})` has the second in place of the first"
    )]
    pub trait HasWithPrime<D, S, N> for True;
}

/// Operations on tensors with two axes of the same kind, along a dim and along its
/// [prime](crate::types::prime).
pub trait Priming: AsTensor {
    /// The tensor with the [prime](crate::types::prime) of `dim` in place of `dim`:
    /// `out[n'] = x[n]`. A view.
    ///
    /// ```
    /// use typed_dims::prelude::*;
    ///
    /// dims! { struct City; }
    /// let at = from_vec(City.of(3), vec![1, 4, 9]);
    /// let distances: Tensor<i32, (City, Prime<City>)> = (&at - (&at).prime(City)).abs().eval();
    /// assert_eq!(distances.order((City, prime(City))), ndarray::array![[0, 3, 8], [3, 0, 5], [8, 5, 0]]);
    /// ```
    #[panicking_twin("so is a dim that carries a different size")]
    fn try_prime<D: DimRef<Prime: PartOf<D, Self::Dims>>>(
        self,
        dim: D,
    ) -> Result<Remapped<Self, <D::Prime as PartOf<D, Self::Dims>>::Out>, DimError>
    where
        Self: Computable,
    {
        renamed(self, dim, dim.primed())
    }

    /// The tensor with `dim` in place of its [prime](crate::types::prime): `out[n] = x[n']`. A
    /// view, and the inverse of [`prime`](Priming::prime).
    ///
    /// ```
    /// use typed_dims::prelude::*;
    ///
    /// dims! { struct City; }
    /// let distances = from_vec((City.of(2), prime(City.of(2))), vec![0, 3, 5, 0]);
    /// let farthest: Tensor<i32, (City,)> = distances.max(City).unprime(City).eval();   // the greatest distance to each city
    /// assert_eq!(farthest.order(City), ndarray::array![5, 3]);
    /// ```
    #[panicking_twin("so is a dim that carries a different size")]
    fn try_unprime<D: DimRef + PartOf<<D as DimRef>::Prime, Self::Dims>>(
        self,
        dim: D,
    ) -> Result<Remapped<Self, <D as PartOf<<D as DimRef>::Prime, Self::Dims>>::Out>, DimError>
    where
        Self: Computable,
    {
        renamed(self, dim.primed(), dim)
    }

    /// The transpose of the matrix along a dim and its [prime](crate::types::prime):
    /// `out[n, n'] = x[n', n]`. A view.
    ///
    /// ```
    /// use typed_dims::prelude::*;
    ///
    /// dims! { struct City; }
    /// let roads = from_vec((City.of(2), prime(City.of(2))), vec![0, 1, 0, 0]);
    /// assert_eq!((&roads).transpose(City).order((City, prime(City))), ndarray::array![[0, 0], [1, 0]]);
    /// ```
    ///
    /// For any two dims, write `x.rename_all((A, B), (B, A))`.
    #[panicking_twin("so is a dim that carries a different size")]
    fn try_transpose<D: WithPrimeIn<Self::Dims>>(self, dim: D) -> Result<Remapped<Self, Self::Dims>, DimError>
    where
        Self: Computable,
    {
        let tensor = self.into_named();
        if D::GIVES_SIZE {
            tensor.unified_shape()?.check_given(&dim.info())?;
        }
        let (row, column) = (dim.info().key(), dim.primed().info().key());
        let changes = Changes::from_iter([(row, whole(column)), (column, whole(row))]);
        Ok(Named::from_expr(Remap::of(tensor.expr, changes)))
    }

    /// The matrix product of two tensors along a dim and its [prime](crate::types::prime):
    /// `out[n, n'] = sum over k of x[n, k] * other[k, n']`. All other dims of either tensor are
    /// kept.
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
    /// The sum runs over the prime of the prime, which neither tensor can have. A matrix times a
    /// vector is `x.contract(v.prime(City), prime(City))`, which has the dim `City`.
    #[panicking_twin]
    fn try_compose<B: Operable<Self::Elem>, D: Composes<Self::Dims, B::Dims, X>, X: Dims>(
        &self,
        other: B,
        dim: D,
    ) -> Result<Dotted<Self, B, X>, DimError>
    where
        Self: Computable<Elem: Num>,
    {
        let (own, other) = (self.borrowed(), other.into_named());
        let (column, row) = (dim.primed().info(), dim.info());
        for shape in [reference::<Self>(&own).unified_shape()?, other.unified_shape()?] {
            shape.check_given(&row)?;
        }
        let between = whole(dim.between().info().key());
        let a = Remap::<_, Self::Dims, Self::Rank>::new(&*own, column.key(), between.clone());
        let b = Remap::<_, B::Dims, B::Rank>::new(other.expr, row.key(), between);
        let product: Composition<'_, Self, B, D::All> = Named::from_expr(Binary { op: ops::Mul, a, b });
        sum::<Named<_, D::All, _, _>, D::Between, X>(&product.expr)
    }
}

/// The product of two matrices before the sum. It has the dims `U`.
type Composition<'a, A, B, U> = Named<
    <A as AsTensor>::Elem,
    U,
    <<A as AsTensor>::Rank as Rank>::Max<<B as AsTensor>::Rank>,
    Binary<
        ops::Mul,
        Remap<&'a <A as AsTensor>::Expr, <A as AsTensor>::Dims, <A as AsTensor>::Rank>,
        Remap<<B as AsTensor>::Expr, <B as AsTensor>::Dims, <B as AsTensor>::Rank>,
    >,
>;

impl<A: AsTensor + ?Sized> Priming for A {}
