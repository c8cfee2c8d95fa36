//! `attention`: softmax-weighted means, without the scores in memory.

use crate::dim::DimList;
use crate::error::{DimError, unwrap};
use crate::expr::lowered::{LOWERS, lowered};
#[cfg(feature = "std")]
use crate::expr::record;
use crate::expr::{Expr, Factors, Operand, Scalar, computed_factor};
use crate::named::Named;
use crate::plan::axes::AxisList;
use crate::plan::shape::Shape;
use crate::rank::Rank0;
use crate::set::Bool;
use crate::set::list::List;
use crate::set::ordered::Shares;
use crate::set::remove::{Left, Missing, Removal, RemoveAll, Twice};
use crate::set::{Dims, DimsOfBoth, NamedOnce, NoDim, Union};
use crate::storage::Evaluated;
use crate::storage::unchecked::{attend, lowered_scores};
use crate::tensor::{AsTensor, Computable};
use crate::types::condition::condition;
use alloc::boxed::Box;
use alloc::vec::Vec;
use kernels::attention::{Change, LoweredScores, Work, narrowed, widened};
use kernels::contract;
use kernels::load::Kernel;
use kernels::loops::nest::{Nest, OperandRows};
use kernels::loops::rows::Rows;
use kernels::loops::steps::note;
use kernels::loops::stride::AnyStride;
use kernels::machine::threads;
use kernels::memory::axes::contiguous;
use kernels::memory::buffer::Buffer;
#[cfg(feature = "std")]
use kernels::program::code::{DType, Number};
use kernels::program::lowered::LoweredProgram;
use kernels::scalar::{Adds, Masks, ScoreChange};
use kernels::scalar::{Element, Num, Real};
#[cfg(feature = "std")]
use kernels::trace::rules;
use smallvec::SmallVec;

/// The dims of queries and keys.
type ScoreDims<Q, K> = <<Q as AsTensor>::Dims as Union<<K as AsTensor>::Dims>>::Out;

/// The dims of scores and values.
type Weighed<S, V> = <S as Union<<V as AsTensor>::Dims>>::Out;

/// A mask has no dims besides those of the scores.
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

/// Dims, one or a tuple of them, over which an attention runs: keys with the dims `K` and values with the dims `V` have them, and queries with the
/// dims `Q` do not. `U` are the dims of weights and values together, and `Others` those of `U` that are not named, which rustc infers.
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
    // Of several mistakes the first one is told.
    NoDim<Missing<K, D::Brands>>: HeldBy<Missing<K, D::Brands>, K, Then<Left<U, D::Brands>> = Others>,
    NoDim<NotInValues<K, V, D>>: HeldBy<NotInValues<K, V, D>, V>,
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
    /// `D` is one of the dims `S` of the keys or of the values.
    #[diagnostic::on_unimplemented(
        message = "dimension `{D}` is not bound in the tensor with dims `{S}`",
        label = "the keys and the values must have `{D}`, over which attention runs"
    )]
    pub trait HeldBy<D, S> for True {
        /// `X`, if the condition holds.
        type Then<X>;
    }
}

condition! {
    /// `D` is not a dim of the queries, whose dims are `S`.
    #[diagnostic::on_unimplemented(
        message = "dimension `{D}` is also bound in the queries with dims `{S}`",
        label = "a query attends to all of `{D}`: rename it in the keys and values, `keys.rename({D}, ..)`"
    )]
    pub trait NotQueried<D, S> for True;
}

/// What changes scores of `T` before their softmax: which of them count, and what is added to them.
///
/// | | scores |
/// |---|---|
/// | `true` | stay as they are |
/// | a tensor of `bool` | are minus infinity where it is `false` |
/// | a tensor of `T` | have it added |
/// | `(mask, bias)`, one of each | have the bias added, and are minus infinity where the mask is `false` |
///
/// Tensors may be expressions and references. Bias and mask are computed tile by tile; a bias is not looked at where the mask is `false`.
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
    /// Whether something is added.
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

/// The parts of a change of scores that is one expression.
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

/// Attention: the mean of `v` over the dims `over`, weighted by the softmax of `scale * (q * k).sum(features)`.
///
/// ```text
/// scores[.., over] = scale * sum over features of q[.., features] * k[.., over, features]  + bias[.., over]     where the mask is true
/// scores[.., over] = -infinity                                                                              elsewhere
/// out[..]          = sum over `over` of softmax(scores)[.., over] * v[.., over]
/// ```
///
/// Queries and keys must have the dims `features`, keys and values the dims `over`, and queries must not have those. Any other dims can be
/// batched, shared or missing, as in the three operations written out. The scores are never in memory as a whole:
/// they are computed in tiles that stay in the cache, with a running maximum and a running sum for each query (M. Milakov,
/// N. Gimelshein, 2018, "Online normalizer calculation for softmax"; T. Dao et al., 2022, "FlashAttention"). The result is that of the
/// operations written out, up to rounding.
///
/// `mask` is `true`, a tensor of `bool`, a bias, or a pair of mask and bias ([`Mask`]); the dims are among those of the scores. It stays an
/// expression: `i.ge(j)` is the causal mask of queries `i` and keys `j`, `slope * (j - i).cast::<f32>()` is the bias of ALiBi, and both are
/// computed tile by tile; tiles without any key, or with a bias of minus infinity alone, are skipped. A query
/// that may look at no key at all yields 0, and has gradients of 0. (A softmax of minus infinities alone is NaN.)
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
/// // The first query hears the first key alone.
/// assert!(((&causal).index(Seq, 0) - (&v).index(Key, 0)).abs().max((Head, Feat)).order(()) < 1e-6);
/// assert!((alibi - causal).abs().max((Seq, Head, Feat)).order(()) > 0.0);
/// ```
///
/// # Panics
///
/// Where [`try_attention`] returns an error.
#[track_caller]
#[rustfmt::skip] // rustc quotes from here the function and the bound that is not met: in one line, if they stand in one.
pub fn attention<Q, K, V, F: DimsOfBoth<Q::Dims, K::Dims, ScoreDims<Q, K>, S>, O: AttendedDims<Q::Dims, K::Dims, V::Dims, Weighed<S, V>, X>, M: Mask<Q::Elem>, S, X>(
    q: Q,
    k: K,
    v: V,
    features: F,
    over: O,
    scale: Q::Elem,
    mask: M,
) -> Named<Q::Elem, X>
where
    Q: Computable<Elem: Real, Rank = Rank0, Dims: Union<K::Dims>>,
    K: Computable<Elem = Q::Elem, Rank = Rank0>,
    V: Computable<Elem = Q::Elem, Rank = Rank0>,
    ScoreDims<Q, K>: Union<V::Dims>,
    S: Union<V::Dims> + MaskedBy<M::Dims>,
    X: Dims,
{
    unwrap(try_attention(q, k, v, features, over, scale, mask))
}

/// As [`attention`], but what sizes decide is an error.
#[track_caller]
pub fn try_attention<Q, K, V, F, O, M: Mask<Q::Elem>, S, X>(
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
    F: DimsOfBoth<Q::Dims, K::Dims, ScoreDims<Q, K>, S>,
    O: AttendedDims<Q::Dims, K::Dims, V::Dims, Weighed<S, V>, X>,
    ScoreDims<Q, K>: Union<V::Dims>,
    S: Union<V::Dims> + MaskedBy<M::Dims>,
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
    shape.check_all_given(&features)?;
    shape.check_all_given(&over)?;
    let axes = AttentionAxes {
        kept: PositionsAmong::<X, AttentionDims<Q, K, V>>::IN_MEMORY.as_slice(),
        features: listed::<F, AttentionDims<Q, K, V>>(),
        over: listed::<O, AttentionDims<Q, K, V>>(),
        scores: PositionsAmong::<S, AttentionDims<Q, K, V>>::AXES.as_slice(),
    };
    let bias = M::BIASED.then_some(&bias);
    let step = traced::<AttentionDims<Q, K, V>, Q, K, V, M>(&shape, &axes, (&q, &k, &v), scale, &mask, bias)?;
    let q = in_memory::<AttentionDims<Q, K, V>, Q::Dims, _>(&q, &shape)?;
    let k = in_memory::<AttentionDims<Q, K, V>, K::Dims, _>(&k, &shape)?;
    let v = in_memory::<AttentionDims<Q, K, V>, V::Dims, _>(&v, &shape)?;
    let data =
        planned::<AttentionDims<Q, K, V>, _, _, _>(&shape, &axes, [q, k, v], scale.widen(), &mask, bias)
            .map_err(|error| shape.name_dims(error, axes.kept))?;
    let data = ruled_if(narrowed(data), step);
    let sizes = shape.sizes_in(axes.kept);
    Ok(Named::from_expr(Evaluated::laid_out(data, &sizes)))
}

/// The step of an attention of which an operand is traced. `U` are all dims.
#[cfg(feature = "std")]
#[track_caller]
fn traced<U, Q, K, V, M>(
    shape: &Shape,
    axes: &AttentionAxes,
    (q, k, v): (&Q::Expr, &K::Expr, &V::Expr),
    scale: Q::Elem,
    mask: &M::Allowed,
    bias: Option<&M::Bias>,
) -> Result<Option<rules::Attention>, DimError>
where
    U: Dims,
    Q: Computable<Elem: Real>,
    K: Computable<Elem = Q::Elem>,
    V: Computable<Elem = Q::Elem>,
    M: Mask<Q::Elem>,
{
    let is_traced = || -> Result<bool, DimError> {
        Ok(record::is_traced::<Q::Elem, U, _>(q, shape)?
            || record::is_traced::<Q::Elem, U, _>(k, shape)?
            || record::is_traced::<Q::Elem, U, _>(v, shape)?
            || match bias {
                Some(bias) if M::BIASED => record::is_traced::<Q::Elem, U, _>(bias, shape)?,
                _ => false,
            })
    };
    if !record::is_active() || !is_traced()? {
        return Ok(None);
    }
    let changed = PositionsAmong::<M::Dims, U>::AXES.as_slice();
    Ok(Some(rules::Attention {
        operands: [
            record::field::<_, U, _>(q, shape, PositionsAmong::<Q::Dims, U>::AXES.as_slice())?,
            record::field::<_, U, _>(k, shape, PositionsAmong::<K::Dims, U>::AXES.as_slice())?,
            record::field::<_, U, _>(v, shape, PositionsAmong::<V::Dims, U>::AXES.as_slice())?,
        ],
        mask: Some(record::field::<_, U, _>(mask, shape, changed)?),
        bias: match bias {
            Some(bias) if M::BIASED => Some(record::field::<_, U, _>(bias, shape, changed)?),
            _ => None,
        },
        scale: Number::float(scale),
        features: axes.features.to_vec(),
        over: axes.over.to_vec(),
        scores: axes.scores.to_vec(),
        kept: axes.kept.to_vec(),
        dtype: DType::of::<Q::Elem>().expect("only floats are recorded"),
    }))
}

/// The result as that of a step, if there is one.
#[cfg(feature = "std")]
#[track_caller]
fn ruled_if<T: Element>(data: Vec<T>, step: Option<rules::Attention>) -> Buffer<T> {
    match step {
        Some(step) => record::ruled(data, step),
        None => data.into(),
    }
}

/// Without the standard library nothing is recorded.
#[cfg(not(feature = "std"))]
fn traced<U, Q, K, V, M>(
    _: &Shape,
    _: &AttentionAxes,
    _: (&Q::Expr, &K::Expr, &V::Expr),
    _: Q::Elem,
    _: &M::Allowed,
    _: Option<&M::Bias>,
) -> Result<(), DimError>
where
    Q: AsTensor,
    K: AsTensor,
    V: AsTensor,
    M: Mask<Q::Elem>,
{
    Ok(())
}

#[cfg(not(feature = "std"))]
fn ruled_if<T: Element>(data: Vec<T>, _: ()) -> Buffer<T> {
    data.into()
}

/// All dims of an attention.
type AttentionDims<Q, K, V> = <ScoreDims<Q, K> as Union<<V as AsTensor>::Dims>>::Out;

/// Where the dims `S` stand among the dims `U`: a constant.
struct PositionsAmong<S, U>(core::marker::PhantomData<(S, U)>);

impl<S: Dims, U: Dims> PositionsAmong<S, U> {
    const AXES: &'static AxisList = &AxisList::of(S::KEYS, U::KEYS);

    /// The same, as results lie in memory.
    const IN_MEMORY: &'static AxisList = &AxisList::in_memory(S::KEYS, 0).among(Self::AXES);
}

struct Listed<L, U>(core::marker::PhantomData<(L, U)>);

impl<L: DimList, U: Dims> Listed<L, U> {
    const AXES: &'static AxisList = &AxisList::of(L::KEYS, U::KEYS);
}

fn listed<L: DimList, U: Dims>() -> &'static [usize] {
    Listed::<L, U>::AXES.as_slice()
}

/// Which of the loop axes are what.
struct AttentionAxes {
    kept: &'static [usize],
    features: &'static [usize],
    over: &'static [usize],
    scores: &'static [usize],
}

/// The axes of scores and values by role, and the strides of queries, keys, values and the result.
struct ByRole {
    batch: Vec<usize>,
    queries: Vec<usize>,
    values: Vec<usize>,
    rows: Rows,
}

impl AttentionAxes {
    /// Which axes have which role, for queries, keys and values with these strides.
    fn by_role(&self, sizes: &[usize], [q, k, v]: [&[isize]; 3]) -> ByRole {
        let out = contiguous(self.kept, sizes);
        // Axes that only the queries have are theirs. The other axes of the result are columns of the values, if the values have them.
        let is_query = |axis: &usize| q[*axis] != 0 && k[*axis] == 0 && v[*axis] == 0;
        let rest = self.scores.iter().copied().filter(|axis| !self.over.contains(axis));
        let (queries, batch) = rest.partition(is_query);
        let values = self.kept.iter().copied().filter(|axis| !self.scores.contains(axis)).collect();
        let mut rows = Rows::new(sizes.len());
        for strides in [q, k, v, &out] {
            rows.push().copy_from_slice(strides);
        }
        ByRole { batch, queries, values, rows }
    }
}

/// The loops over some axes, for two of the operands.
fn of_pair(sizes: &[usize], rows: &Rows, operands: [usize; 2], axes: &[usize]) -> Nest {
    let mut own = Rows::new(sizes.len());
    operands.iter().for_each(|&operand| own.push().copy_from_slice(rows.row(operand)));
    Nest::grouped(sizes, &[axes], &own).0
}

/// An operand with the dims `S` in memory, in the type that is computed with.
fn in_memory<'e, U: Dims, S: Dims, E: Expr<Elem: Real>>(
    expr: &'e E,
    shape: &Shape,
) -> Result<contract::ContractionFactor<'e, <E::Elem as Real>::Wide>, DimError> {
    if PositionsAmong::<S, U>::AXES.as_slice().iter().any(|&axis| shape.size(axis) == 0) {
        // Arrays without an element have the stride 0 along all axes, as if one element were repeated; but there is none to convert.
        return Ok(contract::ContractionFactor::empty(shape.sizes().len()));
    }
    let mut factors = Factors { scale: E::Elem::ONE, operands: SmallVec::new() };
    if const { E::FACTS.memory.is_some() } {
        expr.factors::<U, Rank0>(shape, &mut factors)?;
    } else if expr.in_memory::<S>().is_some() {
        // Renamed and sliced tensors are in memory as well: self-attention copies nothing.
        expr.factors::<U, Rank0>(shape, &mut factors)?;
    } else {
        computed_factor::<U, Rank0, _>(expr, shape, &mut factors)?;
    }
    let operand = factors.operands.pop().expect("a factor is one operand");
    Ok(widened(operand, shape.sizes())?)
}

/// The programs of a mask and a bias, if they can replace both kernels. (A mask that is the same everywhere needs none.)
fn lowered_change<'e, M: Expr<Elem = bool>, B: Expr<Elem: Real>>(
    mask: &'e M,
    bias: Option<&'e B>,
    positions: usize,
) -> Option<(LoweredProgram<'e>, Option<LoweredProgram<'e>>)> {
    if !LOWERS || bias.is_none() && !M::Kernel::<'_, AnyStride>::VARIES {
        return None;
    }
    let bias = match bias {
        None => None,
        Some(bias) => Some(lowered(bias, positions).filter(|bias| bias.is_kernel::<B::Elem>())?),
    };
    Some((lowered(mask, positions)?, bias))
}

/// The rows of a nest behind those of queries, keys, values and the result: of the mask, and of the bias.
fn rows_of_change(nest: &Nest) -> OperandRows<'_> {
    let mut operands = nest.operands();
    for _ in 0..4 {
        operands.next_row();
    }
    operands
}

/// Plans the attention, and runs it.
#[track_caller]
fn planned<U: Dims, W: Real, M: Expr<Elem = bool>, B: Expr<Elem: Real<Wide = W>>>(
    shape: &Shape,
    axes: &AttentionAxes,
    operands: [contract::ContractionFactor<'_, W>; 3],
    scale: W,
    mask: &M,
    bias: Option<&B>,
) -> Result<Vec<W>, DimError> {
    let sizes = shape.sizes();
    let len = shape.volume(axes.kept, size_of::<W>())?;
    let [q, k, v] = &operands;
    let strides = [q.strides(), k.strides(), v.strides()];
    let ByRole { batch, queries, values, mut rows } = axes.by_role(sizes, strides);
    mask.rows::<U, Rank0>(shape, &mut rows);
    if let Some(bias) = bias {
        bias.rows::<U, Rank0>(shape, &mut rows);
    }
    let (nest, counts) = Nest::grouped(sizes, &[&batch, &queries, axes.over], &rows);
    let work = Work {
        features: of_pair(sizes, &rows, [0, 1], axes.features),
        values: of_pair(sizes, &rows, [2, 3], &values),
        nest: &nest,
        query: counts[0] + counts[1] - 1,
        q: q.elements(),
        k: k.elements(),
        v: v.elements(),
        scale,
    };
    let parallel =
        M::Kernel::<'_, AnyStride>::PARALLEL && (bias.is_none() || B::Kernel::<'_, AnyStride>::PARALLEL);
    let threads = if parallel { threads::parts(work.multiplications() / 32) } else { 1 };
    note(|| work.step(mask.describe(), bias.map(Expr::describe), len, threads));
    let change = lowered_change(mask, bias, nest.positions());
    let lower = || -> Box<dyn Change<W> + '_> {
        if LOWERS
            && let Some((mask, bias)) = &change
            && let Some(change) = lowered_scores(mask, bias.as_ref(), &mut rows_of_change(&nest))
        {
            return change;
        }
        let mut operands = rows_of_change(&nest);
        let mask = mask.kernel::<AnyStride>(&mut operands);
        Box::new(LoweredScores { mask, bias: bias.map(|bias| bias.kernel::<AnyStride>(&mut operands)) })
    };
    Ok(attend(&work, len, threads, &lower)?)
}
