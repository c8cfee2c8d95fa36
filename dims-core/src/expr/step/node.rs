//! The nodes that record the steps of expressions.

use super::refusal::refused;
use super::{OwnProgram, Part};
use crate::error::DimError;
use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::panic::Location;
use kernels::loops::nest::Odometer;
use kernels::memory::buffer::Buffer;
use kernels::ops::code::{LineWork, ReductionKind};
use kernels::program::code::DType;
use kernels::scalar::Element;
use kernels::trace::{Field, Node, NodeAxes, NodeStep, StridedPlace, rules};
use smallvec::SmallVec;

#[cold]
#[track_caller]
pub(super) fn mapped<T: Element>(data: Vec<T>, own: OwnProgram, order: &[usize]) -> Buffer<T> {
    let node = part_node(DType::of::<T>(), data.len(), own, order);
    Buffer::traced(data, node)
}

/// The node of a result that holds the elements of one field, contiguous in an order of its loops.
#[track_caller]
#[expect(clippy::boxed_local, reason = "`mapped` passes its box on")]
pub(super) fn part_node(dtype: Option<DType>, len: usize, own: OwnProgram, order: &[usize]) -> Arc<Node> {
    let place = StridedPlace::contiguous(&own.field.sizes, order);
    let axes = own.axes(order);
    let dtype = dtype.expect("only types that programs know are recorded");
    new_node(dtype, len, NodeStep::Parts(vec![Part { field: own.field, place }]), axes)
}

#[cold]
#[track_caller]
pub(super) fn reduction_of<T: Element>(
    data: Vec<T>,
    own: OwnProgram,
    axes: (&[usize], &[usize]),
    reduction: ReductionKind,
    operation: &'static str,
) -> Result<Buffer<T>, DimError> {
    let node = reduction_node(DType::of::<T>(), data.len(), own, axes, reduction, operation)?;
    Ok(Buffer::traced(data, node))
}

#[track_caller]
fn reduction_node(
    dtype: Option<DType>,
    len: usize,
    own: OwnProgram,
    (kept, reduced): (&[usize], &[usize]),
    reduction: ReductionKind,
    operation: &'static str,
) -> Result<Arc<Node>, DimError> {
    if reduction == ReductionKind::Opaque {
        return Err(refused(&own, operation));
    }
    let axes = own.axes(kept);
    let dtype = dtype.expect("only types that programs know are recorded");
    let (kept, reduced) = (kept.to_vec(), reduced.to_vec());
    let rule = rules::ReductionRule { field: own.field, kept, reduced, reduction, dtype };
    Ok(new_node(dtype, len, rule.into_step(), axes))
}

#[cold]
#[track_caller]
pub(super) fn lines_node(
    dtype: Option<DType>,
    len: usize,
    own: OwnProgram,
    (order, lines): (&[usize], &[usize]),
    work: LineWork,
    operation: &'static str,
) -> Result<Arc<Node>, DimError> {
    if work == LineWork::Opaque {
        return Err(refused(&own, operation));
    }
    let axes = own.axes(order);
    let dtype = dtype.expect("only types that programs know are recorded");
    let (order, lines) = (order.to_vec(), lines.to_vec());
    let rule = rules::LineRule { field: own.field, order, lines, work, dtype, is_masked: false };
    Ok(new_node(dtype, len, NodeStep::Rule(Box::new(rule)), axes))
}

#[track_caller]
pub(super) fn new_node(dtype: DType, len: usize, step: NodeStep, axes: Option<NodeAxes>) -> Arc<Node> {
    let node = Node::new(dtype, len, step, Some(Location::caller()));
    if let Some(axes) = axes {
        node.lies_along(|| axes);
    }
    node
}

/// The field, with zero in place of each element that a later one (in this order of the loops)
/// would overwrite.
pub(super) fn last_of_each(
    field: &Field,
    strides: &[isize],
    (offsets, along): (&[isize], &[usize]),
    order: &[usize],
) -> Field {
    let sizes = &field.sizes[..];
    let in_table = StridedPlace::contiguous(sizes, along).strides;
    let ordered: SmallVec<[usize; 8]> = order.iter().map(|&axis| sizes[axis]).collect();
    let mut at: SmallVec<[usize; 8]> = SmallVec::from_elem(0, order.len());
    let mut places = Vec::with_capacity(ordered.iter().product());
    let mut odometer = Odometer::new(&ordered);
    while !odometer.is_done() {
        let moved = |strides: &[isize]| {
            order.iter().zip(&at).map(|(&axis, &at)| strides[axis].wrapping_mul(at as isize)).sum::<isize>()
        };
        // (The sum may wrap, because the indices are not checked yet.)
        places.push(moved(strides).wrapping_add(offsets[moved(&in_table) as usize]));
        odometer.advance(&mut at);
    }
    let mut last = BTreeMap::new();
    places.iter().enumerate().for_each(|(number, &place)| {
        last.insert(place, number);
    });
    let stays: Vec<bool> = places.iter().enumerate().map(|(number, place)| last[place] == number).collect();
    let stays = Field::held(sizes, &Buffer::from(stays).held(), StridedPlace::contiguous(sizes, order));
    field.map([&stays], |build, a, [stays]| {
        let zero = build.float(0.0, build.kind(a));
        build.select(stays, a, zero)
    })
}
