//! What an expression is where it runs: a step, for those who listen.
//!
//! ```text
//! bind  ->  expression  ->  ExprStep  ->  kernel of the expression's own type  ->  results, which the step goes with
//! ```
//!
//! An expression runs by a kernel that is compiled for its type. Before that it becomes an [`ExprStep`], which tests one flag while nobody listens. Else the expression
//! [writes itself](Expr::write) as a program; if an operand is known to those who listen, the results are a [step](kernels::trace) of theirs.
//!
//! Without `std` nobody listens, and the methods do nothing.

use crate::error::DimError;
#[cfg(feature = "std")]
use crate::error::{OriginSuffix, list_names, no_derivative};
use crate::expr::Expr;
use crate::expr::index::IndexExprs;
#[cfg(feature = "std")]
use crate::plan::explain;
use crate::plan::shape::Shape;
use crate::rank::Rank;
#[cfg(feature = "std")]
use crate::rank::Rank0;
use crate::set::Dims;
#[cfg(feature = "std")]
use crate::set::Keys;
use crate::storage::Evaluated;
use alloc::vec::Vec;
#[cfg(feature = "std")]
use alloc::{boxed::Box, collections::BTreeMap, string::String, sync::Arc};
#[cfg(feature = "std")]
use core::panic::Location;
#[cfg(feature = "std")]
use kernels::loops::nest::Nest;
#[cfg(feature = "std")]
use kernels::loops::nest::Odometer;
use kernels::loops::rows::Rows;
#[cfg(feature = "std")]
use kernels::loops::steps::is_listening;
use kernels::loops::steps::told;
use kernels::memory::buffer::Buffer;
#[cfg(feature = "std")]
use kernels::memory::destination::Destination;
use kernels::memory::elements::Elements;
use kernels::ops::code::{Code, LineWork, ReductionKind};
#[cfg(feature = "std")]
use kernels::program::{Register, code::DType};
use kernels::scalar::Element;
#[cfg(feature = "std")]
use kernels::trace::{
    Field, Node, NodeAxes, NodeAxis, NodeStep, Rule, StridedPlace, Table, names_of_variables,
    record::{Unrecorded, Writer},
    registry, rules,
};
#[cfg(feature = "std")]
use smallvec::SmallVec;

/// A part of a result: elements at some of its places.
#[cfg(feature = "std")]
pub(crate) use kernels::trace::Part;
#[cfg(not(feature = "std"))]
pub(crate) type Part = core::convert::Infallible;

/// Whether anybody listens to what runs.
#[inline(always)]
pub(crate) fn is_heard() -> bool {
    #[cfg(feature = "std")]
    return kernels::trace::is_active();
    #[cfg(not(feature = "std"))]
    false
}

/// What a short way starts from, which runs without being a step: nothing if anybody listens.
#[inline(always)]
pub(crate) fn short_way<X>(start: impl FnOnce() -> Option<X>) -> Option<X> {
    if is_heard() { None } else { start() }
}

/// What has an element for each position of some loops, and can write itself as a program.
pub(crate) trait WritesItself {
    /// The program, for operands in the order of their rows.
    #[cfg(feature = "std")]
    fn write<'w>(&'w self, writer: &mut Writer<'w>) -> Register;
}

/// The program of an expression along its loops, if anybody listens who knows one of its operands.
pub(crate) struct ExprStep(pub(super) Option<OwnProgram>);

#[cfg(feature = "std")]
pub(super) type OwnProgram = Box<WrittenExpr>;
#[cfg(not(feature = "std"))]
pub(super) type OwnProgram = core::convert::Infallible;

/// An expression that has written itself.
#[cfg(feature = "std")]
pub(crate) struct WrittenExpr {
    /// The program along the loops.
    pub(super) field: Field,
    /// The dims of the loops, if these are dims.
    keys: Option<&'static Keys>,
}

impl ExprStep {
    /// The step of an expression that yields elements of the type `T`. If they are no floats, which have no derivatives, there is none.
    #[inline(always)]
    #[track_caller]
    pub(crate) fn of<T: Element, U: Dims, R: Rank, E: Expr + ?Sized>(
        expr: &E,
        shape: &Shape,
    ) -> Result<Self, DimError> {
        #[cfg(feature = "std")]
        if is_heard() {
            return written::<T, U, R, E>(expr, shape);
        }
        let _ = (expr, shape);
        Ok(ExprStep(None))
    }

    /// The step of what has these strides along loops of these sizes, and yields elements of the type `T`.
    #[inline]
    #[track_caller]
    pub(crate) fn of_loops<T: Element>(
        operand: &impl WritesItself,
        sizes: &[usize],
        rows: &Rows,
    ) -> Result<Self, DimError> {
        #[cfg(feature = "std")]
        if is_heard() {
            let field =
                written_as(DType::of::<T>(), core::any::type_name::<T>(), sizes, rows, &mut |writer| {
                    operand.write(writer)
                })?;
            return Ok(ExprStep(field.map(|field| Box::new(WrittenExpr { field, keys: None }))));
        }
        let _ = (operand, sizes, rows);
        Ok(ExprStep(None))
    }

    /// The step of elements that lie contiguously along loops of these sizes.
    #[inline]
    pub(crate) fn of_memory<T: Element>(buffer: &Buffer<T>, sizes: &[usize]) -> Self {
        #[cfg(feature = "std")]
        if is_heard() && buffer.is_traced() {
            let order: Vec<usize> = (0..sizes.len()).collect();
            let field = Field::held(sizes, &buffer.held(), StridedPlace::contiguous(sizes, &order));
            return ExprStep(Some(Box::new(WrittenExpr { field, keys: None })));
        }
        let _ = (buffer, sizes);
        ExprStep(None)
    }

    /// The step of an expression through which no gradient flows, if a function is recorded that it depends on. (The gradient by its operands is 0.)
    #[inline]
    #[track_caller]
    pub(crate) fn of_recorded<T: Element, U: Dims, R: Rank, E: Expr + ?Sized>(
        expr: &E,
        shape: &Shape,
    ) -> Result<Self, DimError> {
        #[cfg(feature = "std")]
        if is_heard() {
            let mut writer = Writer::new();
            expr.write(&mut writer);
            if writer.is_recorded() {
                return written::<T, U, R, E>(expr, shape);
            }
        }
        let _ = (expr, shape);
        Ok(ExprStep(None))
    }

    /// The elements, contiguous in an order of all loops along which they vary.
    #[inline]
    #[track_caller]
    pub(crate) fn map<T: Element>(self, data: Vec<T>, order: &[usize]) -> Buffer<T> {
        told(&data);
        match self.0 {
            None => {
                let _ = order;
                data.into()
            }
            #[cfg(feature = "std")]
            Some(own) => mapped(data, own, order),
        }
    }

    /// As [`map`](ExprStep::map), as constants for gradients.
    #[inline]
    #[track_caller]
    pub(crate) fn detach<T: Element>(self, data: Vec<T>, order: &[usize]) -> Buffer<T> {
        told(&data);
        match self.0 {
            #[cfg(feature = "std")]
            Some(own) if own.field.is_recorded() => {
                let dtype = DType::of::<T>().expect("only types that programs know are recorded");
                let axes = own.axes(order);
                let node = new_node(dtype, data.len(), rules::detached(own.field, order, dtype), axes);
                Buffer::traced(data, node)
            }
            _ => {
                let _ = order;
                data.into()
            }
        }
    }

    /// What a reduction made of the elements, contiguous in the order of the loops that are kept.
    #[inline]
    #[track_caller]
    pub(crate) fn reduce<T: Element>(
        self,
        data: Vec<T>,
        kept: &[usize],
        reduced: &[usize],
        reduction: ReductionKind,
        operation: &'static str,
    ) -> Result<Buffer<T>, DimError> {
        told(&data);
        match self.0 {
            None => {
                let _ = (kept, reduced, reduction, operation);
                Ok(data.into())
            }
            #[cfg(feature = "std")]
            Some(own) => reduction_of(data, own, (kept, reduced), reduction, operation),
        }
    }

    /// What work along the loops `lines` made of the elements, contiguous in an order of all loops.
    #[inline]
    #[track_caller]
    pub(crate) fn along<T: Element>(
        self,
        data: Vec<T>,
        order: &[usize],
        lines: &[usize],
        work: LineWork,
        operation: &'static str,
    ) -> Result<Buffer<T>, DimError> {
        told(&data);
        match self.0 {
            None => {
                let _ = (order, lines, work, operation);
                Ok(data.into())
            }
            #[cfg(feature = "std")]
            Some(own) => {
                let node = lines_node(DType::of::<T>(), data.len(), own, (order, lines), work, operation)?;
                Ok(Buffer::traced(data, node))
            }
        }
    }

    /// The elements as a part of a result: the one at a position goes `offset` elements behind the first one, and the position's strides farther.
    #[inline]
    pub(crate) fn part_at(self, offset: usize, strides: &[isize]) -> Option<Part> {
        match self.0 {
            None => {
                let _ = (offset, strides);
                None
            }
            #[cfg(feature = "std")]
            Some(own) => {
                let place = StridedPlace::strided(offset as isize, strides.iter().copied());
                Some(Part { field: own.field, place })
            }
        }
    }

    /// Elements that are written to places which are looked up: the strides along the loops, and offsets that vary along some of them. Where several have one
    /// place they are added, or the last one stays, the loops one inside of the other in an order.
    pub(crate) fn scattered(
        self,
        strides: &[isize],
        (offsets, along): (Vec<isize>, &[usize]),
        last_stays: Option<&[usize]>,
    ) -> StepOfSum {
        match self.0 {
            None => {
                let _ = (strides, offsets, along, last_stays);
                StepOfSum::default()
            }
            #[cfg(feature = "std")]
            Some(own) => {
                let field = match last_stays {
                    None => own.field,
                    Some(order) => last_of_each(&own.field, strides, (&offsets, along), order),
                };
                let table = Some(Box::new(Table::new(offsets, &field.sizes, along)));
                let place = StridedPlace { table, ..StridedPlace::strided(0, strides.iter().copied()) };
                StepOfSum(Some(Part { field, place }))
            }
        }
    }

    /// Whether there is a step.
    pub(crate) fn is_some(&self) -> bool {
        self.0.is_some()
    }

    /// An error if there is a step: the results leave what is recorded.
    #[inline(always)]
    #[track_caller]
    pub(crate) fn refuse(self, operation: &'static str) -> Result<(), DimError> {
        match self.0 {
            None => {
                let _ = operation;
                Ok(())
            }
            #[cfg(feature = "std")]
            Some(own) => Err(refused(&own, operation)),
        }
    }

    /// The same where the results are written to elements that are there.
    #[inline(always)]
    #[track_caller]
    pub(crate) fn refuse_writing(self, operation: &'static str) -> Result<(), DimError> {
        match self.0 {
            #[cfg(feature = "std")]
            Some(own) if own.field.is_recorded() => Err(unrecordable(operation, WRITES)),
            _ => self.refuse(operation),
        }
    }
}

/// Why programs do not assign to parts of tensors.
#[cfg(feature = "std")]
const WRITES: &str = "it writes to a part of a tensor; put the tensor together with `concat` or `select`";

/// Elements that are added up at places of a result, if anybody listens who knows one of their operands.
#[derive(Default)]
pub(crate) struct StepOfSum(Option<Part>);

impl StepOfSum {
    /// The result.
    #[track_caller]
    pub(crate) fn finish<T: Element>(self, data: Vec<T>) -> Buffer<T> {
        told(&data);
        #[cfg(feature = "std")]
        if let Some(part) = self.0 {
            let dtype = DType::of::<T>().expect("only types that programs know are recorded");
            let node = new_node(dtype, data.len(), NodeStep::Parts(vec![part]), None);
            return Buffer::traced(data, node);
        }
        data.into()
    }
}

/// The parts of a result that lie at places of their own, as far as anybody listens who knows their operands.
#[derive(Default)]
pub(crate) struct StepOfPlaces(Vec<Part>);

impl StepOfPlaces {
    /// One more part.
    pub(crate) fn add(&mut self, part: Option<Part>) {
        self.0.extend(part);
    }

    /// All elements of a buffer, which begin at `start`.
    pub(crate) fn add_whole<T: Element>(&mut self, data: &Buffer<T>, start: usize) {
        self.add(ExprStep::of_memory(data, &[data.len()]).part_at(start, &[1]));
    }

    /// The result, which has other elements where no part is.
    #[track_caller]
    pub(crate) fn finish<T: Element>(self, data: Vec<T>) -> Buffer<T> {
        told(&data);
        #[cfg(feature = "std")]
        if !self.0.is_empty() {
            let dtype = DType::of::<T>().expect("only types that programs know are recorded");
            let step = rules::placed(self.0, &data);
            return Buffer::traced(data, new_node(dtype, step.1, step.0, None));
        }
        data.into()
    }
}

/// The parts that a result is put together of, if anybody listens who knows one of the operands.
pub(crate) struct StepOfParts(Option<Vec<Part>>);

impl StepOfParts {
    /// No parts yet of what reads this operand.
    pub(crate) fn of(operand: &impl WritesItself) -> Self {
        #[cfg(feature = "std")]
        if is_heard() {
            let mut writer = Writer::new();
            operand.write(&mut writer);
            return StepOfParts(writer.is_traced().then(Vec::new));
        }
        let _ = operand;
        StepOfParts(None)
    }

    /// Adds elements with these strides along loops of these sizes, which lie in the result at `start` with the strides `to`.
    #[track_caller]
    pub(crate) fn add<T: Element>(
        &mut self,
        sizes: &[usize],
        (elements, from): (Elements<'_, T>, &[isize]),
        (start, to): (isize, &[isize]),
    ) -> Result<(), DimError> {
        let Some(parts) = &mut self.0 else { return Ok(()) };
        #[cfg(feature = "std")]
        if !sizes.contains(&0) {
            let mut rows = Rows::new(sizes.len());
            rows.push().copy_from_slice(from);
            let mut writer = Writer::new();
            let value = writer.elements(elements, None);
            // (The sum of all parts is the result: those that are constant belong to it.)
            let field = finished(writer.finish_any(value, sizes, &rows))?;
            let strides = sizes.iter().zip(to).map(|(&size, &stride)| if size == 1 { 0 } else { stride });
            parts.push(Part { field, place: StridedPlace::strided(start, strides) });
        }
        let _ = (parts, sizes, elements, from, start, to);
        Ok(())
    }

    /// The result.
    #[track_caller]
    pub(crate) fn finish<T: Element>(self, data: Vec<T>) -> Buffer<T> {
        told(&data);
        #[cfg(feature = "std")]
        if let Some(parts) = self.0
            && let Some(dtype) = DType::of::<T>()
            && (dtype.is_float() || parts.iter().any(|part| part.field.is_recorded()))
        {
            let node = new_node(dtype, data.len(), NodeStep::Parts(parts), None);
            return Buffer::traced(data, node);
        }
        data.into()
    }
}

/// The elements of a buffer, which must not be those of a step: they leave what is recorded.
#[inline]
#[track_caller]
pub(crate) fn taken<T: Element>(buffer: Buffer<T>, operation: &'static str) -> Result<Vec<T>, DimError> {
    #[cfg(feature = "std")]
    if is_heard() && buffer.is_traced() {
        check_buffer_unrecorded(&buffer, operation)?;
        return Err(no_derivative(operation, &names_of_variables(buffer.node())));
    }
    let _ = operation;
    Ok(buffer.into_vec())
}

/// An error if these elements are those of a step: they leave what is recorded.
#[inline(always)]
#[track_caller]
pub(crate) fn check_taken<T>(elements: &[T], operation: &'static str) -> Result<(), DimError> {
    #[cfg(feature = "std")]
    if is_heard() && !elements.is_empty() {
        return check_memory(elements.as_ptr().cast(), operation);
    }
    let _ = (elements, operation);
    Ok(())
}

/// The same for elements along axes.
#[inline]
#[track_caller]
pub(crate) fn check_elements_taken<T>(
    elements: Elements<'_, T>,
    operation: &'static str,
) -> Result<(), DimError> {
    #[cfg(feature = "std")]
    if is_heard() {
        return check_memory(elements.as_ptr().cast(), operation);
    }
    let _ = (elements, operation);
    Ok(())
}

/// The same for whatever an operand reads.
#[track_caller]
pub(crate) fn check_operand_taken(
    operand: &impl WritesItself,
    operation: &'static str,
) -> Result<(), DimError> {
    #[cfg(feature = "std")]
    if is_heard() {
        let mut writer = Writer::new();
        operand.write(&mut writer);
        if writer.is_recorded() {
            return Err(unrecorded(operation));
        }
        if writer.is_traced() {
            return Err(no_derivative(operation, &writer.names_of_variables()));
        }
    }
    let _ = (operand, operation);
    Ok(())
}

#[cfg(feature = "std")]
#[cold]
#[inline(never)]
#[track_caller]
fn check_memory(start: *const u8, operation: &'static str) -> Result<(), DimError> {
    match registry::find(start).filter(|held| held.is_traced()) {
        Some(held) if held.node().is_some_and(|node| node.is_recorded()) => Err(unrecorded(operation)),
        Some(held) => Err(no_derivative(operation, &names_of_variables(held.node()))),
        None => Ok(()),
    }
}

#[cfg(feature = "std")]
#[cold]
#[inline(never)]
#[track_caller]
fn written<T: Element, U: Dims, R: Rank, E: Expr + ?Sized>(
    expr: &E,
    shape: &Shape,
) -> Result<ExprStep, DimError> {
    let mut rows = Rows::new(shape.sizes().len());
    expr.rows::<U, R>(shape, &mut rows);
    let (dtype, name) = (DType::of::<T>(), core::any::type_name::<T>());
    let field = written_as(dtype, name, shape.sizes(), &rows, &mut |writer| expr.write(writer))?;
    Ok(ExprStep(field.map(|field| Box::new(WrittenExpr::of_dims(field, U::KEYS)))))
}

/// The field that `write` writes, if an operand is traced and the elements are floats; `name` is that of their type. (Apart, as it is compiled with this crate.)
#[cfg(feature = "std")]
#[track_caller]
fn written_as<'w>(
    dtype: Option<DType>,
    name: &'static str,
    sizes: &[usize],
    rows: &Rows,
    write: &mut dyn FnMut(&mut Writer<'w>) -> Register,
) -> Result<Option<Field>, DimError> {
    let mut writer = Writer::new();
    // (The writer notes which variables are read: the gradient by them is 0.)
    let mut value = write(&mut writer);
    if writer.is_recorded() {
        writer = Writer::repeatable();
        value = write(&mut writer);
    } else if dtype.is_some_and(|dtype| !dtype.is_float()) {
        return Ok(None);
    }
    if dtype.is_none() {
        value = writer.opaque(name);
    }
    finished(writer.finish(value, sizes, rows))
}

/// What a writer made; what it could not write is an error.
#[cfg(feature = "std")]
#[track_caller]
pub(crate) fn finished<F>(field: Result<F, Unrecorded>) -> Result<F, DimError> {
    match field {
        Ok(field) => Ok(field),
        Err(Unrecorded::Memory(error)) => Err(error.into()),
        Err(Unrecorded::Opaque(operation, names)) => Err(match operation {
            "map" => {
                let remedy = "give it a derivative, as a `ScalarOp` for `x.apply(op)`";
                underivable(operation, remedy, &names)
            }
            "zip_map" => {
                let remedy = "give it a derivative, as a `ScalarOp` for `x.apply_with(y, op)`";
                underivable(operation, remedy, &names)
            }
            _ => no_derivative(operation, &names),
        }),
        Err(Unrecorded::Own(operation, names)) => {
            let remedy = "give it a derivative, as `fn derivative` of its `ScalarOp`";
            Err(underivable(operation, remedy, &names))
        }
        Err(Unrecorded::Unrepeatable(operation, is_own)) => Err(unrecordable(
            operation,
            match operation {
                _ if is_own => "give it a derivative, as `fn derivative` of its `ScalarOp`",
                "map" => {
                    "a program cannot call a closure; write a `ScalarOp` with a derivative, for `x.apply(op)`"
                }
                "zip_map" => {
                    "a program cannot call a closure; write a `ScalarOp` with a derivative, for `x.apply_with(y, op)`"
                }
                _ => "programs do not know it; call it outside of the recorded function",
            },
        )),
    }
}

/// The error of a user's function without a derivative, which depends on the variables of these names.
#[cfg(feature = "std")]
#[cold]
#[track_caller]
pub(crate) fn underivable(operation: &'static str, remedy: &'static str, names: &[String]) -> DimError {
    let (origin, parameters) = (Some(Location::caller()), list_names(names));
    DimError::NoOwnDerivative { operation, remedy, origin, parameters }
}

#[cfg(feature = "std")]
#[cold]
#[track_caller]
fn refused(own: &WrittenExpr, operation: &'static str) -> DimError {
    if own.field.is_recorded() {
        return unrecorded(operation);
    }
    no_derivative(operation, &names_of_variables(own.field.nodes()))
}

#[cfg(feature = "std")]
impl WrittenExpr {
    /// A field whose loops are those of dims, and of positional axes behind them.
    fn of_dims(mut field: Field, keys: &'static Keys) -> Self {
        if is_listening() {
            field.names = Some((0..field.sizes.len()).map(|axis| explain::name(keys, axis)).collect());
        }
        WrittenExpr { field, keys: Some(keys) }
    }

    /// The axes of results that lie contiguously in an order of loops, if the loops are dims.
    fn axes(&self, order: &[usize]) -> Option<NodeAxes> {
        let keys = self.keys?;
        let axis = |&axis: &usize| NodeAxis { name: explain::name(keys, axis), size: self.field.sizes[axis] };
        Some(order.iter().map(axis).collect())
    }
}

#[cfg(feature = "std")]
#[cold]
#[track_caller]
fn mapped<T: Element>(data: Vec<T>, own: OwnProgram, order: &[usize]) -> Buffer<T> {
    let node = part_node(DType::of::<T>(), data.len(), own, order);
    Buffer::traced(data, node)
}

/// A step whose only part is a field, with elements that are contiguous in an order of loops.
#[cfg(feature = "std")]
#[track_caller]
#[expect(clippy::boxed_local, reason = "callers hand a pointer on")]
fn part_node(dtype: Option<DType>, len: usize, own: OwnProgram, order: &[usize]) -> Arc<Node> {
    let place = StridedPlace::contiguous(&own.field.sizes, order);
    let axes = own.axes(order);
    let dtype = dtype.expect("only floats are recorded");
    new_node(dtype, len, NodeStep::Parts(vec![Part { field: own.field, place }]), axes)
}

#[cfg(feature = "std")]
#[cold]
#[track_caller]
fn reduction_of<T: Element>(
    data: Vec<T>,
    own: OwnProgram,
    axes: (&[usize], &[usize]),
    reduction: ReductionKind,
    operation: &'static str,
) -> Result<Buffer<T>, DimError> {
    let node = reduction_node(DType::of::<T>(), data.len(), own, axes, reduction, operation)?;
    Ok(Buffer::traced(data, node))
}

#[cfg(feature = "std")]
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
    let dtype = dtype.expect("only floats are recorded");
    let (kept, reduced) = (kept.to_vec(), reduced.to_vec());
    let rule = rules::ReductionRule { field: own.field, kept, reduced, reduction, dtype };
    Ok(new_node(dtype, len, rule.into_step(), axes))
}

#[cfg(feature = "std")]
#[cold]
#[track_caller]
fn lines_node(
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
    let dtype = dtype.expect("only floats are recorded");
    let (order, lines) = (order.to_vec(), lines.to_vec());
    let rule = rules::LineRule { field: own.field, order, lines, work, dtype, is_masked: false };
    Ok(new_node(dtype, len, NodeStep::Rule(Box::new(rule)), axes))
}

#[cfg(feature = "std")]
#[track_caller]
fn new_node(dtype: DType, len: usize, step: NodeStep, axes: Option<NodeAxes>) -> Arc<Node> {
    let node = Node::new(dtype, len, step, Some(Location::caller()));
    if let Some(axes) = axes {
        node.lies_along(|| axes);
    }
    node
}

/// The field of an expression, which need not be traced, over the loops of a shape. What programs do not know is computed, along the loops `axes` as the expression
/// varies along no others; it is an error if it is traced.
#[cfg(feature = "std")]
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
#[cfg(feature = "std")]
#[track_caller]
fn field_of<'w>(
    dtype: Option<DType>,
    sizes: &[usize],
    rows: &Rows,
    known: bool,
    write: &mut dyn FnMut(&mut Writer<'w>) -> Register,
) -> Result<Option<Field>, DimError> {
    let mut writer = Writer::new();
    let mut value = write(&mut writer);
    if writer.is_recorded() {
        writer = Writer::repeatable();
        value = write(&mut writer);
        return finished(writer.finish_any(value, sizes, rows)).map(Some);
    }
    if let Some(operation) = writer.opaque_operation() {
        let is_lost = known || writer.is_traced() && dtype.is_some_and(DType::is_float);
        let names = || writer.names_of_variables();
        return if is_lost { Err(no_derivative(operation, &names())) } else { Ok(None) };
    }
    finished(writer.finish_any(value, sizes, rows)).map(Some)
}

/// The elements of `code(tensor, value)` along loops of some sizes, contiguous in an order, as a step of the function that is recorded.
#[track_caller]
pub(crate) fn renewed<T: Element, S: Dims, R: Rank, E: Expr + ?Sized>(
    tensor: &Evaluated<T, S, R>,
    value: &E,
    (code, name): (Code, &'static str),
    (sizes, rows, order): (&[usize], &Rows, &[usize]),
) -> Result<Buffer<T>, DimError> {
    #[cfg(feature = "std")]
    {
        let (dtype, of) = (DType::of::<T>(), core::any::type_name::<T>());
        let field = written_as(dtype, of, sizes, rows, &mut |writer| {
            let own = writer.elements(tensor.elements(), Some(tensor.buffer()));
            let value = value.write(writer);
            writer.operation(code, name, &[own, value])
        })?;
        let own = WrittenExpr::of_dims(field.expect("an operand is recorded"), S::KEYS);
        let dtype = dtype.expect("only types that programs know are recorded");
        let mut data = Buffer::of_held(&own.field.computed(order, dtype)?).expect("it has this type");
        told(&data);
        let len = data.len();
        data.set_mark(Box::new(part_node(Some(dtype), len, Box::new(own), order)));
        Ok(data)
    }
    #[cfg(not(feature = "std"))]
    {
        let _ = (tensor, value, code, name, sizes, rows, order);
        unreachable!("nothing is recorded without `std`")
    }
}

/// Elements that a step with a rule of its own computed.
#[cfg(feature = "std")]
#[cold]
#[track_caller]
pub(crate) fn ruled<T: Element>(data: Vec<T>, rule: impl Rule + 'static) -> Buffer<T> {
    told(&data);
    let dtype = DType::of::<T>().expect("only types that programs know are recorded");
    let node = new_node(dtype, data.len(), NodeStep::Rule(Box::new(rule)), None);
    Buffer::traced(data, node)
}

/// An error if an operand depends on inputs of a function that is recorded, to be run again: the operation reads its elements by itself.
#[track_caller]
pub(crate) fn check_unrecorded<E: Expr + ?Sized>(
    operand: &E,
    operation: &'static str,
) -> Result<(), DimError> {
    #[cfg(feature = "std")]
    if reads_recorded(operand) {
        return Err(unrecorded(operation));
    }
    let _ = (operand, operation);
    Ok(())
}

/// Whether an operand depends on inputs of a function that is recorded, to be run again.
pub(crate) fn reads_recorded<E: Expr + ?Sized>(operand: &E) -> bool {
    #[cfg(feature = "std")]
    if is_heard() {
        let mut writer = Writer::new();
        expr_written(operand, &mut writer);
        return writer.is_recorded();
    }
    let _ = operand;
    false
}

/// The same for elements in memory.
#[inline]
pub(crate) fn is_recorded<T>(buffer: &Buffer<T>) -> bool {
    #[cfg(feature = "std")]
    return buffer.node().is_some_and(|node| node.is_recorded());
    #[cfg(not(feature = "std"))]
    {
        let _ = buffer;
        false
    }
}

/// The same for computed indices of places that are written to.
#[track_caller]
pub(crate) fn check_indices_unrecorded(
    indices: &impl IndexExprs,
    operation: &'static str,
) -> Result<(), DimError> {
    #[cfg(feature = "std")]
    if is_heard() {
        let mut writer = Writer::new();
        let elements = writer.constant(0.0_f32);
        indices.write(&mut writer, elements);
        if writer.is_recorded() {
            return Err(unrecordable(operation, WRITES));
        }
    }
    let _ = (indices, operation);
    Ok(())
}

/// The same for elements in memory.
#[track_caller]
pub(crate) fn check_buffer_unrecorded<T: Element>(
    buffer: &Buffer<T>,
    operation: &'static str,
) -> Result<(), DimError> {
    #[cfg(feature = "std")]
    if is_recorded(buffer) {
        return Err(unrecorded(operation));
    }
    let _ = (buffer, operation);
    Ok(())
}

#[cfg(feature = "std")]
fn expr_written<'w, E: Expr + ?Sized>(operand: &'w E, writer: &mut Writer<'w>) {
    operand.write(writer);
}

/// The error of an operation that cannot be recorded.
#[cfg(feature = "std")]
#[cold]
#[track_caller]
pub(crate) fn unrecorded(operation: &'static str) -> DimError {
    unrecordable(
        operation,
        "it reads elements, and a program could not read them again; call it outside of the recorded function",
    )
}

/// The same, which says why, and what to do.
#[cfg(feature = "std")]
#[cold]
#[track_caller]
pub(crate) fn unrecordable(operation: &'static str, why: &'static str) -> DimError {
    // (A call inside this library or the standard library is no place in the program.)
    const OWN: &str = file!();
    let sources = &OWN[..OWN.len() - "expr/step.rs".len()];
    let is_own =
        |place: &&Location<'_>| !place.file().starts_with(sources) && !place.file().starts_with("/rustc/");
    let at = OriginSuffix(Some(Location::caller()).filter(is_own));
    DimError::Shape { what: format!("`{operation}` cannot be recorded{at}: {why}") }
}

/// The field with zeros but for the last element of each place.
#[cfg(feature = "std")]
fn last_of_each(
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
        places.push(moved(strides) + offsets[moved(&in_table) as usize]);
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
