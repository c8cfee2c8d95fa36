//! Rearrangements, repetitions and reductions.

use super::args::{Args, End, ValueList, lay_out, unify};
use super::data::{GivenSize, Pattern};
use super::direct::BoundPattern;
use super::einsum::{PatternOutput, named, too_large};
use super::input::Values;
use super::join::{self, needs_joining};
use super::layout::PatternLayout;
use super::operand::OneOperand;
use super::product::AllOperands;
use super::rank::{OutRank, ResultOf};
use super::reductions::Reduction;
use crate::error::DimError;
use crate::execute::loops::{
    self, KeptLoops, RunLoops, check_operand_taken, mapped, mapped_short, reduced_short, short_way,
};
use crate::execute::order::told_as;
use crate::plan::shape::volume;
use crate::seal::PRIVATE;
use crate::types::set::Dims;
use alloc::string::String;
use alloc::vec::Vec;
use kernels::loops::axes::Order;
use kernels::loops::nest::Nest;
use kernels::loops::steps::ran;
use kernels::memory::buffer::Buffer;
use kernels::reduce::Reducer;
use kernels::scalar::Element;

/// The elements of the operands along the axes of the output: permuted, split, merged, repeated, or
/// concatenated.
#[cfg_attr(not(unoptimized), inline(always))]
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

/// Like [`rearrange`], for the `values` of the operands.
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
    if pattern.pieces.is_empty()
        && let Some(memory) = short_way(|| values.first())
        && let Some(loops) = &pattern.loops
        && let mut bound = BoundPattern::new(loops, pattern.axes.len())
        && bound.bind(pattern, given, [memory.1].into_iter())
        && let Some(len) = bound.volume(bound.loops.kept, size_of::<T>())
    {
        let sizes = bound.shape(pattern.output);
        let few = bound.few(0, len).map(|axes| (memory, axes));
        let data = mapped_short(&AllOperands::of(values), few, bound.run(), bound.loops.kept, len)
            .map_err(|error| named(error, pattern, &sizes))?;
        told_as::<L::Dims, _>(&data);
        return Ok(<O::Rank as ResultOf<T, L::Dims>>::build(data, &sizes));
    }
    if pattern.pieces.is_empty()
        && let Some((axes, items)) = short_way(|| values.first_list())
        && let Some(loops) = &pattern.loops
        && let mut bound = BoundPattern::new(loops, pattern.axes.len())
        && bound.bind(pattern, given, [axes].into_iter())
        && let Some((data, sizes)) = join::listed(pattern, &mut bound, items)
    {
        told_as::<L::Dims, _>(&data);
        return Ok(<O::Rank as ResultOf<T, L::Dims>>::build(data, &sizes));
    }
    let (data, sizes) = moved::<T, L::Dims>(pattern, given, values)?;
    <O::Rank as ResultOf<T, L::Dims>>::build_of(data, &sizes, "rearrange!")
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
    let loops = RunLoops { sizes: &layout.sizes, rows: &rows };
    let data = mapped(&AllOperands::of(values), loops, &order, len)
        .map_err(|error| named(error, pattern, &sizes))?;
    Ok((data, sizes))
}

/// Reduces the elements along all axes that the output lacks.
#[cfg_attr(not(unoptimized), inline(always))]
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

/// Like [`reduce`], for the `values` of the operand.
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
    if let Some((_, axes)) = short_way(|| values.first())
        && let Some(loops) = &pattern.loops
        && let mut bound = BoundPattern::new(loops, pattern.axes.len())
        && bound.bind(pattern, given, [axes].into_iter())
        && let Some(len) = bound.volume(bound.loops.kept, size_of::<Q::Out>())
        && let Some(count) = bound.volume(bound.loops.reduced, 1)
    {
        let sizes = bound.shape(pattern.output);
        let result = bound.result(len, Some(count));
        let data = reduced_short(&OneOperand(&values.0), bound.run(), result, reduction.reducer())
            .map_err(|error| named(error, pattern, &sizes))?;
        told_as::<L::Dims, _>(&data);
        return Ok(<O::Rank as ResultOf<Q::Out, L::Dims>>::build(data, &sizes));
    }
    let refuses = Q::NEEDS_ELEMENTS;
    let (data, sizes) = reduced::<T, L::Dims, _, _>(pattern, reduction.reducer(), refuses, given, values)?;
    <O::Rank as ResultOf<Q::Out, L::Dims>>::build_of(data, &sizes, "reduce!")
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
        let dims = names_of_axes(pattern, layout.axis(0), &reduced);
        return Err(DimError::EmptyReduction { op: reducer.name(), dims });
    }
    let loops = RunLoops { sizes: &layout.sizes, rows: &rows };
    let result = KeptLoops { kept: &kept, reduced: &reduced, len, count: Some(count) };
    let data = loops::reduced(&OneOperand(&values.0), loops, result, reducer)
        .map_err(|error| named(error, pattern, &sizes))?;
    Ok((data, sizes))
}

/// Names loops in a message. The loops from `first` on are axes that the pattern names. Earlier
/// loops are axes of `...`.
fn names_of_axes(pattern: &Pattern, first: usize, loops: &[usize]) -> String {
    let named = loops.iter().filter_map(|&axis| axis.checked_sub(first));
    let named: Vec<String> = named.map(|axis| format!("`{}`", pattern.axes[axis])).collect();
    let noun = if named.len() == 1 { "axis" } else { "axes" };
    let mut names = if named.is_empty() { String::new() } else { format!("{noun} {}", named.join(", ")) };
    if loops.iter().any(|&axis| axis < first) {
        names.push_str(if named.is_empty() { "the axes of `...`" } else { " and the axes of `...`" });
    }
    names
}

/// Like [`reduce`], but calls `function` with the elements along the reduced axes, in the order of
/// the operand's axes.
#[inline]
#[track_caller]
#[rustfmt::skip] // rustc quotes the next line in errors
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
    check_operand_taken(&AllOperands::of(&values), "reduce! with a closure")?;
    let (elements, count, sizes) = gathered::<T, L::Dims, _>(pattern, given, &values)?;
    let parts = (0..volume(sizes.iter().copied(), size_of::<U>())
        .ok_or_else(|| too_large(pattern, &sizes))?)
        .map(|at| &elements[at * count..][..count]);
    let data = parts.map(function).collect();
    Ok(<O::Rank as ResultOf<U, L::Dims>>::build(data, &sizes))
}

/// The elements in the order of the result, where the elements to reduce together are adjacent;
/// how many of them are reduced to each element of the result; and the sizes of the result.
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
    let elements =
        values.collect_first(&nest, len, PRIVATE).map_err(|error| named(error, pattern, &sizes))?;
    ran();
    Ok((elements, count, sizes))
}

/// The reduced loops, in the operand's order of axes, because the position of an `argmax` counts
/// along the reduced axes in this order.
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
