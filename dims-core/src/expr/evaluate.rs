//! Computes the elements of an expression in a given order of all its loop axes.
//!
//! Elementwise work is planned here. Reductions, contractions, work along lines and assignments
//! have their own plans.

use crate::error::DimError;
use crate::expr::Expr;
use crate::expr::lowered::{LOWERS, is_lowered, lowered};
use crate::expr::step::{ExprStep, is_heard, taken};
use crate::plan::axes::AxisList;
use crate::plan::shape::Shape;
use crate::seal::PRIVATE;
use crate::storage::Evaluated;
use crate::storage::unchecked::{collect_lowered, collect_memory, copy_few, each_in_line, each_into_line};
use crate::types::rank::{Rank, Rank0};
use crate::types::set::{Dims, Keys, MAX_DIMS};
use alloc::vec::Vec;
use kernels::copy::FEW;
use kernels::load::Kernel;
use kernels::loops::nest::{Nest, NestParts};
use kernels::loops::rows::Rows;
use kernels::loops::steps::{Loops, PlanStep, note, told};
use kernels::loops::stride::{AnyStride, StrideKind, UnitStride};
use kernels::machine::threads;
use kernels::map::{elementwise, in_parts};
use kernels::memory::axes::Axis;
use kernels::memory::buffer::Buffer;
use kernels::memory::destination::Destination;
use kernels::memory::elements::Elements;
use kernels::scalar::Element;

/// Like [`evaluate`], for an `operation` without a derivative. Returns an error if the elements are
/// [traced](crate::expr::step).
#[inline]
#[track_caller]
pub(crate) fn evaluate_for<S: Dims, R: Rank, E: Expr>(
    expr: E,
    shape: &Shape,
    order: &[usize],
    operation: &'static str,
) -> Result<Vec<E::Elem>, DimError> {
    taken(evaluate::<S, R, E>(expr, shape, order)?, operation)
}

/// The elements of an expression, contiguous in this order of all its loop axes.
#[inline]
#[track_caller]
pub(crate) fn evaluate<S: Dims, R: Rank, E: Expr>(
    expr: E,
    shape: &Shape,
    order: &[usize],
) -> Result<Buffer<E::Elem>, DimError> {
    let step = ExprStep::of::<E::Elem, S, R, E>(&expr, shape)?;
    let scope = step.scope();
    let data = evaluate_unrecorded::<S, R, E>(expr, shape, order)?;
    drop(scope);
    Ok(step.map(data, order))
}

/// Like [`evaluate`], for an operand that is only read: a tensor that already has this order is not
/// copied.
#[cfg(feature = "linalg")]
#[track_caller]
pub(crate) fn evaluate_to_read<S: Dims, R: Rank, E: Expr>(
    expr: E,
    shape: &Shape,
    order: &[usize],
) -> Result<Buffer<E::Elem>, DimError> {
    let expr = match expr.into_contiguous::<S>(order) {
        Ok(data) => return Ok(data.into()),
        Err(expr) => expr,
    };
    match expr.shared::<S>(order) {
        Some(buffer) => Ok(buffer),
        None => evaluate::<S, R, E>(expr, shape, order),
    }
}

/// Like [`evaluate`], without recording a step.
#[cfg_attr(not(unoptimized), inline(always))]
#[track_caller]
pub(crate) fn evaluate_unrecorded<S: Dims, R: Rank, E: Expr>(
    expr: E,
    shape: &Shape,
    order: &[usize],
) -> Result<Vec<E::Elem>, DimError> {
    let len = shape.volume(order, size_of::<E::Elem>())?;
    let expr = match expr.into_contiguous::<S>(order) {
        Ok(data) => return Ok(data),
        Err(expr) => expr,
    };
    if const { R::N == 0 && is_all_of(E::FACTS.memory, S::KEYS) } {
        let (elements, axes) = expr.memory();
        return copied(elements, axes, shape, order, len);
    }
    let sizes = shape.sizes();
    let mut rows = Rows::new(sizes.len());
    expr.rows::<S, R>(shape, &mut rows);
    let nest = Nest::map(sizes, order, &rows);
    expr.finish::<S, R>(&nest, order, len, PRIVATE).map_err(|error| shape.name_dims(error, order))
}

/// Whether there are elements in memory, and they have all of `dims`.
const fn is_all_of(memory: Option<&Keys>, dims: &Keys) -> bool {
    match memory {
        Some(own) => own.is_same(dims),
        None => false,
    }
}

/// A copy of the elements of a tensor in memory, contiguous in this order of its axes. All loop
/// axes are axes of the tensor.
#[track_caller]
fn copied<T: Element>(
    elements: Elements<'_, T>,
    axes: &[Axis],
    shape: &Shape,
    order: &[usize],
    len: usize,
) -> Result<Vec<T>, DimError> {
    let sizes = shape.sizes();
    let mut rows = Rows::new(sizes.len());
    rows.push().iter_mut().zip(axes).for_each(|(stride, axis)| *stride = axis.stride);
    let nest = Nest::map(sizes, order, &rows);
    collect_memory(elements, &nest, Destination::of_step(len), "order of the result")
        .map_err(|error| shape.name_dims(error.into(), order))
}

/// The number of operands of an expression over the dims `S`, if their types say that all are
/// stored in this order.
pub(crate) const fn typed_operands<S: Dims, E: Expr>(order: &AxisList) -> Option<usize> {
    E::FACTS.layout.operands_in(order, S::KEYS)
}

/// The elements of an expression in the order of its operands in memory, which their types
/// determine: one contiguous loop.
#[track_caller]
pub(crate) fn evaluate_typed<S: Dims, E: Expr>(
    expr: E,
    shape: &Shape,
    order: &[usize],
    operands: Option<usize>,
) -> Result<Buffer<E::Elem>, DimError> {
    let len = shape.volume(order, size_of::<E::Elem>())?;
    let step = ExprStep::of::<E::Elem, S, Rank0, E>(&expr, shape)?;
    let expr = match expr.into_contiguous::<S>(order) {
        Ok(data) => return Ok(data.into()),
        Err(expr) => expr,
    };
    let operands = operands.expect("the layout of the operands is known");
    let scope = step.scope();
    let data = if const { E::FACTS.owns && E::FACTS.memory.is_none() } {
        in_place::<S, Rank0, UnitStride, _>(expr, &Nest::line::<UnitStride>(len, operands), order, len)
    } else {
        line::<UnitStride, _>(&expr, operands, Destination::of_step(len))
    };
    drop(scope);
    let data = data.map_err(|error| shape.name_dims(error, order))?;
    Ok(step.map(data, order))
}

/// Up to this many elements are computed or moved one by one without a plan, if each takes a few
/// instructions.
pub(crate) const SMALL: usize = 64;

/// The elements of an expression whose operands are all contiguous in the same order, computed by
/// one loop.
#[cfg_attr(not(unoptimized), inline(always))]
#[track_caller]
pub(crate) fn line<W: StrideKind, E: Expr>(
    expr: &E,
    operands: usize,
    to: Destination<'_, E::Elem>,
) -> Result<Vec<E::Elem>, DimError> {
    let len = to.len();
    if const { E::FACTS.memory.is_some() } {
        return line_in_memory(expr.memory().0, W::UNIT, to);
    }
    if const { E::FACTS.simple } && len <= SMALL && !is_lowered(len) {
        note_line::<W, E>(expr, len, operands);
        return each_in_line::<E::Elem>(to, |at| expr.nth(at)).map_err(DimError::from);
    }
    let nest = Nest::line::<W>(len, operands);
    if W::UNIT { collect_by::<W, E>(expr, &nest, to) } else { expr.collect(&nest, to, PRIVATE) }
}

/// [`line()`] for elements in memory.
#[track_caller]
fn line_in_memory<T: Element>(
    elements: Elements<'_, T>,
    typed: bool,
    to: Destination<'_, T>,
) -> Result<Vec<T>, DimError> {
    let len = to.len();
    let nest = if typed { Nest::line::<UnitStride>(len, 1) } else { Nest::line::<AnyStride>(len, 1) };
    Ok(collect_memory(elements, &nest, to, "order of the result")?)
}

/// Like [`line()`], but writes into `places`.
#[cfg_attr(not(unoptimized), inline(always))]
#[track_caller]
pub(crate) fn line_into<W: StrideKind, E: Expr>(
    expr: &E,
    operands: usize,
    places: &mut [E::Elem],
) -> Result<(), DimError> {
    let len = places.len();
    if const { E::FACTS.simple } && len <= SMALL && !is_lowered(len) {
        note_line::<W, E>(expr, len, operands);
        each_into_line(places, |at| expr.nth(at));
        return Ok(());
    }
    long_line_into::<W, E>(expr, operands, places)
}

#[inline(never)]
#[track_caller]
fn long_line_into<W: StrideKind, E: Expr>(
    expr: &E,
    operands: usize,
    places: &mut [E::Elem],
) -> Result<(), DimError> {
    line::<W, E>(expr, operands, Destination::Given(places)).map(drop)
}

#[cfg_attr(not(unoptimized), inline(always))]
#[track_caller]
fn note_line<W: StrideKind, E: Expr>(expr: &E, len: usize, operands: usize) {
    note(|| PlanStep::Elementwise {
        expression: expr.describe(),
        loops: Loops::new::<E::Elem>(&Nest::line::<W>(len, operands), len, 1),
    });
}

/// [`copy_few`], recorded in plans like any other copy.
#[cfg_attr(not(unoptimized), inline(always))]
#[track_caller]
pub(crate) fn few<T: Copy + 'static>(
    elements: Elements<'_, T>,
    axes: &[Axis; FEW],
    to: Destination<'_, T>,
) -> Result<Vec<T>, DimError> {
    note(|| step_of_few(axes, to.len() * size_of::<T>()));
    Ok(copy_few(elements, axes, to)?)
}

#[cold]
#[inline(never)]
fn step_of_few(axes: &[Axis; FEW], bytes: usize) -> PlanStep {
    let mut rows = Rows::new(FEW);
    rows.push().iter_mut().zip(axes).for_each(|(stride, axis)| *stride = axis.stride);
    let nest = Nest::map(&axes.map(|axis| axis.size), &[0, 1, 2, 3], &rows);
    PlanStep::Copy { reason: "order of the result", loops: Loops::of_bytes(&nest, bytes, 1) }
}

/// The axes that all operands share, in the order of the dims in `S`, and the number of elements.
/// The types must say that all operands have the same layout. `None` if the operands' sizes differ,
/// or the number of elements overflows.
#[cfg_attr(not(unoptimized), inline(always))]
pub(crate) fn typed_line<S: Dims, E: Expr>(expr: &E) -> Option<(&[Axis], usize)> {
    let (mut like, mut operands) = (None, 0);
    if !expr.alike::<S, UnitStride>(&mut like, &mut operands) {
        return None;
    }
    let axes = like?;
    Some((axes, volume_of(axes)?))
}

/// The product of the sizes. `None` if it overflows.
#[cfg_attr(not(unoptimized), inline(always))]
fn volume_of(axes: &[Axis]) -> Option<usize> {
    axes.iter().try_fold(1usize, |len, axis| len.checked_mul(axis.size))
}

/// The axes that all operands share, in the order of the dims in `S`, if the operands are
/// contiguous in `order`, so that the plan is a single loop. Also the numbers of elements and of operands.
#[cfg_attr(not(unoptimized), inline(always))]
pub(crate) fn in_line<'e, S: Dims, E: Expr>(
    expr: &'e E,
    order: &'static AxisList,
) -> Option<(&'e [Axis], usize, usize)> {
    let (mut like, mut operands) = (None, 0);
    if !expr.alike::<S, AnyStride>(&mut like, &mut operands) {
        return None;
    }
    let axes = like?;
    let mut len: usize = 1;
    for &at in order.as_slice().iter().rev() {
        let Axis { size, stride } = axes[at];
        if stride != len as isize && size != 1 {
            return None;
        }
        len = len.checked_mul(size)?;
    }
    Some((axes, len, operands))
}

/// The sizes of some axes, in an order, padded with 0. (A separate function, because the callers
/// are compiled for each expression.)
#[inline]
pub(crate) fn sizes_of(axes: &[Axis], order: &[usize]) -> [usize; MAX_DIMS] {
    let mut sizes = [0; MAX_DIMS];
    for (size, &at) in sizes.iter_mut().zip(order) {
        *size = axes[at].size;
    }
    sizes
}

/// [`evaluate_tensor`] for cases that need no plan: all operands have the layout of the result, or
/// the expression is itself a tensor that owns its elements in that layout. Returns the expression in other cases, and also if
/// there are positional axes, memory is traced, types determine the layout (see
/// [`evaluate_typed`]), or the planned path may reuse the memory of many owned elements.
#[cfg_attr(not(unoptimized), inline(always))]
#[track_caller]
pub(crate) fn eval_unplanned<S: Dims, R: Rank, E: Expr>(expr: E) -> Result<Evaluated<E::Elem, S, R>, E> {
    if R::N > 0 || is_heard() || const { typed_operands::<S, E>(&AxisList::in_memory(S::KEYS, 0)).is_some() }
    {
        return Err(expr);
    }
    let list = const { &AxisList::in_memory(S::KEYS, 0) };
    let order = list.as_slice();
    let expr = if const { E::FACTS.owns && E::FACTS.memory.is_some() } {
        let sizes = sizes_of(expr.memory().1, order);
        match expr.into_contiguous::<S>(order) {
            Ok(data) => return Ok(Evaluated::laid_out(data, &sizes[..order.len()])),
            Err(expr) => expr,
        }
    } else {
        expr
    };
    if let Some((axes, len, operands)) = in_line::<S, E>(&expr, list)
        && (!E::FACTS.owns || len <= SMALL)
        // (If memory is short, the planned path reports the sizes.)
        && let Ok(data) = line::<AnyStride, _>(&expr, operands, Destination::New(len))
    {
        told(&data);
        return Ok(Evaluated::laid_out(data, &sizes_of(axes, order)[..order.len()]));
    }
    Err(expr)
}

/// The elements of an expression over the dims `S`, in the order in which results are stored.
#[inline]
#[track_caller]
pub(crate) fn evaluate_tensor<S: Dims, R: Rank, E: Expr>(
    expr: E,
    shape: &Shape,
) -> Result<Evaluated<E::Elem, S, R>, DimError> {
    let order = AxisList::in_memory_of::<S, R>().as_slice();
    let data = if const { typed_operands::<S, E>(&AxisList::in_memory(S::KEYS, R::N)).is_some() } {
        let operands = const { typed_operands::<S, E>(&AxisList::in_memory(S::KEYS, R::N)) };
        evaluate_typed::<S, _>(expr, shape, order, operands)?
    } else {
        evaluate::<S, R, _>(expr, shape, order)?
    };
    let sizes = shape.sizes_in(order);
    Ok(Evaluated::laid_out(data, &sizes))
}

/// Like [`evaluate_tensor`], in a given order of all axes (numbered with dims first).
#[track_caller]
pub(crate) fn evaluate_tensor_in<S: Dims, R: Rank, E: Expr>(
    expr: E,
    shape: &Shape,
    order: &[usize],
) -> Result<Evaluated<E::Elem, S, R>, DimError> {
    let data = evaluate::<S, R, _>(expr, shape, order)?;
    let sizes = shape.sizes_in(order);
    Ok(Evaluated::in_order(data, order, &sizes))
}

/// The elements of a loop nest, on as many threads as pay off.
#[cfg_attr(not(unoptimized), inline(always))]
#[track_caller]
pub(crate) fn collect_parts<E: Expr + ?Sized>(
    expr: &E,
    nest: &Nest,
    to: Destination<'_, E::Elem>,
) -> Result<Vec<E::Elem>, DimError> {
    collect_by::<AnyStride, E>(expr, nest, to)
}

/// Like [`collect_parts`], by a kernel for strides of kind `W`.
#[cfg_attr(not(unoptimized), inline(always))]
#[track_caller]
pub(crate) fn collect_by<W: StrideKind, E: Expr + ?Sized>(
    expr: &E,
    nest: &Nest,
    to: Destination<'_, E::Elem>,
) -> Result<Vec<E::Elem>, DimError> {
    let len = to.len();
    let threads = if E::Kernel::<'_, W>::PARALLEL { threads::parts(len) } else { 1 };
    note(|| PlanStep::Elementwise {
        expression: expr.describe(),
        loops: Loops::new::<E::Elem>(nest, len, threads),
    });
    if LOWERS && let Some(program) = lowered(expr, len) {
        return Ok(collect_lowered(&program, nest, to)?);
    }
    // Lines that are computed in parts take different times. So there are more shares than threads,
    // and an idle thread takes the next share.
    let shares = match threads {
        2.. if in_parts::<E::Kernel<'_, W>>(nest, 4 * threads) => 4 * threads,
        threads => threads,
    };
    let parts = if shares > 1 { nest.split(0, shares) } else { NestParts::new() };
    let parts = if shares > 1 { &parts[..] } else { core::slice::from_ref(nest) };
    Ok(elementwise::collect(parts, &|nest| expr.kernel::<W>(&mut nest.operands()), to)?)
}

/// The elements of an expression: written over elements that it owns, if [`Expr::place`] returns
/// their memory, otherwise into new memory.
#[cfg_attr(not(unoptimized), inline(always))]
#[track_caller]
pub(crate) fn in_place<U: Dims, R: Rank, W: StrideKind, E: Expr>(
    mut expr: E,
    nest: &Nest,
    order: &[usize],
    len: usize,
) -> Result<Vec<E::Elem>, DimError> {
    let own = expr.place::<E::Elem, U, R>(order, len, PRIVATE);
    let to = own.as_ref().map_or(Destination::of_step(len), Destination::Reused);
    let new = collect_by::<W, E>(&expr, nest, to)?;
    Ok(own.map_or(new, |place| expr.into_place(&place, PRIVATE).expect("the expression owns this memory")))
}
