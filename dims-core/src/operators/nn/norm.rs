//! Normalisation: elements with the mean 0 and the variance 1 over some dims.

use crate::error::{DimError, unwrap};
use crate::execute::lines::{Lines, along_lines, standardized_affine};
use crate::execute::reduce::TensorOf;
use crate::expr::{Binary, Expr, Operand, Scalar, Unary};
use crate::tensors::named::Named;
use crate::tensors::tensor::{AsTensor, Evaluable, NamedOf, checked};
use crate::types::condition::condition;
use crate::types::dim::{DimRef, JoinedKeys};
use crate::types::rank::{Rank, Rank0};
use crate::types::role::{AllPlay, DataChannel};
use crate::types::set::remove::{Surplus, Within};
use crate::types::set::{Dims, DimsOf, NoDim, Union};
use crate::types::set::{Fails, FirstWith};
use alloc::vec::Vec;
use kernels::ops;
use kernels::scalar::Real;
use kernels::scan::norm::{RootMeanSquare, Standardize};
use kernels::step::lines::StandardizeWithMoments;

/// What [`batch_norm`](Normalization::batch_norm) yields: the elements, and what they were normalised by. The tensor was one of `T` with
/// the dims `S` and the positional axes `R`, and `X` are the dims that it was not normalised over.
pub struct Normalized<T, S: Dims, X: Dims, R: Rank = Rank0> {
    /// The normalised elements.
    pub output: Named<T, S, R>,
    /// The mean over the dims.
    pub mean: Named<T, X, R>,
    /// The variance of the population, over the dims.
    pub var: Named<T, X, R>,
}

/// The result of [`batch_norm_with`](Normalization::batch_norm_with).
pub type NormalizedBy<A, M, V> = Named<
    <A as AsTensor>::Elem,
    <<<A as AsTensor>::Dims as Union<<M as Operand<<A as AsTensor>::Elem>>::Dims>>::Out as Union<
        <V as Operand<<A as AsTensor>::Elem>>::Dims,
    >>::Out,
    <<<A as AsTensor>::Rank as Rank>::Max<<M as Operand<<A as AsTensor>::Elem>>::Rank> as Rank>::Max<
        <V as Operand<<A as AsTensor>::Elem>>::Rank,
    >,
    Binary<
        ops::Mul,
        Binary<ops::Sub, <A as AsTensor>::Expr, <M as Operand<<A as AsTensor>::Elem>>::Expr>,
        Unary<
            ops::Rsqrt,
            Binary<ops::Add, <V as Operand<<A as AsTensor>::Elem>>::Expr, Scalar<<A as AsTensor>::Elem>>,
        >,
    >,
>;

/// The result of [`layer_norm_affine`](Normalization::layer_norm_affine): a tensor with the dims of all three operands.
pub type ScaledAndShifted<A, G, B> = Named<
    <A as AsTensor>::Elem,
    <<<A as AsTensor>::Dims as Union<<G as Operand<<A as AsTensor>::Elem>>::Dims>>::Out as Union<
        <B as Operand<<A as AsTensor>::Elem>>::Dims,
    >>::Out,
>;

/// A gain or a bias for a tensor of `T` with the dims `S`: a tensor whose dims are among these, or a number.
pub trait Learned<T, S: Dims>: Operand<T> {
    #[doc(hidden)]
    const SEAL: crate::seal::Seal;
}

impl<T, S, G> Learned<T, S> for G
where
    S: Dims,
    G: Operand<T, Dims: Dims<List: FirstWith<Fails<Within<S::List>>>>>,
    NoDim<Surplus<G::Dims, S>>: Covered<Surplus<G::Dims, S>, S>,
{
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
}

condition! {
    /// The condition that a gain or a bias has no dim besides those of the tensor.
    #[diagnostic::on_unimplemented(
        message = "dimension `{D}` of the gain or the bias is not bound in a tensor with dims `{S}`",
        label = "the tensor lacks `{D}`; to give it to the result: `x.layer_norm(..) * gain + bias`"
    )]
    pub trait Covered<D, S> for True;
}

/// Normalisations. They run at once, but for [`batch_norm_with`](Normalization::batch_norm_with). A learnt scale and bias are factors and summands as
/// any other: `x.layer_norm(Feat, 1e-5) * &weight + &bias` fuses with what follows.
/// [`layer_norm_affine`](Normalization::layer_norm_affine) has them in the same pass.
///
/// Over which dims decides what a normalisation is called:
///
/// | name | call |
/// |---|---|
/// | layer norm | `x.layer_norm(Feat, eps)`, `x.layer_norm_affine(Feat, eps, &weight, &bias)` |
/// | instance norm | `x.layer_norm((H, W), eps)` |
/// | group norm | `x.group_norm(C, groups, (H, W), eps)` |
/// | batch norm, training | `x.batch_norm((Batch, H, W), eps)` |
/// | batch norm, inference | `x.batch_norm_with(&mean, &var, eps)` |
pub trait Normalization: AsTensor {
    /// `(x - mean) / sqrt(var + eps)`, with the mean and the variance of the population over dims.
    ///
    /// # Panics
    ///
    /// Where [`try_layer_norm`](Normalization::try_layer_norm) returns an error.
    #[doc(alias = "instance_norm")]
    #[track_caller]
    fn layer_norm<D: DimsOf<Self::Dims, X>, X: Dims>(self, dims: D, eps: Self::Elem) -> TensorOf<Self>
    where
        Self: Evaluable<Elem: Real>,
    {
        unwrap(self.try_layer_norm(dims, eps))
    }

    /// As [`layer_norm`](Normalization::layer_norm), but what sizes decide is an error; so is a negative `eps`.
    #[track_caller]
    fn try_layer_norm<D: DimsOf<Self::Dims, X>, X: Dims>(
        self,
        dims: D,
        eps: Self::Elem,
    ) -> Result<TensorOf<Self>, DimError>
    where
        Self: Evaluable<Elem: Real>,
    {
        check_eps("layer_norm", eps)?;
        along_lines::<NamedOf<Self>, D, _>(checked(self, &dims)?, Standardize(eps))
    }

    /// `(x - mean) / sqrt(var + eps) * gain + bias`: [`layer_norm`](Normalization::layer_norm) over dims, then a learnt scale and offset.
    ///
    /// Each line is read once and written once, if `gain` and `bias` have no dims besides `dims`. They can have any dims of `x`, but no others;
    /// either can be a single number.
    ///
    /// ```
    /// use typed_dims::prelude::*;
    ///
    /// dims! { struct Row; struct Feat = 2; }
    /// let x = from_vec((Row.of(2), Feat), vec![1.0, 3.0, 5.0, 1.0]);
    /// let (gain, bias) = (from_vec(Feat, vec![1.0, 10.0]), from_vec(Feat, vec![0.0, 5.0]));
    /// let y = x.layer_norm_affine(Feat, 0.0, &gain, &bias);
    /// assert_eq!(y.order((Row, Feat)), ndarray::array![[-1.0, 15.0], [1.0, -5.0]]);
    /// ```
    ///
    /// # Panics
    ///
    /// Where [`try_layer_norm_affine`](Normalization::try_layer_norm_affine) returns an error.
    #[track_caller]
    #[allow(clippy::multiple_bound_locations)] // rustc quotes the line of the first ones
    fn layer_norm_affine<D, X, G: Learned<Self::Elem, Self::Dims>, B: Learned<Self::Elem, Self::Dims>>(
        self,
        dims: D,
        eps: Self::Elem,
        gain: G,
        bias: B,
    ) -> ScaledAndShifted<Self, G, B>
    where
        Self: Evaluable<Elem: Real, Rank = Rank0>,
        D: DimsOf<Self::Dims, X>,
        X: Dims,
        G: Operand<Self::Elem, Rank = Rank0, Expr: Expr<Elem = Self::Elem>>,
        B: Operand<Self::Elem, Rank = Rank0, Expr: Expr<Elem = Self::Elem>>,
        Self::Dims: Union<G::Dims, Out: Union<B::Dims>>,
    {
        unwrap(self.try_layer_norm_affine(dims, eps, gain, bias))
    }

    /// As [`layer_norm_affine`](Normalization::layer_norm_affine), but what sizes decide is an error; so is a negative `eps`.
    #[allow(clippy::multiple_bound_locations)] // rustc quotes the line of the first ones
    #[track_caller]
    fn try_layer_norm_affine<D, X, G: Learned<Self::Elem, Self::Dims>, B: Learned<Self::Elem, Self::Dims>>(
        self,
        dims: D,
        eps: Self::Elem,
        gain: G,
        bias: B,
    ) -> Result<ScaledAndShifted<Self, G, B>, DimError>
    where
        Self: Evaluable<Elem: Real, Rank = Rank0>,
        D: DimsOf<Self::Dims, X>,
        X: Dims,
        G: Operand<Self::Elem, Rank = Rank0, Expr: Expr<Elem = Self::Elem>>,
        B: Operand<Self::Elem, Rank = Rank0, Expr: Expr<Elem = Self::Elem>>,
        Self::Dims: Union<G::Dims, Out: Union<B::Dims>>,
    {
        scaled_and_shifted(self, dims, eps, gain, bias)
    }

    /// `x / sqrt(mean of x^2 + eps)`, the mean being over dims.
    ///
    /// # Panics
    ///
    /// Where [`try_rms_norm`](Normalization::try_rms_norm) returns an error.
    #[track_caller]
    fn rms_norm<D: DimsOf<Self::Dims, X>, X: Dims>(self, dims: D, eps: Self::Elem) -> TensorOf<Self>
    where
        Self: Evaluable<Elem: Real>,
    {
        unwrap(self.try_rms_norm(dims, eps))
    }

    /// As [`rms_norm`](Normalization::rms_norm), but what sizes decide is an error; so is a negative `eps`.
    #[track_caller]
    fn try_rms_norm<D: DimsOf<Self::Dims, X>, X: Dims>(
        self,
        dims: D,
        eps: Self::Elem,
    ) -> Result<TensorOf<Self>, DimError>
    where
        Self: Evaluable<Elem: Real>,
    {
        check_eps("rms_norm", eps)?;
        along_lines::<NamedOf<Self>, D, _>(checked(self, &dims)?, RootMeanSquare(eps))
    }

    /// As [`layer_norm`](Normalization::layer_norm), over `dims` and over each of `groups` equal parts of `channels`.
    ///
    /// # Panics
    ///
    /// Where [`try_group_norm`](Normalization::try_group_norm) returns an error.
    #[track_caller]
    fn group_norm<C, D, X, Y>(self, channels: C, groups: usize, dims: D, eps: Self::Elem) -> TensorOf<Self>
    where
        Self: Evaluable<Elem: Real>,
        C: DimRef + DimsOf<Self::Dims, X>,
        D: DimsOf<X, Y>,
        X: Dims,
        Y: Dims,
    {
        unwrap(self.try_group_norm(channels, groups, dims, eps))
    }

    /// As [`group_norm`](Normalization::group_norm), but what sizes decide is an error; so are a negative `eps`, and groups that do not divide the channels.
    #[track_caller]
    fn try_group_norm<C, D, X, Y>(
        self,
        channels: C,
        groups: usize,
        dims: D,
        eps: Self::Elem,
    ) -> Result<TensorOf<Self>, DimError>
    where
        Self: Evaluable<Elem: Real>,
        C: DimRef + DimsOf<Self::Dims, X>,
        D: DimsOf<X, Y>,
        X: Dims,
        Y: Dims,
    {
        check_eps("group_norm", eps)?;
        // The channels come first along a line, so that equal parts of it are groups.
        let lines = Lines::recorded::<Self, JoinedKeys<C, D>>(self)?;
        lines.shape.check_given(&channels.info())?;
        lines.shape.check_all_given(&dims)?;
        let size = lines.shape.size(crate::tensors::named::position(&lines.shape, channels.info()));
        if groups == 0 || size % groups != 0 {
            let what = format!("{groups} groups of dim `{}` of size {size}", channels.info().name);
            return Err(DimError::Shape { what });
        }
        let len = lines.len() / groups;
        lines.along(len, Standardize(eps))
    }

    /// As [`layer_norm`](Normalization::layer_norm), with the mean and the variance that were used: what batch normalisation does in training, over
    /// the batch and all dims but the channels.
    ///
    /// # Panics
    ///
    /// Where [`try_batch_norm`](Normalization::try_batch_norm) returns an error.
    #[track_caller]
    fn batch_norm<D: DimsOf<Self::Dims, X>, X: AllPlay<DataChannel>>(
        self,
        dims: D,
        eps: Self::Elem,
    ) -> Normalized<Self::Elem, Self::Dims, X, Self::Rank>
    where
        Self: Evaluable<Elem: Real>,
    {
        unwrap(self.try_batch_norm(dims, eps))
    }

    /// As [`batch_norm`](Normalization::batch_norm), but what sizes decide is an error; so are a negative `eps`, and one value for each channel.
    #[track_caller]
    fn try_batch_norm<D: DimsOf<Self::Dims, X>, X: AllPlay<DataChannel>>(
        self,
        dims: D,
        eps: Self::Elem,
    ) -> Result<Normalized<Self::Elem, Self::Dims, X, Self::Rank>, DimError>
    where
        Self: Evaluable<Elem: Real>,
    {
        check_eps("batch_norm", eps)?;
        let mut lines = Lines::recorded::<Self, D>(self)?;
        lines.shape.check_all_given(&dims)?;
        let len = lines.len();
        if len == 1 {
            let names: Vec<_> = D::KEYS.as_slice().iter().map(|key| key.name).collect();
            let what = format!(
                "`batch_norm` over `{}` has one value for each channel, whose variance is 0: it needs more",
                names.join("`, `")
            );
            return Err(DimError::Shape { what });
        }
        let kind = StandardizeWithMoments { lines: lines.count(), len, eps };
        let mut results = lines.execute(&kind)?;
        let output = lines.alike(results.next())?;
        let mean = lines.reduced::<Self::Elem, X, Self::Rank, Self::Dims>(results.next())?;
        let var = lines.reduced::<Self::Elem, X, Self::Rank, Self::Dims>(results.next())?;
        Ok(Normalized { output, mean, var })
    }

    /// `(x - mean) / sqrt(var + eps)`, with a mean and a variance that are given: batch normalisation in inference. Lazy. Where
    /// `var + eps` is negative, the result is NaN.
    fn batch_norm_with<M, V>(self, mean: M, var: V, eps: Self::Elem) -> NormalizedBy<Self, M, V>
    where
        Self: Evaluable<Elem: Real>,
        M: Operand<Self::Elem>,
        V: Operand<Self::Elem>,
        Self::Dims: Union<M::Dims, Out: Union<V::Dims>>,
    {
        let centred = Binary { op: ops::Sub, a: self.into_named().expr, b: mean.into_expr() };
        let raised = Binary { op: ops::Add, a: var.into_expr(), b: Scalar(eps) };
        let factor = Unary { op: ops::Rsqrt, a: raised };
        Named::from_expr(Binary { op: ops::Mul, a: centred, b: factor })
    }
}

impl<A: AsTensor + ?Sized> Normalization for A {}

/// As [`try_layer_norm_affine`](Normalization::try_layer_norm_affine). It does not require that the dims of the gain and of the bias are dims of the tensor.
#[doc(hidden)]
#[track_caller]
pub fn scaled_and_shifted<A, D, X, G, B>(
    tensor: A,
    dims: D,
    eps: A::Elem,
    gain: G,
    bias: B,
) -> Result<ScaledAndShifted<A, G, B>, DimError>
where
    A: Evaluable<Elem: Real, Rank = Rank0>,
    D: DimsOf<A::Dims, X>,
    X: Dims,
    G: Operand<A::Elem, Rank = Rank0, Expr: Expr<Elem = A::Elem>>,
    B: Operand<A::Elem, Rank = Rank0, Expr: Expr<Elem = A::Elem>>,
    A::Dims: Union<G::Dims, Out: Union<B::Dims>>,
{
    check_eps("layer_norm", eps)?;
    standardized_affine::<_, D, _, _, _>(checked(tensor, &dims)?, eps, gain, bias)
}

/// The number that is added to a variance is not negative.
pub(crate) fn check_eps<T: Real>(operation: &str, eps: T) -> Result<(), DimError> {
    if eps >= T::zero() {
        return Ok(());
    }
    Err(DimError::Shape { what: format!("`{operation}` with the epsilon {eps:?}: it must be 0 or more") })
}
