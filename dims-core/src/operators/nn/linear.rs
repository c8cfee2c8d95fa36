//! Linear maps from any dims to any others.

use crate::creation::create::{SizedDims, try_full};
use crate::error::{DimError, unwrap};
use crate::execute::assign::added_in_place;
use crate::execute::reduce::{TwoFactors, sum_of_factors};
use crate::expr::Binary;
use crate::operators::nn::checks::check_distinct;
use crate::tensors::named::Named;
use crate::types::dim::DimList;
use crate::types::rank::Rank0;
use crate::types::set::list::List;
use crate::types::set::remove::{Left, Missing, Removal, RemoveAll};
use crate::types::set::{Bound, Dims, NoDim, Union};
use kernels::ops;
use kernels::scalar::{Num, Real};
use twins::panicking_twin;

/// A linear map from the dims `I` to the dims `O`:
/// `y[.., O] = sum over I of x[.., I] * weight[I, O] + bias[O]`. Other dims of `x` pass through.
///
/// ```text
/// struct Attention {
///     query: Linear<(Width,), (Head, HeadDim)>,
///     out: Linear<(Head, HeadDim), (Width,)>,
/// }
///
/// let heads = attention.query.apply(&x);          (Batch, Token, Width) becomes (Batch, Token, Head, HeadDim)
/// ```
///
/// With the feature `safetensors`, a `Linear` can be a field of a struct with `#[derive(Load)]`. It
/// is loaded from the arrays `weight`, with the axes `(O, I)` as in PyTorch, and `bias`.
///
/// A map without a bias is a [`Projection`].
///
/// `I` and `O` must list their dims in the order in which they are declared, and must not share a
/// dim; a map that shares one does not build. To map a dim to itself, rename the result: a
/// `Linear<(Width,), (Inner,)>`, and then `rename(Inner, Width)`.
pub struct Linear<I: Dims, O: Dims + Union<I>, T = f32> {
    /// The weights.
    pub weight: Named<T, <O as Union<I>>::Out>,
    /// The bias.
    pub bias: Named<T, O>,
}

/// The dims of a tensor that has all of `I`. A map replaces `I` with `O`. The result has the dims
/// `Z`, which rustc infers.
pub trait MappedBy<I, O, Z>: Dims {
    #[doc(hidden)]
    const SEAL: crate::seal::Seal;
    /// The dims of the tensor and of the weights.
    #[doc(hidden)]
    type All: Dims;
}

impl<X, I, O, Z> MappedBy<I, O, Z> for X
where
    X: Dims<List: RemoveAll<I::Brands, X, Out: Removal<Left: List>>> + Union<<O as Union<I>>::Out>,
    I: Dims + DimList,
    O: Dims + Union<I>,
    Left<X, I::Brands>: Union<O>,
    NoDim<Missing<X, I::Brands>>:
        Bound<Missing<X, I::Brands>, X, Then<<Left<X, I::Brands> as Union<O>>::Out> = Z>,
{
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    type All = <X as Union<<O as Union<I>>::Out>>::Out;
}

impl<I, O, T> Linear<I, O, T>
where
    I: Dims + DimList,
    O: Dims + Union<I>,
    T: Num,
{
    // One constant for all methods, so that rustc reports one error.
    const DISTINCT: () = check_distinct::<I, O>("Linear");

    /// A map with random weights from a normal distribution with the variance `1 / fan_in`, and a
    /// bias of zeros. The fan-in is the product of the sizes of `inputs`.
    ///
    /// ```
    /// use typed_dims::nn::Linear;
    /// use typed_dims::prelude::*;
    ///
    /// dims! { struct Batch; struct Width; struct Head; struct Feat; }
    /// let query = Linear::<(Width,), (Head, Feat)>::new((Width.of(8),), (Head.of(2), Feat.of(4)), 1);
    /// let heads: Tensor<f32, (Batch, Head, Feat)> = query.apply(&ones((Batch.of(3), Width.of(8))));
    /// assert_eq!(heads.size(Head), 2);
    /// ```
    ///
    /// # Panics
    ///
    /// If a dim has no size, its prime has another size, or the weights or the bias do not fit into
    /// memory.
    #[track_caller]
    pub fn new<A: SizedDims<Set = I>, B: SizedDims<Set = O> + Copy>(inputs: A, outputs: B, seed: u64) -> Self
    where
        T: Real,
    {
        let () = Self::DISTINCT;
        let weight = unwrap(crate::creation::init::of_map(inputs, outputs, seed));
        Linear { weight, bias: unwrap(try_full(outputs, T::ZERO)) }
    }

    /// Applies the map to a tensor that has the dims `I`: `(sum over I of x * weight) + bias`. It
    /// runs immediately.
    ///
    /// # Panics
    ///
    /// If `x`, the weight and the bias have different sizes for one dim, or the result does not fit
    /// into memory.
    #[track_caller]
    pub fn apply<X: MappedBy<I, O, Z>, Z: Union<O>>(&self, x: &Named<T, X>) -> Named<T, Z> {
        let () = Self::DISTINCT;
        let products = unwrap(try_project::<I, O, T, X, Z>(x, &self.weight));
        unwrap(added_in_place(products, &self.bias))
    }
}

/// Applies a linear map whose weights are not in a layer: `sum over I of x * weight`.
///
/// `project::<(Width,), (Word,), _, _, _>(&x, &table)` scores words with their embedding table. If
/// the dims are not generic, `(x * &table).sum(Width)` does the same.
#[panicking_twin]
pub fn try_project<I, O, T, X, Z>(
    x: &Named<T, X>,
    weight: &Named<T, <O as Union<I>>::Out>,
) -> Result<Named<T, Z>, DimError>
where
    I: Dims + DimList,
    O: Dims + Union<I>,
    T: Num,
    X: MappedBy<I, O, Z>,
    Z: Dims,
{
    let product = Binary { op: ops::Mul, a: &x.expr, b: &weight.expr };
    let product: Named<T, X::All, Rank0, _> = Named::from_expr(product);
    sum_of_factors::<TwoFactors<X, <O as Union<I>>::Out, I>, Named<T, X::All, Rank0, _>, I, Z>(&product.expr)
}

impl<I: Dims, O: Dims + Union<I>, T: Clone> Clone for Linear<I, O, T> {
    fn clone(&self) -> Self {
        Linear { weight: self.weight.clone(), bias: self.bias.clone() }
    }
}

/// A [`Linear`] map without a bias: `y[.., O] = sum over I of x[.., I] * weight[I, O]`.
///
/// With the feature `safetensors`, a `Projection` can be a field of a struct with
/// `#[derive(Load)]`. It is loaded from the array `weight`, with the axes `(O, I)`.
pub struct Projection<I: Dims, O: Dims + Union<I>, T = f32> {
    /// The weights.
    pub weight: Named<T, <O as Union<I>>::Out>,
}

impl<I, O, T> Projection<I, O, T>
where
    I: Dims + DimList,
    O: Dims + Union<I>,
    T: Num,
{
    // One constant for all methods, so that rustc reports one error.
    const DISTINCT: () = check_distinct::<I, O>("Projection");

    /// A map with random weights from a normal distribution with the variance `1 / fan_in`. The
    /// fan-in is the product of the sizes of `inputs`.
    ///
    /// ```
    /// use typed_dims::nn::Projection;
    /// use typed_dims::prelude::*;
    ///
    /// dims! { struct Batch; struct Width; struct Inner; }
    /// let up = Projection::<(Width,), (Inner,)>::new(Width.of(8), Inner.of(4), 1);
    /// let y: Tensor<f32, (Batch, Inner)> = up.apply(&zeros((Batch.of(3), Width.of(8))));
    /// assert_eq!(y, zeros((Batch.of(3), Inner.of(4))));
    /// ```
    ///
    /// # Panics
    ///
    /// If a dim has no size, its prime has another size, or the weights do not fit into memory.
    #[track_caller]
    pub fn new<A: SizedDims<Set = I>, B: SizedDims<Set = O>>(inputs: A, outputs: B, seed: u64) -> Self
    where
        T: Real,
    {
        let () = Self::DISTINCT;
        Projection { weight: unwrap(crate::creation::init::of_map(inputs, outputs, seed)) }
    }

    /// Applies the map to a tensor that has the dims `I`: `sum over I of x * weight`. It runs
    /// immediately.
    ///
    /// # Panics
    ///
    /// If `x` and the weight have different sizes for one dim, or the result does not fit into
    /// memory.
    #[track_caller]
    pub fn apply<X: MappedBy<I, O, Z>, Z: Dims>(&self, x: &Named<T, X>) -> Named<T, Z> {
        let () = Self::DISTINCT;
        unwrap(try_project::<I, O, T, X, Z>(x, &self.weight))
    }
}

impl<I: Dims, O: Dims + Union<I>, T: Clone> Clone for Projection<I, O, T> {
    fn clone(&self) -> Self {
        Projection { weight: self.weight.clone() }
    }
}
