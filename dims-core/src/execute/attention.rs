//! Attention. Queries, keys and values that are in memory are read in place, except that
//! half-precision elements are converted first. Mask and bias are computed tile by tile.

use crate::error::DimError;
use crate::expr::lowered::{LOWERS, lowered};
#[cfg(feature = "std")]
use crate::expr::step::{field, is_heard, ruled};
use crate::expr::{Expr, Factors, evaluate_factor};
use crate::plan::shape::Shape;
use crate::storage::unchecked::{attend, lowered_scores};
use crate::tensors::tensor::Computable;
use crate::types::rank::Rank0;
use crate::types::set::Dims;
use alloc::boxed::Box;
use alloc::vec::Vec;
use kernels::attention::{
    AttentionRoles, Change, LoweredScores, Work, loops_of_pair, narrowed, rows_of_change, widened,
};
use kernels::contract;
use kernels::load::Kernel;
use kernels::loops::nest::Nest;
use kernels::loops::steps::{note, told};
use kernels::loops::stride::AnyStride;
use kernels::machine::threads;
use kernels::memory::buffer::Buffer;
#[cfg(feature = "std")]
use kernels::memory::hollow;
#[cfg(feature = "std")]
use kernels::program::code::{DType, Number};
use kernels::program::lowered::LoweredProgram;
use kernels::scalar::{Num, Real};
#[cfg(feature = "std")]
use kernels::trace::{Field, Rule, rules};
use smallvec::SmallVec;

/// Attention of the tensors `Q`, `K` and `V`: their expressions, and the scale, mask and bias of
/// the scores.
pub(crate) struct AttentionStep<'e, Q: Computable, K: Computable, V: Computable, M, B> {
    pub(crate) q: &'e Q::Expr,
    pub(crate) k: &'e K::Expr,
    pub(crate) v: &'e V::Expr,
    /// The factor by which the scores are multiplied.
    pub(crate) scale: Q::Elem,
    /// The mask: whether each score counts.
    pub(crate) mask: &'e M,
    /// The bias, added to the scores.
    pub(crate) bias: Option<&'e B>,
}

/// The roles of the loop axes.
pub(crate) struct AttentionAxes {
    /// The axes of the queries, the keys, and the values.
    pub(crate) operands: [&'static [usize]; 3],
    /// The axes of the mask and the bias. (Only for recording, which needs the standard library.)
    #[cfg_attr(not(feature = "std"), allow(dead_code))]
    pub(crate) changes: &'static [usize],
    pub(crate) features: &'static [usize],
    /// The axes over which the softmax is taken and the weighted values are summed.
    pub(crate) over: &'static [usize],
    /// The axes of the scores.
    pub(crate) scores: &'static [usize],
    /// The axes of the result, in memory order.
    pub(crate) kept: &'static [usize],
}

impl<Q, K, V, M, B> AttentionStep<'_, Q, K, V, M, B>
where
    Q: Computable<Elem: Real>,
    K: Computable<Elem = Q::Elem>,
    V: Computable<Elem = Q::Elem>,
    M: Expr<Elem = bool>,
    B: Expr<Elem = Q::Elem>,
{
    /// Computes the result over the loops of a shape with the dims `U`. If an operand or the bias
    /// is traced, or the mask is recorded, this records a step.
    #[track_caller]
    pub(crate) fn execute<U: Dims>(
        &self,
        shape: &Shape,
        axes: &AttentionAxes,
    ) -> Result<Buffer<Q::Elem>, DimError> {
        #[cfg(feature = "std")]
        let rule = self.rule::<U>(shape, axes)?;
        #[cfg(feature = "std")]
        let rule = match rule {
            Some(rule) if rule.operands().iter().any(|field| field.is_hollow()) => {
                // (Recording from sizes: nothing is computed.)
                let len = shape.volume(axes.kept, size_of::<Q::Elem>())?;
                let data = hollow::reserved(len)?.expect("the elements are real numbers");
                return Ok(ruled(data, rule));
            }
            rule => rule,
        };
        let [queries, keys, values] = axes.operands;
        let operands = [
            in_memory::<U, Q::Dims, _>(self.q, shape, queries)?,
            in_memory::<U, K::Dims, _>(self.k, shape, keys)?,
            in_memory::<U, V::Dims, _>(self.v, shape, values)?,
        ];
        let data = planned::<U, _, _, _>(shape, axes, operands, self.scale.widen(), self.mask, self.bias)
            .map_err(|error| shape.name_dims(error, axes.kept))?;
        let data: Vec<Q::Elem> = narrowed(data);
        #[cfg(feature = "std")]
        if let Some(rule) = rule {
            return Ok(ruled(data, rule));
        }
        told(&data);
        Ok(data.into())
    }

    /// The rule of the step, if an operand or the bias is traced, or the mask is recorded.
    #[cfg(feature = "std")]
    #[track_caller]
    fn rule<U: Dims>(
        &self,
        shape: &Shape,
        axes: &AttentionAxes,
    ) -> Result<Option<rules::Attention>, DimError> {
        if !is_heard() {
            return Ok(None);
        }
        let [queries, keys, values] = axes.operands;
        let operands = [
            field::<_, U, _>(self.q, shape, queries)?,
            field::<_, U, _>(self.k, shape, keys)?,
            field::<_, U, _>(self.v, shape, values)?,
        ];
        let mask = field::<_, U, _>(self.mask, shape, axes.changes)?;
        let bias = match self.bias {
            Some(bias) => Some(field::<_, U, _>(bias, shape, axes.changes)?),
            None => None,
        };
        if !operands.iter().chain(&bias).any(Field::is_traced) && !mask.is_recorded() {
            return Ok(None);
        }
        Ok(Some(rules::Attention {
            operands,
            mask: Some(mask),
            bias,
            scale: Number::float(self.scale),
            features: axes.features.to_vec(),
            over: axes.over.to_vec(),
            scores: axes.scores.to_vec(),
            kept: axes.kept.to_vec(),
            dtype: DType::of::<Q::Elem>().expect("programs know the element type"),
        }))
    }
}

/// An operand with the dims `S` and the loops `axes`, in memory and in the type of the computation.
fn in_memory<'e, U: Dims, S: Dims, E: Expr<Elem: Real>>(
    expr: &'e E,
    shape: &Shape,
    axes: &[usize],
) -> Result<contract::ContractionFactor<'e, <E::Elem as Real>::Wide>, DimError> {
    if axes.iter().any(|&axis| shape.size(axis) == 0) {
        // Empty arrays have stride 0 along all axes, like one repeated element, but there is no
        // element to convert.
        return Ok(contract::ContractionFactor::empty(shape.sizes().len()));
    }
    let mut factors = Factors { constants: SmallVec::new(), operands: SmallVec::new() };
    if const { E::FACTS.memory.is_some() } {
        expr.factors::<U, Rank0>(shape, &mut factors)?;
    } else if expr.in_memory::<S>().is_some() {
        // Renamed and sliced tensors are in memory too, so self-attention does not copy them.
        expr.factors::<U, Rank0>(shape, &mut factors)?;
    } else {
        evaluate_factor::<U, Rank0, _>(expr, shape, &mut factors)?;
    }
    let operand = factors.operands.pop().expect("a factor is one operand");
    Ok(widened(operand, shape.sizes())?)
}

/// The programs of a mask and a bias, if they can replace both kernels. (A constant mask without a
/// bias needs none.)
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
    let AttentionRoles { batch, queries, values, mut rows } =
        AttentionRoles::of(sizes, [axes.scores, axes.over, axes.kept], strides);
    mask.rows::<U, Rank0>(shape, &mut rows);
    if let Some(bias) = bias {
        bias.rows::<U, Rank0>(shape, &mut rows);
    }
    let (nest, counts) = Nest::grouped(sizes, &[&batch, &queries, axes.over], &rows);
    let work = Work {
        features: loops_of_pair(sizes, &rows, [0, 1], axes.features),
        values: loops_of_pair(sizes, &rows, [2, 3], &values),
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
