//! Normalizations over some dims: layer norm, RMS norm, group norm, batch norm.

use crate::error::{DimError, RecordedSizeNote};
use crate::execute::lines::{Lines, along_lines, standardized_affine};
use crate::execute::reduce::TensorOf;
use crate::execute::step::note_least;
use crate::expr::operand::Subset;
use crate::expr::{Binary, Expr, Operand, Scalar, Unary};
use crate::tensors::named::Named;
use crate::tensors::tensor::{AsTensor, Evaluable, NamedOf, checked};
use crate::types::dim::{DimRef, JoinedKeys};
use crate::types::rank::{Rank, Rank0};
use crate::types::role::{AllPlay, DataChannel};
use crate::types::set::{Dims, DimsOf, Union};
use alloc::vec::Vec;
use kernels::ops;
use kernels::scalar::Real;
use kernels::scan::norm::{RootMeanSquare, Standardize};
use kernels::step::lines::StandardizeWithMoments;
use twins::panicking_twin;

/// The result of [`batch_norm`](Normalization::batch_norm) on a tensor of `T` with the dims `S` and
/// the positional axes `R`. `X` are the dims of `S` that `batch_norm` does not normalize over.
pub struct Normalized<T, S: Dims, X: Dims, R: Rank = Rank0> {
    /// The normalized elements.
    pub output: Named<T, S, R>,
    /// The mean over the normalized dims.
    pub mean: Named<T, X, R>,
    /// The population variance over the normalized dims.
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

/// The result of [`layer_norm_affine`](Normalization::layer_norm_affine): a tensor with the dims of
/// all three operands.
pub type ScaledAndShifted<A, G, B> = Named<
    <A as AsTensor>::Elem,
    <<<A as AsTensor>::Dims as Union<<G as Operand<<A as AsTensor>::Elem>>::Dims>>::Out as Union<
        <B as Operand<<A as AsTensor>::Elem>>::Dims,
    >>::Out,
>;

/// Normalizations. They run immediately, except for
/// [`batch_norm_with`](Normalization::batch_norm_with). Apply a learned gain and bias with ordinary
/// operators: `x.layer_norm(Feat, 1e-5) * &gain + &bias` fuses with later operations.
/// [`layer_norm_affine`](Normalization::layer_norm_affine) can apply them in the pass that
/// normalizes.
///
/// The usual normalizations differ in their dims:
///
/// | name | call |
/// |---|---|
/// | layer norm | `x.layer_norm(Feat, eps)`, `x.layer_norm_affine(Feat, eps, &gain, &bias)` |
/// | instance norm | `x.layer_norm((H, W), eps)` |
/// | group norm | `x.group_norm(C, groups, (H, W), eps)` |
/// | batch norm, training | `x.batch_norm((Batch, H, W), eps)` |
/// | batch norm, inference | `x.batch_norm_with(&mean, &var, eps)` |
pub trait Normalization: AsTensor {
    /// `(x - mean) / sqrt(var + eps)`, with the mean and the population variance over `dims`.
    #[panicking_twin("so is an `eps` that is negative or NaN")]
    #[doc(alias = "instance_norm")]
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

    /// `(x - mean) / sqrt(var + eps) * gain + bias`: [`layer_norm`](Normalization::layer_norm) over
    /// `dims`, then a learned gain and bias.
    ///
    /// `gain` and `bias` can have any dims of `x`, or be single numbers. If all their dims are in
    /// `dims`, and no gradient or recorded function traces an operand, `gain` and `bias` are
    /// applied in the pass that normalizes. If they have dims that `x` lacks, write
    /// `x.layer_norm(..) * gain + bias`.
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
    #[panicking_twin("so is an `eps` that is negative or NaN")]
    #[allow(clippy::multiple_bound_locations)] // rustc quotes the line of an unmet bound, so `Subset` is on the line of `fn`
    fn try_layer_norm_affine<D, X, G: Subset<Self::Elem, Self::Dims>, B: Subset<Self::Elem, Self::Dims>>(
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
        check_eps("layer_norm_affine", eps)?;
        scaled_and_shifted(self, dims, eps, gain, bias)
    }

    /// `x / sqrt(mean of x^2 + eps)`, with the mean over `dims`.
    #[panicking_twin("so is an `eps` that is negative or NaN")]
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

    /// Splits `channels` into `groups` equal parts, and normalizes each part over its channels and
    /// `dims`, like [`layer_norm`](Normalization::layer_norm).
    #[panicking_twin(
        "so are an `eps` that is negative or NaN, and a number of groups that does not divide the channels"
    )]
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
        // The channels are outermost in a line, so that its equal parts are the groups.
        let lines = Lines::recorded::<Self, JoinedKeys<C, D>>(self)?;
        lines.shape.check_given(&channels.info())?;
        lines.shape.check_all_given(&dims)?;
        let size = lines.shape.size(crate::tensors::named::position(&lines.shape, channels.info()));
        if groups == 0 || size % groups != 0 {
            let name = channels.info().name;
            let note = RecordedSizeNote(&[(name, size)]);
            let what =
                format!("dim `{name}` of size {size} cannot be split into {groups} equal groups{note}");
            return Err(DimError::Shape { what });
        }
        let len = lines.len() / groups;
        lines.along(len, Standardize(eps))
    }

    /// Like [`layer_norm`](Normalization::layer_norm), but also returns the mean and the variance.
    /// For batch normalization in training, `dims` are the batch and all other dims except the
    /// channels.
    #[panicking_twin("so are an `eps` that is negative or NaN, and a single value for each channel")]
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
        let names = || D::KEYS.as_slice().iter().map(|key| key.name).collect::<Vec<_>>().join("`, `");
        if len == 1 {
            let what = format!(
                "`batch_norm` over `{}` has only one value for each channel: two or more are needed for a variance",
                names()
            );
            return Err(DimError::Shape { what });
        }
        // (So that programs for any sizes refuse a single value, too.)
        if len > 1 {
            note_least(2, len, &|| format!("each channel of `batch_norm` over `{}`", names()));
        }
        let kind = StandardizeWithMoments { lines: lines.count(), len, eps };
        let mut results = lines.execute(&kind)?;
        let output = lines.alike(results.next())?;
        let mean = lines.reduced::<Self::Elem, X, Self::Rank, Self::Dims>(results.next())?;
        let var = lines.reduced::<Self::Elem, X, Self::Rank, Self::Dims>(results.next())?;
        Ok(Normalized { output, mean, var })
    }

    /// Batch normalization in inference: `(x - mean) / sqrt(var + eps)`, with a given mean and
    /// variance. Lazy. Where `var + eps` is negative, the result is NaN.
    fn batch_norm_with<M, V>(self, mean: M, var: V, eps: Self::Elem) -> NormalizedBy<Self, M, V>
    where
        Self: Evaluable<Elem: Real>,
        M: Operand<Self::Elem>,
        V: Operand<Self::Elem>,
        Self::Dims: Union<M::Dims, Out: Union<V::Dims>>,
    {
        let centered = Binary { op: ops::Sub, a: self.into_named().expr, b: mean.into_expr() };
        let raised = Binary { op: ops::Add, a: var.into_expr(), b: Scalar(eps) };
        let factor = Unary { op: ops::Rsqrt, a: raised };
        Named::from_expr(Binary { op: ops::Mul, a: centered, b: factor })
    }
}

impl<A: AsTensor + ?Sized> Normalization for A {}

/// Like [`try_layer_norm_affine`](Normalization::try_layer_norm_affine). The gain and the bias may
/// have dims that the tensor lacks.
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

pub(crate) fn check_eps<T: Real>(operation: &str, eps: T) -> Result<(), DimError> {
    if eps >= T::zero() {
        return Ok(());
    }
    Err(DimError::Shape { what: format!("`{operation}` with the epsilon {eps:?}: it must be 0 or more") })
}
