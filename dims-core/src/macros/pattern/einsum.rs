//! Sums of products.

use super::args::{Args, OperandsInMemory, ValueList, lay_out, unify};
use super::data::{GivenSize, Pattern, Slot};
use super::direct::{BoundPattern, MOST};
use super::layout::PatternLayout;
use super::rank::{OutRank, ResultOf};
use super::recorded::{result, traced};
use crate::error::DimError;
use crate::expr::Factors;
use crate::expr::evaluate::few;
use crate::expr::record::{self, is_active};
use crate::order::told_as;
use crate::plan::direct::ElementsAlong;
use crate::plan::shape::{Shape, volume};
use crate::plan::still::Still;
use crate::set::Dims;
use crate::storage::unchecked::{self, copy_few, factor, factor_over};
use alloc::vec::Vec;
use core::mem::forget;
use kernels::contract::target::Target;
use kernels::contract::{self, LoopAxes, Supports};
use kernels::load::Kernel;
use kernels::loops::axes::Order;
use kernels::loops::nest::{Nest, NestParts};
use kernels::loops::rows::Rows;
use kernels::loops::steps::{Loops, PlanStep, ProductDims, note, told};
use kernels::machine::threads;
use kernels::memory::buffer::Buffer;
use kernels::memory::destination::Destination;
use kernels::program::code::ReductionKind;
use kernels::reduce::reducers::Sum;
use kernels::scalar::Num;
use smallvec::SmallVec;

/// A result of elements `U` with the axes `O`, from operands `L` of elements `T`.
pub type PatternOutput<U, O, T, L> =
    <<O as OutRank<<L as Args<T>>::Rest>>::Rank as ResultOf<U, <L as Args<T>>::Dims>>::Out;

/// `out[output] = sum over all other axes of the product of the operands`
///
/// (Matrix products are always inlined, as sums of products of tensors are. The operands are handed on where they lie: to move them would take as
/// long as a small product. In an unoptimized build the locals of each call would stay on the stack of the function that calls it.)
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
    if !is_active()
        && let Some(roles) = &pattern.roles
        && let Some((a, b)) = values.pair()
        && [a.1.len(), b.1.len()] == [pattern.inputs[0].len(), pattern.inputs[1].len()]
        && let Some(result) = unchecked::product(roles, a, b, || product_dims(pattern))
    {
        // (They own nothing: to find that out again, as they are dropped, would take a tenth of the time.)
        forget(values);
        let (data, sizes) = result?;
        told_as::<L::Dims, _>(&data);
        return Ok(<O::Rank as ResultOf<T, L::Dims>>::build(data, &sizes[..pattern.output.len()]));
    }
    let (data, sizes) = planned::<T, L::Dims>(pattern, &mut values, given)?;
    result::<T, L::Dims, O::Rank>(data, &sizes, "einsum!")
}

/// The name of an axis, for plans: axes behind those of the pattern have none.
fn axis_name(pattern: &'static Pattern, axis: usize) -> &'static str {
    pattern.axes.get(axis).copied().unwrap_or("..")
}

/// A product of two operands whose axes all have names, for plans.
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

/// The elements and the sizes of the result, planned. (Not the result: where that of a small product and this one could be the same place in
/// memory, the small one would pass through it, in smaller pieces than it is read from there.)
#[inline(never)]
#[track_caller]
fn planned<T: Num, U: Dims>(
    pattern: &'static Pattern,
    values: &mut impl ValueList<T>,
    given: &[GivenSize],
) -> Result<(Buffer<T>, SmallVec<[usize; MOST]>), DimError> {
    values.settle()?;
    let mut memories = OperandsInMemory::new();
    if !is_active()
        && values.memories(&mut memories)
        && let Some((data, sizes)) = direct(pattern, given, &*values, &memories)
    {
        told(&data);
        return Ok((data.into(), sizes));
    }
    drop(memories);
    let (data, sizes) = run::<T, U>(pattern, given, &*values)?;
    Ok((data, sizes.into_iter().collect()))
}

/// The elements and the sizes of the result, for operands in memory; nothing if the general way has more to say.
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
    let (sizes, kept) = (bound.sizes(), bound.loops.kept);
    let len = bound.volume(kept, size_of::<T>())?;
    if let Some(data) = few_products(&bound, values, memories, len) {
        return Some((data, bound.shape(pattern.output)));
    }
    let (mut supports, mut union) = (Supports::new(), 0);
    for row in bound.rows.iter() {
        let mut axes = 0;
        for (axis, (&stride, &size)) in row.iter().zip(sizes).enumerate() {
            axes |= kernels::loops::axes::AxisSet::from(stride != 0 && size != 1) << axis;
        }
        supports.push(axes);
        union |= axes;
    }
    if (0..sizes.len()).any(|axis| sizes[axis] != 1 && union >> axis & 1 == 0) {
        return None;
    }
    let data = if memories.len() == 1 && bound.loops.reduced.is_empty() {
        values.collect_first(&Nest::map(sizes, kept, &bound.rows), len).ok()?
    } else if contract::is_worthwhile(&supports, sizes, kept) {
        let rows = memories.iter().zip(bound.rows.iter());
        let operands = rows.map(|(&(elements, _), row)| factor(elements, row.into()));
        contract::contract(
            operands.collect(),
            T::ONE,
            LoopAxes { sizes, name: &|axis| axis_name(pattern, axis) },
            Target::new(kept, sizes),
        )
        .ok()?
    } else {
        let count = bound.volume(bound.loops.reduced, 1)?;
        let nest = Nest::reduce(sizes, kept, bound.loops.reduced, &bound.rows);
        summed(values, &nest, len, count).ok()?
    };
    Some((data, bound.shape(pattern.output)))
}

/// The product of operands of few elements, if nothing is summed.
#[inline(always)]
fn few_products<T: Num>(
    bound: &BoundPattern,
    values: &impl ValueList<T>,
    memories: &[ElementsAlong<'_, T>],
    len: usize,
) -> Option<Vec<T>> {
    let ((first, _), others) = memories.split_first()?;
    let axes = bound.few(0, len)?;
    if others.is_empty() {
        return few(*first, &axes, Destination::New(len)).ok();
    }
    note(|| PlanStep::Elementwise {
        expression: values.describe(),
        loops: Loops::new::<T>(&Nest::map(bound.sizes(), bound.loops.kept, &bound.rows), len, 1),
    });
    let mut product = copy_few(*first, &axes, Destination::New(len)).ok()?;
    for (number, (elements, _)) in others.iter().enumerate() {
        let factor = copy_few(*elements, &bound.few(number + 1, len)?, Destination::New(len)).ok()?;
        product.iter_mut().zip(factor).for_each(|(product, factor)| *product = product.mul(factor));
    }
    Some(product)
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
    let traced = if pattern.inputs.is_empty() { None } else { traced::<T, T>(&layout.sizes, &rows, values)? };
    let sizes = layout.shape(pattern.output)?;
    let kept = layout.order(pattern.output);
    let len = volume(sizes.iter().copied(), size_of::<T>()).ok_or_else(|| too_large(pattern, &sizes))?;
    let data = if pattern.inputs.len() > 1 && layout.sizes.len() < kernels::loops::axes::MOST_AXES {
        product::<T, U>(&layout, &shapes, values, &rows, &kept, len)
    } else {
        fused(&layout, values, &rows, &kept, len)
    };
    let data = data.map_err(|error| match error {
        DimError::TooLarge { .. } => too_large(pattern, &sizes),
        error => error,
    })?;
    told(&data);
    let reduced: Order = (0..layout.sizes.len()).filter(|axis| !kept.contains(axis)).collect();
    Ok((record::reduced(data, traced, &kept, &reduced, ReductionKind::Sum, "einsum!")?, sizes))
}

#[cold]
pub(super) fn too_large(pattern: &Pattern, sizes: &[usize]) -> DimError {
    DimError::TooLarge { dims: format!("the sizes {sizes:?}, in the pattern `{}`,", pattern.text) }
}

/// A contraction where that shares work, else one fused pass.
fn product<T: Num, U: Dims>(
    layout: &PatternLayout,
    shapes: &[Shape],
    values: &impl ValueList<T>,
    rows: &Rows,
    kept: &[usize],
    len: usize,
) -> Result<Vec<T>, DimError> {
    let supports = supports::<T, U>(layout, shapes, values)?;
    let still = Still::of_supports(&supports, &layout.sizes, kept);
    let (live, own) =
        still.as_ref().map_or((&layout.sizes[..], kept), |still| (&still.sizes[..], &still.kept[..]));
    if !contract::is_worthwhile(&supports, live, own) {
        return fused(layout, values, rows, kept, len);
    }
    let mut factors = Factors { scale: T::ONE, operands: SmallVec::new() };
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
    result?;
    let data = contract::contract(
        factors.operands,
        factors.scale,
        LoopAxes { sizes: live, name: &|axis| axis_name(layout.pattern, axis) },
        Target::new(own, live),
    )?;
    match still {
        Some(still) => still.sums(data, &layout.sizes, kept),
        None => Ok(data),
    }
}

/// For each operand the loops along which it varies.
pub(super) fn supports<T: Num, U: Dims>(
    layout: &PatternLayout,
    shapes: &[Shape],
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
                axes |= kernels::loops::axes::AxisSet::from(stride != 0 && size != 1) << axis;
            }
        }
        supports.push(axes);
    });
    result.map(|()| supports)
}

/// One pass over the product of all operands.
#[track_caller]
fn fused<T: Num>(
    layout: &PatternLayout,
    values: &impl ValueList<T>,
    rows: &Rows,
    kept: &[usize],
    len: usize,
) -> Result<Vec<T>, DimError> {
    let sizes = &layout.sizes;
    let reduced: Order = (0..sizes.len()).filter(|axis| !kept.contains(axis)).collect();
    let count =
        volume(reduced.iter().map(|&axis| sizes[axis]), 1).ok_or_else(|| too_large(layout.pattern, sizes))?;
    if let Some(still) = Still::of_rows(rows, sizes, kept) {
        let nest = Nest::reduce(&still.sizes, kept, &reduced, rows);
        let data = summed(values, &nest, still.volume(kept), still.volume(&reduced))?;
        return still.sums(data, sizes, kept);
    }
    let nest = Nest::reduce(sizes, kept, &reduced, rows);
    summed(values, &nest, len, count)
}

/// The sums of the product of all operands along the loops of a nest.
#[track_caller]
fn summed<T: Num>(
    values: &impl ValueList<T>,
    nest: &Nest,
    len: usize,
    count: usize,
) -> Result<Vec<T>, DimError> {
    let work = if parallel(values) { len.saturating_mul(count) } else { 0 };
    note(|| PlanStep::Reduce {
        reduction: "sum",
        expression: values.describe(),
        loops: Loops::new::<T>(nest, len, threads::parts(work)),
        count,
    });
    let mut parts = NestParts::new();
    let lower = |nest| values.product(&mut Nest::operands(nest));
    Ok(kernels::reduce::reduce(nest, &mut parts, lower, work, Destination::New(len), count, Sum)?)
}

/// Whether the reader of the operands may run on several threads.
fn parallel<T: Num, V: ValueList<T>>(_: &V) -> bool {
    V::Product::<'_>::PARALLEL
}
