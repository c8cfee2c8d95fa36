//! The steps of recorded programs: what expressions, reductions and other operations yield.

use crate::error::{DimError, no_derivative, no_own_derivative};
use crate::expr::Expr;
use crate::plan::explain;
use crate::plan::shape::Shape;
use crate::rank::{Rank, Rank0};
use crate::set::{Dims, Keys};
use alloc::boxed::Box;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::panic::Location;
use kernels::loops::nest::Nest;
use kernels::loops::rows::Rows;
use kernels::loops::steps::{is_listening, told};
use kernels::memory::buffer::Buffer;
use kernels::memory::destination::Destination;
use kernels::program::Register;
use kernels::program::code::{DType, LineWork, ReductionKind};
use kernels::scalar::Element;
pub(crate) use kernels::trace::Part;
pub(crate) use kernels::trace::is_active;
use kernels::trace::record::{Unrecorded, Writer};
use kernels::trace::{Field, Held, Node, NodeStep, Rule, StridedPlace, names_of_variables, registry, rules};

/// The field of an expression whose result is traced.
pub(crate) type Traced = Option<Box<Field>>;

/// The field of an expression that yields elements of the type `T`, if an operand is traced and they are floats: others have no derivatives.
#[inline(always)]
#[track_caller]
pub(crate) fn traced<T: Element, U: Dims, R: Rank, E: Expr + ?Sized>(
    expr: &E,
    shape: &Shape,
) -> Result<Traced, DimError> {
    if is_active() { written::<T, U, R, E>(expr, shape) } else { Ok(None) }
}

/// The field of an expression, which need not be traced, over the loops of a shape. What programs do not know is computed, along the loops `axes` as the expression
/// varies along no others; it is an error if it is traced.
#[track_caller]
pub(crate) fn field<T: Element, U: Dims, E: Expr<Elem = T> + ?Sized>(
    expr: &E,
    shape: &Shape,
    axes: &[usize],
) -> Result<Field, DimError> {
    let mut rows = Rows::new(shape.sizes().len());
    expr.rows::<U, Rank0>(shape, &mut rows);
    // (Programs know constants and elements in memory: no kernel is instantiated to compute these.)
    let known = const { E::FACTS.factors == 0 || E::FACTS.memory.is_some() };
    if let Some(field) =
        field_of(DType::of::<T>(), shape.sizes(), &rows, known, &mut |writer| expr.write(writer))?
    {
        return Ok(field);
    }
    if const { E::FACTS.factors == 0 || E::FACTS.memory.is_some() } {
        unreachable!("programs know it");
    }
    let sizes = shape.sizes();
    let len = shape.volume(axes, size_of::<T>())?;
    let data = expr.collect(&Nest::map(sizes, axes, &rows), Destination::New(len))?;
    Ok(Field::held(sizes, &Buffer::from(data).held(), StridedPlace::contiguous(sizes, axes)))
}

/// The same for elements of any type; nothing where programs do not know the expression, and no gradient is lost if it is computed.
#[track_caller]
fn field_of<'w>(
    dtype: Option<DType>,
    sizes: &[usize],
    rows: &Rows,
    known: bool,
    write: &mut dyn FnMut(&mut Writer<'w>) -> Register,
) -> Result<Option<Field>, DimError> {
    let mut writer = Writer::new();
    let value = write(&mut writer);
    if let Some(operation) = writer.opaque_operation() {
        let is_lost = known || writer.is_traced() && dtype.is_some_and(DType::is_float);
        return if is_lost { Err(lost(operation, writer.names_of_variables())) } else { Ok(None) };
    }
    match writer.finish_any(value, sizes, rows) {
        Ok(field) => Ok(Some(field)),
        Err(Unrecorded::Memory(error)) => Err(error.into()),
        Err(_) => unreachable!("programs know the expression"),
    }
}

#[cold]
#[inline(never)]
#[track_caller]
fn written<T: Element, U: Dims, R: Rank, E: Expr + ?Sized>(
    expr: &E,
    shape: &Shape,
) -> Result<Traced, DimError> {
    let mut rows = Rows::new(shape.sizes().len());
    expr.rows::<U, R>(shape, &mut rows);
    let mut traced = written_by::<T>(shape.sizes(), &rows, &mut |writer| expr.write(writer))?;
    if let Some(field) = &mut traced {
        name_loops(field, U::KEYS);
    }
    Ok(traced)
}

/// Names the loops of a field, if anybody hears of its steps.
fn name_loops(field: &mut Field, keys: &Keys) {
    if is_listening() {
        field.names = Some((0..field.sizes.len()).map(|axis| explain::name(keys, axis)).collect());
    }
}

/// The field that `write` writes, if an operand is traced and elements of `T` have derivatives.
#[track_caller]
fn written_by<'w, T: Element>(
    sizes: &[usize],
    rows: &Rows,
    write: &mut dyn FnMut(&mut Writer<'w>) -> Register,
) -> Result<Traced, DimError> {
    written_as(DType::of::<T>(), core::any::type_name::<T>(), sizes, rows, write)
}

/// The same for elements of a type with this name. (Apart, as it is compiled with this crate.)
#[track_caller]
fn written_as<'w>(
    dtype: Option<DType>,
    name: &'static str,
    sizes: &[usize],
    rows: &Rows,
    write: &mut dyn FnMut(&mut Writer<'w>) -> Register,
) -> Result<Traced, DimError> {
    let mut writer = Writer::new();
    // (The writer notes which variables are read: the gradient by them is 0.)
    let mut value = write(&mut writer);
    if dtype.is_some_and(|dtype| !dtype.is_float()) && !writer.is_recorded() {
        return Ok(None);
    }
    if dtype.is_none() {
        value = writer.opaque(name);
    }
    finished(writer.finish(value, sizes, rows))
}

/// Notes which variables an expression reads that is computed without being recorded: the gradient by them is 0.
#[inline]
pub(crate) fn note_read<E: Expr + ?Sized>(expr: &E) {
    if is_active() {
        expr.write(&mut Writer::new());
    }
}

/// Whether an operand of an expression that yields floats is traced.
#[inline]
#[track_caller]
pub(crate) fn is_traced<T: Element, U: Dims, E: Expr + ?Sized>(
    expr: &E,
    shape: &Shape,
) -> Result<bool, DimError> {
    Ok(traced::<T, U, Rank0, E>(expr, shape)?.is_some())
}

#[track_caller]
pub(crate) fn finished(field: Result<Option<Field>, Unrecorded>) -> Result<Traced, DimError> {
    match field {
        Ok(field) => Ok(field.map(Box::new)),
        Err(Unrecorded::Memory(error)) => Err(error.into()),
        Err(Unrecorded::Opaque(operation, names)) => Err(match operation {
            "map" => {
                let remedy = "give it a derivative, as a `ScalarOp` for `x.apply(op)`";
                no_own_derivative(operation, remedy, &names)
            }
            "zip_map" => {
                let remedy = "give it a derivative, as a `ScalarOp` for `x.apply_with(y, op)`";
                no_own_derivative(operation, remedy, &names)
            }
            _ => lost(operation, names),
        }),
        Err(Unrecorded::Own(operation, names)) => {
            let remedy = "give it a derivative, as `fn derivative` of its `ScalarOp`";
            Err(no_own_derivative(operation, remedy, &names))
        }
    }
}

/// The field that `write` writes, of operands with these strides along loops of these sizes, if one of them is traced.
#[cold]
#[inline(never)]
#[track_caller]
pub(crate) fn traced_by<'w, T: Element>(
    sizes: &[usize],
    rows: &Rows,
    mut write: impl FnMut(&mut Writer<'w>) -> Register,
) -> Result<Traced, DimError> {
    written_by::<T>(sizes, rows, &mut write)
}

/// The error of an operation through which no gradient can be taken, and which depends on the variables of these names.
#[cold]
#[track_caller]
pub(crate) fn lost(operation: &'static str, names: Vec<String>) -> DimError {
    no_derivative(operation, &names)
}

/// The same for an operation on memory.
#[cold]
#[track_caller]
fn lost_from(operation: &'static str, held: &Arc<dyn Held>) -> DimError {
    lost(operation, names_of_variables(held.node()))
}

/// Elements that were computed, contiguous in an order of all loops along which they vary, as a step of the program if that is recorded.
#[inline]
#[track_caller]
pub(crate) fn mapped<T: Element>(data: Vec<T>, traced: Traced, order: &[usize]) -> Buffer<T> {
    match traced {
        None => data.into(),
        Some(field) => part(data, field, order),
    }
}

#[cold]
#[track_caller]
fn part<T: Element>(data: Vec<T>, field: Box<Field>, order: &[usize]) -> Buffer<T> {
    let node = part_node(DType::of::<T>(), data.len(), field, order);
    Buffer::traced(data, node)
}

/// A step whose only part is a field, with elements that are contiguous in an order of loops.
#[track_caller]
#[expect(clippy::boxed_local, reason = "callers hand a pointer on")]
fn part_node(dtype: Option<DType>, len: usize, field: Box<Field>, order: &[usize]) -> Arc<Node> {
    let place = StridedPlace::contiguous(&field.sizes, order);
    new_node(dtype, len, NodeStep::Parts(vec![Part { field: *field, place }]))
}

/// The results of a reduction, contiguous in the order of the loops that are kept.
#[inline]
#[track_caller]
pub(crate) fn reduced<T: Element>(
    data: Vec<T>,
    traced: Traced,
    kept: &[usize],
    reduced: &[usize],
    reduction: ReductionKind,
    operation: &'static str,
) -> Result<Buffer<T>, DimError> {
    match traced {
        None => Ok(data.into()),
        Some(field) => reduction_of(data, field, (kept, reduced), reduction, operation),
    }
}

#[cold]
#[track_caller]
fn reduction_of<T: Element>(
    data: Vec<T>,
    field: Box<Field>,
    axes: (&[usize], &[usize]),
    reduction: ReductionKind,
    operation: &'static str,
) -> Result<Buffer<T>, DimError> {
    let node = reduction_node(DType::of::<T>(), data.len(), field, axes, reduction, operation)?;
    Ok(Buffer::traced(data, node))
}

#[track_caller]
#[expect(clippy::boxed_local, reason = "callers hand a pointer on")]
fn reduction_node(
    dtype: Option<DType>,
    len: usize,
    field: Box<Field>,
    (kept, reduced): (&[usize], &[usize]),
    reduction: ReductionKind,
    operation: &'static str,
) -> Result<Arc<Node>, DimError> {
    if reduction == ReductionKind::Opaque {
        return Err(lost(operation, names_of_variables(field.nodes())));
    }
    let own = dtype.expect("only floats are recorded");
    let (kept, reduced) = (kept.to_vec(), reduced.to_vec());
    let rule = rules::ReductionRule { field: *field, kept, reduced, reduction, dtype: own };
    Ok(new_node(dtype, len, rule.into_step()))
}

/// The results of work along the loops `lines`, contiguous in an order of all loops.
#[inline]
#[track_caller]
pub(crate) fn along<T: Element>(
    data: Vec<T>,
    traced: Traced,
    order: &[usize],
    lines: &[usize],
    work: LineWork,
    operation: &'static str,
) -> Result<Buffer<T>, DimError> {
    match traced {
        None => Ok(data.into()),
        Some(field) => {
            let node = lines_node(DType::of::<T>(), data.len(), field, (order, lines), work, operation)?;
            Ok(Buffer::traced(data, node))
        }
    }
}

#[cold]
#[track_caller]
#[expect(clippy::boxed_local, reason = "callers hand a pointer on")]
fn lines_node(
    dtype: Option<DType>,
    len: usize,
    field: Box<Field>,
    (order, lines): (&[usize], &[usize]),
    work: LineWork,
    operation: &'static str,
) -> Result<Arc<Node>, DimError> {
    if work == LineWork::Opaque {
        return Err(lost(operation, names_of_variables(field.nodes())));
    }
    let own = dtype.expect("only floats are recorded");
    let (order, lines) = (order.to_vec(), lines.to_vec());
    let rule = rules::LineRule { field: *field, order, lines, work, dtype: own };
    Ok(new_node(dtype, len, NodeStep::Rule(Box::new(rule))))
}

/// The memory of a buffer, if it is traced.
#[inline]
fn held_if_traced<T: Element>(buffer: &Buffer<T>) -> Option<Arc<dyn Held>> {
    if is_active() && buffer.is_traced() { Some(buffer.held()) } else { None }
}

/// Elements that a step with a rule of its own computed.
#[cold]
#[track_caller]
pub(crate) fn ruled<T: Element>(data: Vec<T>, rule: impl Rule + 'static) -> Buffer<T> {
    node(data, NodeStep::Rule(Box::new(rule)))
}

#[track_caller]
pub(crate) fn node<T: Element>(data: Vec<T>, step: NodeStep) -> Buffer<T> {
    let node = new_node(DType::of::<T>(), data.len(), step);
    Buffer::traced(data, node)
}

#[track_caller]
fn new_node(dtype: Option<DType>, len: usize, step: NodeStep) -> Arc<Node> {
    Node::new(dtype.expect("only floats are recorded"), len, step, Some(Location::caller()))
}

/// The traced values that were written to places of a result. Untraced values have no gradient and are not listed.
pub(crate) type PlacedParts = Vec<Part>;

/// The part of a result that a field is: the element at a position goes `offset` elements behind the first one, and the position's strides
/// farther.
#[inline]
pub(crate) fn part_at(traced: Traced, offset: usize, strides: &[isize]) -> Option<Part> {
    let field = *traced?;
    Some(Part { field, place: StridedPlace::strided(offset as isize, strides.iter().copied()) })
}

/// Elements to whose places parts were written.
#[inline]
#[track_caller]
pub(crate) fn placed<T: Element>(data: Vec<T>, parts: PlacedParts) -> Buffer<T> {
    told(&data);
    if parts.is_empty() { data.into() } else { node(data, NodeStep::Parts(parts)) }
}

/// Fails if an operand of the expression is traced: the result leaves the recorded program.
#[inline(always)]
#[track_caller]
pub(crate) fn refuse<T: Element, U: Dims, R: Rank, E: Expr + ?Sized>(
    expr: &E,
    shape: &Shape,
    operation: &'static str,
) -> Result<(), DimError> {
    if !is_active() {
        return Ok(());
    }
    match written::<T, U, R, E>(expr, shape)? {
        Some(field) => Err(lost(operation, names_of_variables(field.nodes()))),
        None => Ok(()),
    }
}

/// The elements of a buffer, which must not be traced: they leave the program that is recorded.
#[track_caller]
pub(crate) fn untraced<T: Element>(buffer: Buffer<T>, operation: &'static str) -> Result<Vec<T>, DimError> {
    match held_if_traced(&buffer) {
        Some(held) => Err(lost_from(operation, &held)),
        None => Ok(buffer.into_vec()),
    }
}

/// The same for elements that are borrowed.
#[track_caller]
pub(crate) fn untraced_slice<T>(elements: &[T], operation: &'static str) -> Result<(), DimError> {
    if elements.is_empty() { Ok(()) } else { untraced_memory(elements.as_ptr().cast(), operation) }
}

/// The same for memory that begins here.
#[track_caller]
pub(crate) fn untraced_memory(start: *const u8, operation: &'static str) -> Result<(), DimError> {
    if !is_active() {
        return Ok(());
    }
    match registry::find(start).filter(|held| held.is_traced()) {
        Some(held) => Err(lost_from(operation, &held)),
        None => Ok(()),
    }
}
