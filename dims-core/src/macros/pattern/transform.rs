//! Rearrangements, repetitions and reductions.

use super::args::{Args, End, ValueList, lay_out, unify};
use super::data::{GivenSize, Pattern};
use super::direct::BoundPattern;
use super::einsum::{PatternOutput, too_large};
use super::input::Values;
use super::join::{self, needs_joining};
use super::layout::PatternLayout;
use super::rank::{OutRank, ResultOf};
use super::recorded::{refuse, result, traced};
use super::reductions::Reduction;
use crate::error::DimError;
use crate::expr::evaluate::few;
use crate::expr::record::{self, is_active, mapped};
use crate::order::told_as;
use crate::plan::shape::volume;
use crate::set::Dims;
use alloc::vec::Vec;
use kernels::load::Kernel;
use kernels::loops::axes::Order;
use kernels::loops::nest::{Nest, NestParts};
use kernels::loops::steps::{Loops, PlanStep, note, ran, told};
use kernels::machine::threads;
use kernels::memory::buffer::Buffer;
use kernels::memory::destination::Destination;
use kernels::reduce::{Reducer, reduce as run_reduction};
use kernels::scalar::Element;

/// The elements of the operands along the axes of the output: permuted, split, merged, repeated, or put together of several.
#[inline(always)]
#[track_caller]
pub fn rearrange<O, T, L>(
    pattern: &'static Pattern,
    operands: L,
    given: &[GivenSize],
) -> Result<PatternOutput<T, O, T, L>, DimError>
where
    T: Element,
    L: Args<T>,
    O: OutRank<L::Rest>,
    O::Rank: ResultOf<T, L::Dims>,
{
    rearrange_of::<O, T, L>(pattern, &operands.values(), given)
}

/// [`rearrange`] of the elements of its operands.
#[inline]
#[track_caller]
fn rearrange_of<O, T, L>(
    pattern: &'static Pattern,
    values: &L::Values,
    given: &[GivenSize],
) -> Result<PatternOutput<T, O, T, L>, DimError>
where
    T: Element,
    L: Args<T>,
    O: OutRank<L::Rest>,
    O::Rank: ResultOf<T, L::Dims>,
{
    if !is_active()
        && pattern.pieces.is_empty()
        && let Some((elements, axes)) = values.first()
        && let Some(loops) = &pattern.loops
        && let mut bound = BoundPattern::new(loops, pattern.axes.len())
        && bound.bind(pattern, given, [axes].into_iter())
        && let Some(len) = bound.volume(bound.loops.kept, size_of::<T>())
    {
        let sizes = bound.shape(pattern.output);
        let data = if let Some(axes) = bound.few(0, len) {
            few(elements, &axes, Destination::New(len))
        } else {
            values.collect_first(&Nest::map(bound.sizes(), bound.loops.kept, &bound.rows), len)
        };
        let data = data.map_err(|error| named(error, pattern, &sizes))?;
        told_as::<L::Dims, _>(&data);
        return Ok(<O::Rank as ResultOf<T, L::Dims>>::build(data, &sizes));
    }
    if !is_active()
        && pattern.pieces.is_empty()
        && let Some((axes, items)) = values.first_list()
        && let Some(loops) = &pattern.loops
        && let mut bound = BoundPattern::new(loops, pattern.axes.len())
        && bound.bind(pattern, given, [axes].into_iter())
        && let Some((data, sizes)) = join::listed(pattern, &mut bound, items)
    {
        told_as::<L::Dims, _>(&data);
        return Ok(<O::Rank as ResultOf<T, L::Dims>>::build(data, &sizes));
    }
    let (data, sizes) = moved::<T, L::Dims>(pattern, given, values)?;
    result::<T, L::Dims, O::Rank>(data, &sizes, "rearrange!")
}

/// The elements and the sizes of the result.
#[track_caller]
fn moved<T: Element, U: Dims>(
    pattern: &'static Pattern,
    given: &[GivenSize],
    values: &impl ValueList<T>,
) -> Result<(Buffer<T>, Order), DimError> {
    let (shapes, layout) = unify::<T, U>(pattern, given, values)?;
    let sizes = layout.shape(pattern.output)?;
    let len = volume(sizes.iter().copied(), size_of::<T>()).ok_or_else(|| too_large(pattern, &sizes))?;
    if needs_joining(pattern, values) {
        let data = join::joined::<T, U>(&layout, &shapes, values, &sizes, len)?;
        return Ok((data, sizes));
    }
    let rows = lay_out::<T, U>(&layout, &shapes, values)?;
    let order = layout.order(pattern.output);
    let traced = traced::<T, T>(&layout.sizes, &rows, values)?;
    let nest = Nest::map(&layout.sizes, &order, &rows);
    let data = values.collect_first(&nest, len).map_err(|error| named(error, pattern, &sizes))?;
    told(&data);
    Ok((mapped(data, traced, &order), sizes))
}

/// The error of a run: where memory was short, the result's sizes are named.
pub(super) fn named(error: DimError, pattern: &Pattern, sizes: &[usize]) -> DimError {
    match error {
        DimError::TooLarge { .. } => too_large(pattern, sizes),
        error => error,
    }
}

/// Combines the elements along all axes that the output has not.
#[inline(always)]
#[track_caller]
pub fn reduce<O, T, L, V, Q: Reduction<T>>(
    pattern: &'static Pattern,
    reduction: Q,
    operands: L,
    given: &[GivenSize],
) -> Result<PatternOutput<Q::Out, O, T, L>, DimError>
where
    T: Element,
    L: Args<T, Values = (V, End)>,
    V: Values<Elem = T>,
    O: OutRank<L::Rest>,
    O::Rank: ResultOf<Q::Out, L::Dims>,
{
    reduce_of::<O, T, L, V, Q>(pattern, reduction, &mut operands.values(), given)
}

/// [`reduce`] of the elements of its operand.
#[inline]
#[track_caller]
fn reduce_of<O, T, L, V, Q: Reduction<T>>(
    pattern: &'static Pattern,
    reduction: Q,
    values: &mut (V, End),
    given: &[GivenSize],
) -> Result<PatternOutput<Q::Out, O, T, L>, DimError>
where
    T: Element,
    L: Args<T, Values = (V, End)>,
    V: Values<Elem = T>,
    O: OutRank<L::Rest>,
    O::Rank: ResultOf<Q::Out, L::Dims>,
{
    values.settle()?;
    if !is_active()
        && let Some((_, axes)) = values.first()
        && let Some(loops) = &pattern.loops
        && let mut bound = BoundPattern::new(loops, pattern.axes.len())
        && bound.bind(pattern, given, [axes].into_iter())
        && let Some(len) = bound.volume(bound.loops.kept, size_of::<Q::Out>())
        && let Some(count) = bound.volume(bound.loops.reduced, 1)
    {
        let nest = Nest::reduce(bound.sizes(), bound.loops.kept, bound.loops.reduced, &bound.rows);
        let sizes = bound.shape(pattern.output);
        let data = combined(values, &nest, len, count, reduction.reducer())
            .map_err(|error| named(error, pattern, &sizes))?;
        told_as::<L::Dims, _>(&data);
        return Ok(<O::Rank as ResultOf<Q::Out, L::Dims>>::build(data, &sizes));
    }
    let refuses = Q::NEEDS_ELEMENTS;
    let (data, sizes) = reduced::<T, L::Dims, _, _>(pattern, reduction.reducer(), refuses, given, values)?;
    result::<Q::Out, L::Dims, O::Rank>(data, &sizes, "reduce!")
}

/// The elements and the sizes of the result.
#[track_caller]
fn reduced<T: Element, U: Dims, V: Values<Elem = T>, R: Reducer<T, Out: Element>>(
    pattern: &'static Pattern,
    reducer: R,
    needs_elements: bool,
    given: &[GivenSize],
    values: &(V, End),
) -> Result<(Buffer<R::Out>, Order), DimError> {
    let (shapes, layout) = unify::<T, U>(pattern, given, values)?;
    let rows = lay_out::<T, U>(&layout, &shapes, values)?;
    let sizes = layout.shape(pattern.output)?;
    let len = volume(sizes.iter().copied(), size_of::<R::Out>()).ok_or_else(|| too_large(pattern, &sizes))?;
    let kept = layout.order(pattern.output);
    let reduced: Order = reduced_loops(&layout, &kept);
    let count = volume(reduced.iter().map(|&axis| layout.sizes[axis]), 1)
        .ok_or_else(|| too_large(pattern, &layout.sizes))?;
    if needs_elements && count == 0 && len > 0 {
        let dims = reduced.iter().filter_map(|&axis| axis.checked_sub(layout.axis(0)));
        let dims: Vec<_> = dims.map(|axis| format!("`{}`", pattern.axes[axis])).collect();
        return Err(DimError::EmptyReduction { op: R::NAME, dims: format!("axes {}", dims.join(", ")) });
    }
    let traced = traced::<T, R::Out>(&layout.sizes, &rows, values)?;
    let nest = Nest::reduce(&layout.sizes, &kept, &reduced, &rows);
    let data = combined(values, &nest, len, count, reducer).map_err(|error| named(error, pattern, &sizes))?;
    told(&data);
    Ok((record::reduced(data, traced, &kept, &reduced, reducer.derivative(), R::NAME)?, sizes))
}

/// The reduction of the operand along the loops of a nest.
fn combined<T: Element, V: Values<Elem = T>, R: Reducer<T, Out: Element>>(
    values: &(V, End),
    nest: &Nest,
    len: usize,
    count: usize,
    reducer: R,
) -> Result<Vec<R::Out>, DimError> {
    let work = if V::Kernel::<'_>::PARALLEL { len.saturating_mul(count) } else { 0 };
    note(|| PlanStep::Reduce {
        reduction: R::NAME,
        expression: values.0.describe(),
        loops: Loops::new::<R::Out>(nest, len, threads::parts(work)),
        count,
    });
    let mut parts = NestParts::new();
    let lower = |nest| values.0.kernel(&mut Nest::operands(nest));
    Ok(run_reduction(nest, &mut parts, lower, work, Destination::New(len), count, reducer)?)
}

/// As [`reduce`], by any function of the elements along the reduced axes, which come in the order in which the operand has them.
#[inline]
#[track_caller]
#[rustfmt::skip] // rustc quotes the line
pub fn reduce_by<O, T: Element, U: Element, L: Args<T, Values = (V, End)>, V: Values<Elem = T>, F: FnMut(&[T]) -> U>(
    pattern: &'static Pattern,
    operands: L,
    given: &[GivenSize],
    function: F,
) -> Result<PatternOutput<U, O, T, L>, DimError>
where
    O: OutRank<L::Rest>,
    O::Rank: ResultOf<U, L::Dims>,
{
    let mut values = operands.values();
    values.settle()?;
    refuse(&values, "a function in `reduce!`")?;
    let (elements, count, sizes) = gathered::<T, L::Dims, _>(pattern, given, &values)?;
    let parts = (0..volume(sizes.iter().copied(), size_of::<U>())
        .ok_or_else(|| too_large(pattern, &sizes))?)
        .map(|at| &elements[at * count..][..count]);
    let data = parts.map(function).collect();
    Ok(<O::Rank as ResultOf<U, L::Dims>>::build(data, &sizes))
}

/// The elements in the order of the result, those of each part one behind the other; how many there are in a part; and the sizes of the result.
fn gathered<T: Element, U: Dims, V: Values<Elem = T>>(
    pattern: &'static Pattern,
    given: &[GivenSize],
    values: &(V, End),
) -> Result<(Vec<T>, usize, Order), DimError> {
    let (shapes, layout) = unify::<T, U>(pattern, given, values)?;
    let rows = lay_out::<T, U>(&layout, &shapes, values)?;
    let sizes = layout.shape(pattern.output)?;
    let mut order = layout.order(pattern.output);
    let reduced = reduced_loops(&layout, &order);
    let too_large = || too_large(pattern, &layout.sizes);
    let count = volume(reduced.iter().map(|&axis| layout.sizes[axis]), 1).ok_or_else(too_large)?;
    order.extend(reduced);
    let len = volume(order.iter().map(|&axis| layout.sizes[axis]), size_of::<T>()).ok_or_else(too_large)?;
    let nest = Nest::map(&layout.sizes, &order, &rows);
    let elements = values.collect_first(&nest, len).map_err(|error| named(error, pattern, &sizes))?;
    ran();
    Ok((elements, count, sizes))
}

/// The loops that are not kept, in the order in which the operand has them: the first position of an `argmax` is that of
/// the reduced axes as they were written.
fn reduced_loops(layout: &PatternLayout, kept: &[usize]) -> Order {
    let mut loops = Order::new();
    for slot in layout.pattern.inputs[0] {
        for axis in layout.loops_of(slot, 0) {
            if !kept.contains(&axis) && !loops.contains(&axis) {
                loops.push(axis);
            }
        }
    }
    loops
}
