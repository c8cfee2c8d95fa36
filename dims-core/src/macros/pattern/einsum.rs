//! Sums of products.

use super::args::{Args, OperandsInMemory, Shapes, ValueList, lay_out, unify};
use super::data::MOST;
use super::data::{GivenSize, Pattern, Slot};
use super::direct::BoundPattern;
use super::layout::PatternLayout;
use super::product::AllOperands;
use super::rank::{OutRank, ResultOf};
use crate::error::DimError;
use crate::execute::loops::{
    KeptLoops, LoopFactors, RunLoops, few_products, short_way, summed, summed_short,
};
use crate::execute::order::told_as;
use crate::expr::Factors;
use crate::plan::direct::ElementsAlong;
use crate::plan::shape::volume;
use crate::storage::unchecked::{self, factor_over};
use crate::types::set::Dims;
use alloc::vec::Vec;
use core::mem::forget;
use kernels::contract::Supports;
use kernels::loops::axes::{AxisSet, MOST_AXES, Order};
use kernels::loops::steps::{ProductDims, told};
use kernels::memory::buffer::Buffer;
use kernels::scalar::Num;
use smallvec::SmallVec;

/// A result of elements `U` with the axes `O`, from operands `L` of elements `T`.
pub type PatternOutput<U, O, T, L> =
    <<O as OutRank<<L as Args<T>>::Rest>>::Rank as ResultOf<U, <L as Args<T>>::Dims>>::Out;

/// `out[output] = sum over all other axes of the product of the operands`
///
/// (`planned` takes the operands by reference, because moving them would take as long as a
/// small product. In debug builds, this function is not inlined, because the locals of each call
/// would stay on the caller's stack.)
#[cfg_attr(not(debug_assertions), inline(always))]
#[track_caller]
pub fn einsum<O, T: Num, L: Args<T>>(
    pattern: &'static Pattern,
    operands: L,
    given: &[GivenSize],
) -> Result<PatternOutput<T, O, T, L>, DimError>
where
    O: OutRank<L::Rest>,
    O::Rank: ResultOf<T, L::Dims>,
{
    let mut values = operands.values();
    if let Some(roles) = &pattern.roles
        && let Some((a, b)) = short_way(|| values.pair())
        && [a.1.len(), b.1.len()] == [pattern.inputs[0].len(), pattern.inputs[1].len()]
        && let Some(result) = unchecked::product(roles, a, b, || product_dims(pattern))
    {
        // (The values own nothing, but dropping them would cost a check.)
        forget(values);
        let (data, sizes) = result?;
        told_as::<L::Dims, _>(&data);
        return Ok(<O::Rank as ResultOf<T, L::Dims>>::build(data, &sizes[..pattern.output.len()]));
    }
    let (data, sizes) = planned::<T, L::Dims>(pattern, &mut values, given)?;
    <O::Rank as ResultOf<T, L::Dims>>::build_of(data, &sizes, "einsum!")
}

/// The name of the loop `at`, for plans. The loops are those over the dims `U`, over the axes of
/// `...` (shown as `..`), and over the other axes of the pattern.
fn loop_name<U: Dims>(layout: &PatternLayout, at: usize) -> &'static str {
    match at.checked_sub(layout.axis(0)) {
        Some(axis) => layout.pattern.axes[axis],
        None => U::KEYS.as_slice().get(at).map_or("..", |key| key.name),
    }
}

/// The axes of a product of two operands, for plans.
fn product_dims(pattern: &'static Pattern) -> ProductDims {
    let names = |slots: &[Slot]| {
        let name = |slot: &Slot| match *slot {
            Slot::Axis(axis) => pattern.axes[axis],
            _ => "..",
        };
        slots.iter().map(name).collect()
    };
    ProductDims {
        left: names(pattern.inputs[0]),
        right: names(pattern.inputs[1]),
        result: names(pattern.output),
    }
}

/// The elements and the sizes of the sum of products. (The caller builds the result. Built here, it
/// could share a stack slot with the result of a small product. That slot would be read in larger
/// pieces than it was written in, which is slow.)
#[inline(never)]
#[track_caller]
fn planned<T: Num, U: Dims>(
    pattern: &'static Pattern,
    values: &mut impl ValueList<T>,
    given: &[GivenSize],
) -> Result<(Buffer<T>, SmallVec<[usize; MOST]>), DimError> {
    values.settle()?;
    let memories = || {
        let mut memories = OperandsInMemory::new();
        values.memories(&mut memories).then_some(memories)
    };
    if let Some(memories) = short_way(memories)
        && let Some((data, sizes)) = direct(pattern, given, &*values, &memories)
    {
        told(&data);
        return Ok((data.into(), sizes));
    }
    let (data, sizes) = run::<T, U>(pattern, given, &*values)?;
    Ok((data, sizes.into_iter().collect()))
}

/// The elements and the sizes of the result, for operands in memory. `None` if the general path
/// must handle them.
#[track_caller]
fn direct<T: Num>(
    pattern: &'static Pattern,
    given: &[GivenSize],
    values: &impl ValueList<T>,
    memories: &[ElementsAlong<'_, T>],
) -> Option<(Vec<T>, SmallVec<[usize; MOST]>)> {
    let mut bound = BoundPattern::new(pattern.loops.as_ref()?, pattern.axes.len());
    if !bound.bind(pattern, given, memories.iter().map(|&(_, axes)| axes)) {
        return None;
    }
    let kept = bound.loops.kept;
    let len = bound.volume(kept, size_of::<T>())?;
    let product = AllOperands::of(values);
    let few = |number| bound.few(number, len);
    if let Some(data) = few_products(&product, memories, bound.run(), (kept, len), few) {
        return Some((data, bound.shape(pattern.output)));
    }
    let result = bound.result(len, bound.volume(bound.loops.reduced, 1));
    let name = |axis: usize| pattern.axes[axis];
    let data = summed_short(&product, memories, bound.run(), result, &name)?;
    Some((data, bound.shape(pattern.output)))
}

/// The elements and the sizes of the result.
#[track_caller]
fn run<T: Num, U: Dims>(
    pattern: &'static Pattern,
    given: &[GivenSize],
    values: &impl ValueList<T>,
) -> Result<(Buffer<T>, Order), DimError> {
    let (shapes, layout) = unify::<T, U>(pattern, given, values)?;
    let rows = lay_out::<T, U>(&layout, &shapes, values)?;
    let sizes = layout.shape(pattern.output)?;
    let kept = layout.order(pattern.output);
    let reduced: Order = (0..layout.sizes.len()).filter(|axis| !kept.contains(axis)).collect();
    let len = volume(sizes.iter().copied(), size_of::<T>()).ok_or_else(|| too_large(pattern, &sizes))?;
    let count = volume(reduced.iter().map(|&axis| layout.sizes[axis]), 1);
    let factors = LoopFactors {
        supports: &|| supports::<T, U>(&layout, &shapes, values),
        factors: &|| factors::<T, U>(&layout, &shapes, values),
    };
    let factors = multiplies_in_pairs(&layout).then_some(factors);
    let data = summed(
        &AllOperands::of(values),
        factors,
        RunLoops { sizes: &layout.sizes, rows: &rows },
        KeptLoops { kept: &kept, reduced: &reduced, len, count },
        &|at| loop_name::<U>(&layout, at),
    );
    // (If the positions of a sum cannot be counted, the sizes of all loops are shown.)
    let shown = if count.is_some() { &sizes } else { &layout.sizes };
    Ok((data.map_err(|error| named(error, pattern, shown))?, sizes))
}

/// Whether the operands may be multiplied in pairs. Otherwise one loop computes the result.
pub(super) fn multiplies_in_pairs(layout: &PatternLayout) -> bool {
    layout.pattern.inputs.len() > 1 && layout.sizes.len() < MOST_AXES
}

#[cold]
pub(super) fn too_large(pattern: &Pattern, sizes: &[usize]) -> DimError {
    DimError::TooLarge { dims: format!("the sizes {sizes:?}, in the pattern `{}`,", pattern.text) }
}

/// Adds these sizes to a `TooLarge` error.
pub(super) fn named(error: DimError, pattern: &Pattern, sizes: &[usize]) -> DimError {
    match error {
        DimError::TooLarge { .. } => too_large(pattern, sizes),
        error => error,
    }
}

/// The operands of a pattern as factors along its loops. `U` are the dims.
fn factors<'v, T: Num, U: Dims>(
    layout: &PatternLayout,
    shapes: &Shapes,
    values: &'v impl ValueList<T>,
) -> Result<Factors<'v, T>, DimError> {
    let mut factors = Factors { constants: SmallVec::new(), operands: SmallVec::new() };
    let mut operand = 0;
    let mut result = Ok(());
    values.factors::<U>(shapes, &mut factors, &mut |before, shape, factors| {
        let slots = layout.pattern.inputs[operand];
        let taken: SmallVec<[_; 4]> = factors.operands.drain(before..).collect();
        for taken in taken {
            factors.operands.push(factor_over(taken, |strides| {
                let mut row = SmallVec::from_elem(0, layout.sizes.len());
                if let Err(error) = layout.spread(slots, &[], shape.positional(), strides, &mut row) {
                    result = Err(error);
                }
                row
            }));
        }
        operand += 1;
    })?;
    result.map(|()| factors)
}

/// The loops along which each operand varies.
pub(super) fn supports<T: Num, U: Dims>(
    layout: &PatternLayout,
    shapes: &Shapes,
    values: &impl ValueList<T>,
) -> Result<Supports, DimError> {
    let mut supports = Supports::new();
    let mut result = Ok(());
    let mut row: SmallVec<[isize; 8]> = SmallVec::new();
    values.rows::<U>(shapes, &mut |shape, own| {
        let slots: &[Slot] = layout.pattern.inputs[supports.len()];
        let mut axes = 0;
        for strides in own.iter() {
            row.clear();
            row.resize(layout.sizes.len(), 0);
            if let Err(error) = layout.spread(slots, &[], shape.positional(), strides, &mut row) {
                result = Err(error);
            }
            for (axis, (&stride, &size)) in row.iter().zip(&layout.sizes).enumerate() {
                axes |= AxisSet::from(stride != 0 && size != 1) << axis;
            }
        }
        supports.push(axes);
    });
    result.map(|()| supports)
}
