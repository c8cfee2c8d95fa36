//! `attention`: softmax-weighted means. Without dropout, the scores are not stored as a whole.

use crate::creation::random::{IntoSeed, Seed};
use crate::error::DimError;
use crate::execute::attention::{AttentionAxes, AttentionStep};
use crate::execute::reduce::{TwoFactors, WideOf, along, is_half, narrowed, sum_of_factors, widened};
use crate::expr::{Binary, Expr, Operand, Scalar, Select};
use crate::operators::nn::dropout::Dropout as _;
use crate::plan::axes::AxisList;
use crate::plan::shape::Shape;
use crate::storage::Evaluated;
use crate::tensors::named::{Named, position};
use crate::tensors::tensor::{AsTensor, Computable};
use crate::types::condition::condition;
use crate::types::dim::DimList;
use crate::types::rank::Rank0;
use crate::types::set::Bool;
use crate::types::set::list::List;
use crate::types::set::ordered::Shares;
use crate::types::set::remove::{Left, Missing, Removal, RemoveAll, Twice};
use crate::types::set::{Bound, Dims, DimsOfBoth, NamedOnce, NoDim, Union};
use core::marker::PhantomData;
use kernels::ops;
use kernels::scalar::{Adds, Element, Masks, Num, Real, ScoreChange};
use kernels::scan::Softmax;
use num_traits::Float;
use twins::panicking_twin;

/// The dims of queries and keys.
type ScoreDims<Q, K> = <<Q as AsTensor>::Dims as Union<<K as AsTensor>::Dims>>::Out;

/// The dims of scores and values.
type Weighed<S, V> = <S as Union<<V as AsTensor>::Dims>>::Out;

/// The condition that a mask has only dims of the scores.
#[diagnostic::on_unimplemented(
    message = "a mask with dims `{M}` does not fit scores with dims `{Self}`",
    label = "the mask has dims that the scores do not have"
)]
pub trait MaskedBy<M>: Dims {
    #[doc(hidden)]
    const SEAL: crate::seal::Seal;
}
#[diagnostic::do_not_recommend]
impl<S: Dims + Union<M, Out = S>, M: Dims> MaskedBy<M> for S {
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
}

/// A dim or a tuple of dims that attention sums over. Keys (dims `K`) and values (dims `V`) must
/// have them, and queries (dims `Q`) must not. `U` is the union of the dims of scores and values.
/// rustc infers `Others`, the dims of `U` that are not summed over.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a dim",
    label = "a dim of the keys and values, or a tuple of such dims, is expected here",
    note = "pass a dim by its name: `Batch` if it is declared, `i` after `dims!(i);`"
)]
pub trait AttendedDims<Q: Dims, K: Dims, V: Dims, U: Dims, Others: Dims>: DimList {
    #[doc(hidden)]
    const SEAL: crate::seal::Seal;
}

impl<Q: Dims, K: Dims, V: Dims, U: Dims, Others: Dims, D: DimList> AttendedDims<Q, K, V, U, Others> for D
where
    K::List: RemoveAll<D::Brands, K, Out: Removal>,
    V::List: RemoveAll<D::Brands, V, Out: Removal>,
    U::List: RemoveAll<D::Brands, U, Out: Removal<Left: List>>,
    Q::List: Shares<D::Brands>,
    NoDim<Twice<U, D::Brands>>: NamedOnce<Twice<U, D::Brands>, D>,
    // Only the first of several mistakes is reported.
    NoDim<Missing<K, D::Brands>>: Bound<Missing<K, D::Brands>, K, Then<Left<U, D::Brands>> = Others>,
    NoDim<NotInValues<K, V, D>>: Bound<NotInValues<K, V, D>, V>,
    NoDim<InQueries<Q, K, V, U, D>>: NotQueried<InQueries<Q, K, V, U, D>, Q>,
{
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
}

/// The first of the dims `D` that the values lack, if the keys have them all.
type NotInValues<K, V, D> =
    <NoDim<Missing<K, <D as DimList>::Brands>> as Bool>::OrNothing<Missing<V, <D as DimList>::Brands>>;

/// The first of the dims `D` that the queries have, if the other conditions hold.
type InQueries<Q, K, V, U, D> =
    <<<NoDim<Missing<K, <D as DimList>::Brands>> as Bool>::And<NoDim<NotInValues<K, V, D>>> as Bool>::And<
        NoDim<Twice<U, <D as DimList>::Brands>>,
    > as Bool>::OrNothing<<<Q as Dims>::List as Shares<<D as DimList>::Brands>>::Found>;

condition! {
    /// The condition that `D` is not a dim of the queries, whose dims are `S`.
    #[diagnostic::on_unimplemented(
        message = "dimension `{D}` is also bound in the queries with dims `{S}`",
        label = "a query attends to all of `{D}`: rename it in the keys and values, `keys.rename({D}, ..)`"
    )]
    pub trait NotQueried<D, S> for True;
}

/// A mask, a bias, or both, applied to scores of `T` before the softmax.
///
/// | | scores |
/// |---|---|
/// | `true` | unchanged |
/// | `false` | minus infinity |
/// | a tensor of `bool` | minus infinity where it is `false` |
/// | a tensor of `T` | plus the tensor |
/// | `(mask, bias)`, one of each | plus the bias, minus infinity where the mask is `false` |
///
/// The tensors may be expressions or references. Without dropout, mask and bias are computed tile
/// by tile. Where the mask is `false`, the bias is not read, so its indices may be out of range
/// there. A tile whose bias is minus infinity everywhere is skipped: there, a NaN in the queries,
/// keys or values has no effect, although a NaN plus minus infinity is NaN.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is neither a mask nor a bias for scores of `{T}`",
    label = "expected `true`, a tensor of `bool`, a tensor of `{T}`, or a pair of both: `(mask, bias)`"
)]
pub trait Mask<T> {
    #[doc(hidden)]
    const SEAL: crate::seal::Seal;
    /// The dims of the mask and the bias.
    type Dims: Dims;
    /// Which scores count.
    #[doc(hidden)]
    type Allowed: Expr<Elem = bool>;
    /// The tensor that is added to the scores.
    #[doc(hidden)]
    type Bias: Expr<Elem = T>;
    /// Whether there is a bias.
    #[doc(hidden)]
    const BIASED: bool;
    #[doc(hidden)]
    fn into_parts(self) -> (Self::Allowed, Self::Bias);
}

#[diagnostic::do_not_recommend]
impl<T: Real> Mask<T> for bool {
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    type Dims = ();
    type Allowed = Scalar<bool>;
    type Bias = Scalar<T>;
    const BIASED: bool = false;

    fn into_parts(self) -> (Scalar<bool>, Scalar<T>) {
        (Scalar(self), Scalar(T::ZERO))
    }
}

/// Turns an expression into a mask and a bias. The element type decides which of the two the
/// expression becomes. The other one leaves every score unchanged.
#[doc(hidden)]
pub trait ScoreParts<T, E> {
    const SEAL: crate::seal::Seal;
    type Allowed: Expr<Elem = bool>;
    type Bias: Expr<Elem = T>;
    const BIASED: bool;
    fn parts(expr: E) -> (Self::Allowed, Self::Bias);
}

impl<T: Real, E: Expr<Elem = bool>> ScoreParts<T, E> for Masks {
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    type Allowed = E;
    type Bias = Scalar<T>;
    const BIASED: bool = false;

    fn parts(mask: E) -> (E, Scalar<T>) {
        (mask, Scalar(T::ZERO))
    }
}

impl<T: Real, E: Expr<Elem = T>> ScoreParts<T, E> for Adds {
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    type Allowed = Scalar<bool>;
    type Bias = E;
    const BIASED: bool = true;

    fn parts(bias: E) -> (Scalar<bool>, E) {
        (Scalar(true), bias)
    }
}

macro_rules! masks {
    ($([$($life:lifetime)?] $own:ty;)*) => {$(
        #[diagnostic::do_not_recommend]
        impl<$($life,)? T: Real, C: ScoreChange<T>, S: Dims, E: Expr<Elem = C>> Mask<T> for $(&$life)? Named<C, S, Rank0, E>
        where
            C::Kind: ScoreParts<T, $own>,
        {
            const SEAL: crate::seal::Seal = crate::seal::SEAL;
            type Dims = S;
            type Allowed = <C::Kind as ScoreParts<T, $own>>::Allowed;
            type Bias = <C::Kind as ScoreParts<T, $own>>::Bias;
            const BIASED: bool = <C::Kind as ScoreParts<T, $own>>::BIASED;

            fn into_parts(self) -> (Self::Allowed, Self::Bias) {
                C::Kind::parts(self.into_named().expr)
            }
        }
    )*};
}

masks! {
    [] E;
    ['a] &'a E;
}

#[diagnostic::do_not_recommend]
impl<T: Element, M, B> Mask<T> for (M, B)
where
    M: Operand<bool, Rank = Rank0, Expr: Expr<Elem = bool>, Dims: Union<B::Dims>>,
    B: Operand<T, Rank = Rank0, Expr: Expr<Elem = T>>,
{
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    type Dims = <M::Dims as Union<B::Dims>>::Out;
    type Allowed = M::Expr;
    type Bias = B::Expr;
    const BIASED: bool = true;

    fn into_parts(self) -> (M::Expr, B::Expr) {
        (self.0.into_expr(), self.1.into_expr())
    }
}

/// Attention: the mean of `v` over the dims `over`, weighted by the softmax of
/// `scale * (q * k).sum(features)`.
///
/// ```text
/// scores[.., over] = scale * sum over features of q[.., features] * k[.., over, features]
///                    + bias[.., over]     where the mask is true
/// scores[.., over] = -infinity            elsewhere
/// out[..]          = sum over `over` of softmax(scores)[.., over] * v[.., over]
/// ```
///
/// Queries and keys must have the dims `features`. Keys and values must have the dims `over`, and
/// queries must not. Any other dims can be batched, shared or missing, as if you wrote the product,
/// the softmax and the weighted sum separately. The scores are computed in tiles that stay in the
/// cache, with a running maximum and a running sum for each query (M. Milakov, N. Gimelshein, 2018,
/// "Online normalizer calculation for softmax"; T. Dao et al., 2022, "FlashAttention").
///
/// `mask` is a `bool`, a tensor of `bool`, a bias, or a pair of mask and bias ([`Mask`]). It may
/// only have dims of the scores. For queries `i` and keys `j`, `i.ge(j)` is the causal mask, and
/// `slope * (j - i).cast::<f32>()` is the bias of ALiBi. Expressions are computed tile by tile.
/// Tiles that the mask excludes completely, or whose bias is minus infinity everywhere, are
/// skipped. If all keys of a query are excluded, the query's result and the gradients through it
/// are 0. (A plain softmax of minus infinities would be NaN.)
///
/// [`Attend`] is a builder with the same settings, and with dropout.
///
/// ```
/// use typed_dims::prelude::*;
///
/// dims! { struct Seq; struct Key; struct Head; struct Feat = 4; }
/// let q = rand::<f32, _>((Seq.of(5), Head.of(2), Feat), 1);
/// let k = rand::<f32, _>((Key.of(5), Head.of(2), Feat), 2);
/// let v = rand::<f32, _>((Key.of(5), Head.of(2), Feat), 3);
/// let scale = (Feat::SIZE as f32).powf(-0.5);
/// let whole = attention(&q, &k, &v, Feat, Key, scale, true);
/// let causal = attention(&q, &k, &v, Feat, Key, scale, Seq.ge(Key));
/// let slope = from_vec(Head.of(2), vec![0.5, 0.25]);
/// let alibi = attention(&q, &k, &v, Feat, Key, scale, (Seq.ge(Key), &slope * (Key - Seq).cast::<f32>()));
///
/// let written_out = (((&q * &k).sum(Feat) * scale).softmax(Key) * &v).sum(Key);
/// assert!((&whole - written_out).abs().max((Seq, Head, Feat)).order(()) < 1e-6);
/// // The first query attends only to the first key.
/// assert!(((&causal).index(Seq, 0) - (&v).index(Key, 0)).abs().max((Head, Feat)).order(()) < 1e-6);
/// assert!((alibi - causal).abs().max((Seq, Head, Feat)).order(()) > 0.0);
/// ```
#[panicking_twin]
#[rustfmt::skip] // On one line because rustc quotes the function and the unmet bound from here.
pub fn try_attention<Q, K, V, F: DimsOfBoth<Q::Dims, K::Dims, ScoreDims<Q, K>, S>, O: AttendedDims<Q::Dims, K::Dims, V::Dims, Weighed<S, V>, X>, M: Mask<Q::Elem>, S, X>(
    q: Q,
    k: K,
    v: V,
    features: F,
    over: O,
    scale: Q::Elem,
    mask: M,
) -> Result<Named<Q::Elem, X>, DimError>
where
    Q: Computable<Elem: Real, Rank = Rank0, Dims: Union<K::Dims>>,
    K: Computable<Elem = Q::Elem, Rank = Rank0>,
    V: Computable<Elem = Q::Elem, Rank = Rank0>,
    ScoreDims<Q, K>: Union<V::Dims>,
    S: Union<V::Dims> + MaskedBy<M::Dims>,
    X: Dims,
{
    attend::<Q, K, V, F, O, M, S, X>(q, k, v, &features, &over, mask, |_| scale, None)
}

/// Attention. `scale` computes the factor for the products of queries and keys from the sizes of
/// all dims. With `dropped`, weights are dropped at random.
#[track_caller]
#[allow(clippy::too_many_arguments)]
fn attend<Q, K, V, F, O, M, S, X>(
    q: Q,
    k: K,
    v: V,
    features: &F,
    over: &O,
    mask: M,
    scale: impl FnOnce(&Shape) -> Q::Elem,
    dropped: Option<(f64, Seed)>,
) -> Result<Named<Q::Elem, X>, DimError>
where
    Q: Computable<Elem: Real, Rank = Rank0, Dims: Union<K::Dims>>,
    K: Computable<Elem = Q::Elem, Rank = Rank0>,
    V: Computable<Elem = Q::Elem, Rank = Rank0>,
    F: DimList,
    O: DimList,
    M: Mask<Q::Elem>,
    ScoreDims<Q, K>: Union<V::Dims>,
    S: Union<V::Dims>,
    X: Dims,
{
    let (q, k, v) = (q.into_named().expr, k.into_named().expr, v.into_named().expr);
    let (mask, bias) = mask.into_parts();
    let mut shape = Shape::new::<AttentionDims<Q, K, V>, Rank0>();
    q.unify::<AttentionDims<Q, K, V>, Rank0>(&mut shape)?;
    k.unify::<AttentionDims<Q, K, V>, Rank0>(&mut shape)?;
    v.unify::<AttentionDims<Q, K, V>, Rank0>(&mut shape)?;
    mask.unify::<AttentionDims<Q, K, V>, Rank0>(&mut shape)?;
    bias.unify::<AttentionDims<Q, K, V>, Rank0>(&mut shape)?;
    shape.finish()?;
    shape.check_all_given(features)?;
    shape.check_all_given(over)?;
    let scale = scale(&shape);
    if let Some(dropped) = dropped {
        if const { is_half::<Q::Elem>() } {
            // As in the step below, the scores are not rounded to half precision.
            let (operands, bias) = ((widened(q), widened(k), widened(v)), widened(bias));
            let wide = with_dropout::<WideOf<Q, _>, WideOf<K, _>, WideOf<V, _>, F, O, Q::Elem, M, _, S, X>(
                operands,
                (&mask, &bias),
                scale.widen(),
                dropped,
            )?;
            return narrowed::<Q::Elem, X, Rank0>(wide);
        }
        return with_dropout::<Q, K, V, F, O, Q::Elem, M, _, S, X>((q, k, v), (&mask, &bias), scale, dropped);
    }
    let axes = AttentionAxes {
        operands: [
            PositionsAmong::<Q::Dims, AttentionDims<Q, K, V>>::AXES.as_slice(),
            PositionsAmong::<K::Dims, AttentionDims<Q, K, V>>::AXES.as_slice(),
            PositionsAmong::<V::Dims, AttentionDims<Q, K, V>>::AXES.as_slice(),
        ],
        changes: PositionsAmong::<M::Dims, AttentionDims<Q, K, V>>::AXES.as_slice(),
        kept: PositionsAmong::<X, AttentionDims<Q, K, V>>::IN_MEMORY.as_slice(),
        features: listed::<F, AttentionDims<Q, K, V>>(),
        over: listed::<O, AttentionDims<Q, K, V>>(),
        scores: PositionsAmong::<S, AttentionDims<Q, K, V>>::AXES.as_slice(),
    };
    let step = AttentionStep::<Q, K, V, _, _> {
        q: &q,
        k: &k,
        v: &v,
        scale,
        mask: &mask,
        bias: M::BIASED.then_some(&bias),
    };
    let data = step.execute::<AttentionDims<Q, K, V>>(&shape, &axes)?;
    let sizes = shape.sizes_in(axes.kept);
    Ok(Named::from_expr(Evaluated::laid_out(data, &sizes)))
}

/// Attention with dropout. `M` is the mask that the user passed, for scores of `T`. If `T` is a
/// half precision, all other operands, including the bias of the mask, are already converted to
/// `f32`.
#[track_caller]
fn with_dropout<Q, K, V, F, O, T, M, B, S, X>(
    (q, k, v): (Q::Expr, K::Expr, V::Expr),
    (mask, bias): (&M::Allowed, &B),
    scale: Q::Elem,
    (p, seed): (f64, Seed),
) -> Result<Named<Q::Elem, X>, DimError>
where
    Q: Computable<Elem: Real, Rank = Rank0, Dims: Union<K::Dims>>,
    K: Computable<Elem = Q::Elem, Rank = Rank0>,
    V: Computable<Elem = Q::Elem, Rank = Rank0>,
    F: DimList,
    O: DimList,
    M: Mask<T>,
    B: Expr<Elem = Q::Elem>,
    S: Union<V::Dims>,
    X: Dims,
{
    let weights = weights::<Q, K, F, O, _, _, S>((q, k), (mask, bias), scale)?.try_dropout(p, seed)?;
    if const { M::BIASED } {
        let excluded = Scalar(<Q::Elem as Float>::neg_infinity());
        let is_included = Binary { op: ops::Ne, a: bias, b: excluded };
        let counts = Select { cond: mask, a: is_included, b: Scalar(false) };
        weighed::<V, O, _, S, X>(weights, counts, v)
    } else {
        weighed::<V, O, _, S, X>(weights, mask, v)
    }
}

/// The softmax of scores. All scores are stored in memory.
#[track_caller]
fn weights<Q, K, F, O, M, B, S>(
    (q, k): (Q::Expr, K::Expr),
    (mask, bias): (&M, B),
    scale: Q::Elem,
) -> Result<Named<Q::Elem, S>, DimError>
where
    Q: Computable<Elem: Real, Rank = Rank0, Dims: Union<K::Dims>>,
    K: Computable<Elem = Q::Elem, Rank = Rank0>,
    F: DimList,
    O: DimList,
    M: Expr<Elem = bool>,
    B: Expr<Elem = Q::Elem>,
    S: Dims,
{
    let product = Binary { op: ops::Mul, a: q, b: k };
    let products = sum_of_factors::<
        TwoFactors<Q::Dims, K::Dims, F>,
        Named<Q::Elem, ScoreDims<Q, K>, Rank0, Binary<_, _, _>>,
        F,
        S,
    >(&product)?;
    let scaled = Binary { op: ops::Mul, a: products.expr, b: Scalar(scale) };
    let biased = Binary { op: ops::Add, a: scaled, b: bias };
    let scores = Select { cond: mask, a: biased, b: Scalar(<Q::Elem as Float>::neg_infinity()) };
    along::<Named<Q::Elem, S, Rank0, _>, O, _>(Named::from_expr(scores), Softmax::<false>)
}

/// The sum over `O` of each value times its weight. The weight is 0 where `counts` is false.
#[track_caller]
fn weighed<V, O, M, S, X>(
    weights: Named<V::Elem, S>,
    counts: M,
    values: V::Expr,
) -> Result<Named<V::Elem, X>, DimError>
where
    V: Computable<Elem: Real, Rank = Rank0>,
    O: DimList,
    M: Expr<Elem = bool>,
    S: Union<V::Dims>,
    X: Dims,
{
    // (If no key of a query counts, `weights` is NaN for this query.)
    let weights = Select { cond: counts, a: weights.expr, b: Scalar(V::Elem::ZERO) };
    let product = Binary { op: ops::Mul, a: weights, b: values };
    sum_of_factors::<TwoFactors<S, V::Dims, O>, Named<V::Elem, Weighed<S, V>, Rank0, Binary<_, _, _>>, O, X>(
        &product,
    )
}

/// A builder for attention, with the usual defaults.
///
/// | | default |
/// |---|---|
/// | [`scale`](Attend::scale) | `1 / sqrt(n)`, where `n` is the product of the sizes of `features` |
/// | [`mask`](Attend::mask) | `true`: each query attends to all keys |
/// | [`dropout`](Attend::dropout) | none |
///
/// ```
/// use typed_dims::operators::attention::Attend;
/// use typed_dims::prelude::*;
///
/// dims! { struct Seq; struct Key; struct Feat = 4; }
/// let q = rand::<f32, _>((Seq.of(5), Feat), 1);
/// let (k, v) = (rand::<f32, _>((Key.of(5), Feat), 2), rand::<f32, _>((Key.of(5), Feat), 3));
/// let causal = Attend::new(Feat, Key).mask(Seq.ge(Key)).apply(&q, &k, &v);
/// assert_eq!(causal, attention(&q, &k, &v, Feat, Key, 0.5, Seq.ge(Key)));
/// // In training: weights are dropped at random.
/// let noisy = Attend::new(Feat, Key).mask(Seq.ge(Key)).dropout(0.1, 7).apply(&q, &k, &v);
/// # assert_eq!(noisy.size(Seq), 5);
/// ```
#[derive(Clone, Debug)]
pub struct Attend<F, O, T, M = bool> {
    features: F,
    over: O,
    scale: Option<T>,
    mask: M,
    dropped: Option<(f64, Seed)>,
}

impl<F: DimList, O: DimList, T: Real> Attend<F, O, T> {
    /// Attention over the dims `over`, with products over the dims `features`: see [`attention`].
    pub fn new(features: F, over: O) -> Self {
        Attend { features, over, scale: None, mask: true, dropped: None }
    }
}

impl<F: DimList, O: DimList, T: Real, M> Attend<F, O, T, M> {
    /// Sets the factor by which the products of queries and keys are multiplied.
    pub fn scale(self, scale: T) -> Self {
        Attend { scale: Some(scale), ..self }
    }

    /// Sets the keys that each query attends to, or a bias that is added to the scores: see
    /// [`Mask`].
    pub fn mask<N: Mask<T>>(self, mask: N) -> Attend<F, O, T, N> {
        let Attend { features, over, scale, dropped, .. } = self;
        Attend { features, over, scale, mask, dropped }
    }

    /// Sets each weight to 0 with the probability `p`, and multiplies the others by `1 / (1 - p)`,
    /// as [`dropout`](crate::operators::nn::dropout::Dropout::dropout) does. All weights are then
    /// stored in memory, as `f32` if the elements are `f16` or `bf16`.
    pub fn dropout(self, p: f64, seed: impl IntoSeed) -> Self {
        Attend { dropped: Some((p, seed.into())), ..self }
    }

    /// Computes the attention: the weighted means of the values.
    #[panicking_twin("so is a probability that is not between 0 and 1")]
    pub fn try_apply<Q, K, V, S, X>(self, q: Q, k: K, v: V) -> Result<Named<T, X>, DimError>
    where
        F: DimsOfBoth<Q::Dims, K::Dims, ScoreDims<Q, K>, S>,
        O: AttendedDims<Q::Dims, K::Dims, V::Dims, Weighed<S, V>, X>,
        Q: Computable<Elem = T, Rank = Rank0, Dims: Union<K::Dims>>,
        K: Computable<Elem = T, Rank = Rank0>,
        V: Computable<Elem = T, Rank = Rank0>,
        M: Mask<T>,
        ScoreDims<Q, K>: Union<V::Dims>,
        S: Union<V::Dims> + MaskedBy<M::Dims>,
        X: Dims,
    {
        let Attend { features, over, scale, mask, dropped } = self;
        let of_sizes = |shape: &Shape| {
            let mut count = 1.0;
            features.each(|dim| count *= shape.size(position(shape, dim)) as f64);
            T::from(Float::sqrt(count).recip()).expect("an `f64` can be rounded to any float type")
        };
        let scale = |shape: &Shape| scale.unwrap_or_else(|| of_sizes(shape));
        attend::<Q, K, V, F, O, M, S, X>(q, k, v, &features, &over, mask, scale, dropped)
    }
}

/// The dims of queries, keys and values together.
type AttentionDims<Q, K, V> = <ScoreDims<Q, K> as Union<<V as AsTensor>::Dims>>::Out;

/// The positions of the dims `S` in the dims `U`, as a constant.
struct PositionsAmong<S, U>(PhantomData<(S, U)>);

impl<S: Dims, U: Dims> PositionsAmong<S, U> {
    const AXES: &'static AxisList = &AxisList::of(S::KEYS, U::KEYS);

    /// The same positions, in the order in which results are stored.
    const IN_MEMORY: &'static AxisList = &AxisList::in_memory(S::KEYS, 0).among(Self::AXES);
}

struct Listed<L, U>(PhantomData<(L, U)>);

impl<L: DimList, U: Dims> Listed<L, U> {
    const AXES: &'static AxisList = &AxisList::of(L::KEYS, U::KEYS);
}

fn listed<L: DimList, U: Dims>() -> &'static [usize] {
    Listed::<L, U>::AXES.as_slice()
}
