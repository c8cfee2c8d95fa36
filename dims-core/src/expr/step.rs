//! Running an expression as a step that gradients and recorded programs track.
//!
//! Memory is *traced* if a gradient or a recorded program tracks its elements. An expression runs
//! as a kernel that is compiled for its type. Before the kernel runs, an [`ExprStep`] is made. If
//! no memory is traced, this only tests a flag. Otherwise the expression
//! [writes itself](Expr::write) as a program. If one of its operands is traced, this program can
//! become the [step](kernels::trace) that computes the results.
//!
//! Without `std`, no memory is traced.

#[cfg(feature = "std")]
mod node;
mod refusal;
mod results;

pub(crate) use refusal::{
    check_buffer_unrecorded, check_elements_taken, check_indices_unrecorded, check_operand_taken,
    check_taken, check_unrecorded, check_unrecorded_as, is_recorded, reads_recorded, taken,
};
#[cfg(feature = "std")]
pub(crate) use refusal::{finished, unrecordable, unrecorded};
pub(crate) use results::{StepOfParts, StepOfPlaces, StepOfSum};

use crate::error::DimError;
#[cfg(feature = "std")]
use crate::error::no_derivative;
use crate::expr::Expr;
#[cfg(feature = "std")]
use crate::plan::explain;
use crate::plan::shape::Shape;
#[cfg(feature = "std")]
use crate::seal::PRIVATE;
use crate::storage::Evaluated;
use crate::types::rank::Rank;
#[cfg(feature = "std")]
use crate::types::rank::Rank0;
use crate::types::set::Dims;
#[cfg(feature = "std")]
use crate::types::set::Keys;
use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;
use kernels::loops::nest::Nest;
use kernels::loops::rows::Rows;
#[cfg(feature = "std")]
use kernels::loops::steps::is_listening;
use kernels::loops::steps::told;
use kernels::memory::buffer::Buffer;
#[cfg(feature = "std")]
use kernels::memory::destination::Destination;
use kernels::ops::code::{Code, LineWork, ReductionKind};
#[cfg(feature = "std")]
use kernels::program::{Register, code::DType};
use kernels::scalar::Element;
#[cfg(feature = "std")]
use kernels::trace::{Field, NodeAxes, NodeStep, Rule, StridedPlace, Table, record::Writer, rules};
#[cfg(feature = "std")]
use node::{last_of_each, lines_node, mapped, new_node, part_node, reduction_of};
#[cfg(feature = "std")]
use refusal::{WRITES, refused};

/// A part of a result: elements at some positions.
#[cfg(feature = "std")]
pub(crate) use kernels::trace::Part;
#[cfg(not(feature = "std"))]
pub(crate) type Part = core::convert::Infallible;

/// Whether any memory is traced.
#[cfg_attr(not(unoptimized), inline(always))]
pub(crate) fn is_heard() -> bool {
    #[cfg(feature = "std")]
    return kernels::trace::is_active();
    #[cfg(not(feature = "std"))]
    false
}

/// Starts a fast path that records no step. `None` if any memory is traced.
#[cfg_attr(not(unoptimized), inline(always))]
pub(crate) fn short_way<X>(start: impl FnOnce() -> Option<X>) -> Option<X> {
    if is_heard() { None } else { start() }
}

/// An operand with an element for each position of some loops.
pub(crate) trait LoopOperand {
    type Elem: Element;

    /// The elements in the order of a loop nest.
    fn collect(&self, nest: &Nest, len: usize) -> Result<Vec<Self::Elem>, DimError>;

    /// The operand as text, for plans.
    fn describe(&self) -> String;

    /// Writes a program that computes the elements. Its operands are in the order of
    /// this operand's rows of strides.
    #[cfg(feature = "std")]
    fn write<'w>(&'w self, writer: &mut Writer<'w>) -> Register;
}

/// The program that becomes the step of an expression, or `None` if no step is needed.
pub(crate) struct ExprStep(pub(super) Option<OwnProgram>);

#[cfg(feature = "std")]
pub(super) type OwnProgram = Box<WrittenExpr>;
#[cfg(not(feature = "std"))]
pub(super) type OwnProgram = core::convert::Infallible;

/// See [`ExprStep::scope`].
#[cfg(feature = "std")]
pub(crate) type StepScope = Option<kernels::memory::hollow::HollowScope>;
#[cfg(not(feature = "std"))]
pub(crate) type StepScope = Option<Box<core::convert::Infallible>>;

#[cfg(feature = "std")]
pub(crate) struct WrittenExpr {
    /// The program along the loops.
    pub(super) field: Field,
    /// The dims of the loops, if the loops have dims.
    keys: Option<&'static Keys>,
}

impl ExprStep {
    /// The step of an expression with elements of the type `T`. No step is needed if no operand is
    /// traced, or if only gradients track the operands and the elements are `bool` or integers of
    /// at most 64 bits. Otherwise, it is an error if programs cannot represent the expression.
    #[cfg_attr(not(unoptimized), inline(always))]
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

    /// The step of an operand that reads its elements with the strides `rows` along loops of these
    /// sizes.
    #[inline]
    #[track_caller]
    pub(crate) fn of_loops<T: Element>(
        operand: &impl LoopOperand,
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

    /// The step of contiguous elements along loops of these sizes.
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

    /// The step of an expression whose gradient is 0. It is needed only if the expression depends
    /// on inputs of a recorded function.
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

    /// Returns a scope if the step depends on an input without elements, otherwise `None`. While
    /// the scope exists, kernels compute nothing.
    #[cfg_attr(not(unoptimized), inline(always))]
    pub(crate) fn scope(&self) -> StepScope {
        #[cfg(feature = "std")]
        if let Some(own) = &self.0
            && own.field.is_hollow()
        {
            return Some(kernels::memory::hollow::HollowScope::new());
        }
        None
    }

    /// The result of an elementwise step, contiguous in an order of all loops along which it
    /// varies.
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

    /// Like [`map`](ExprStep::map), but constant for gradients.
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

    /// The result of a reduction, contiguous in the order of the kept loops.
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

    /// The result of work along the loops `lines`, contiguous in an order of all loops.
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

    /// The elements as a part of a result: each is stored at `offset` plus its position times
    /// `strides`.
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

    /// Elements that are written to computed positions: `strides` along the loops, plus `offsets`
    /// that vary along the loops `along`. Elements with the same position are added, unless
    /// `last_stays` is an order of the loops: then only the last of them in this order is kept.
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

    pub(crate) fn is_some(&self) -> bool {
        self.0.is_some()
    }

    /// Returns an error if there is a step, because the gradient or the recorded function would
    /// lose track of the results.
    #[cfg_attr(not(unoptimized), inline(always))]
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

    /// Like [`refuse`](ExprStep::refuse), for an operation that writes to existing elements.
    #[cfg_attr(not(unoptimized), inline(always))]
    #[track_caller]
    pub(crate) fn refuse_writing(self, operation: &'static str) -> Result<(), DimError> {
        match self.0 {
            #[cfg(feature = "std")]
            Some(own) if own.field.is_recorded() => Err(unrecordable(operation, WRITES)),
            _ => self.refuse(operation),
        }
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
    Ok(ExprStep(WrittenExpr::boxed(field, U::KEYS)))
}

/// The field that `write` writes. `None` if no operand is traced, or if only gradients track the
/// operands and the elements are `bool` or integers of at most 64 bits. `name` is the name of the
/// elements' type. (This function has no type parameters, so that it is compiled only once.)
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
    // (The writer notes which variables are read, even if their gradient is 0.)
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

#[cfg(feature = "std")]
impl WrittenExpr {
    fn boxed(field: Option<Field>, keys: &'static Keys) -> Option<Box<Self>> {
        field.map(|field| Box::new(WrittenExpr::of_dims(field, keys)))
    }

    /// A field whose loops are dims followed by positional axes.
    fn of_dims(mut field: Field, keys: &'static Keys) -> Self {
        if is_listening() {
            field.names = Some((0..field.sizes.len()).map(|axis| explain::name(keys, axis)).collect());
        }
        WrittenExpr { field, keys: Some(keys) }
    }

    /// The axes of results that are contiguous in an order of loops, if the loops have dims.
    fn axes(&self, order: &[usize]) -> Option<NodeAxes> {
        let keys = self.keys?;
        let axis = |&axis: &usize| explain::node_axis(keys.as_slice(), axis, self.field.sizes[axis]);
        Some(order.iter().map(axis).collect())
    }
}

/// The field of an expression, traced or not, over the loops of a shape. An expression that
/// programs cannot represent is computed along the loops `axes`, the only ones along which it
/// varies. For such an expression, it is an error if a gradient would be lost or if the expression
/// is recorded.
#[cfg(feature = "std")]
#[track_caller]
pub(crate) fn field<T: Element, U: Dims, E: Expr<Elem = T> + ?Sized>(
    expr: &E,
    shape: &Shape,
    axes: &[usize],
) -> Result<Field, DimError> {
    let mut rows = Rows::new(shape.sizes().len());
    expr.rows::<U, Rank0>(shape, &mut rows);
    // (Programs can represent constants, and elements that are in memory, so no kernel is
    // instantiated for either.)
    let known = const { E::FACTS.factors == 0 || E::FACTS.memory.is_some() };
    if let Some(field) =
        field_of(DType::of::<T>(), (shape.sizes(), axes), &rows, known, &mut |writer| expr.write(writer))?
    {
        return Ok(field);
    }
    if const { E::FACTS.factors == 0 || E::FACTS.memory.is_some() } {
        unreachable!("programs can represent this expression");
    }
    let sizes = shape.sizes();
    let len = shape.volume(axes, size_of::<T>())?;
    let data = expr.collect(&Nest::map(sizes, axes, &rows), Destination::New(len), PRIVATE)?;
    Ok(Field::held(sizes, &Buffer::from(data).held(), StridedPlace::contiguous(sizes, axes)))
}

/// The part of [`field`] that is compiled once. `None` if programs cannot represent the expression
/// but computing it loses no gradient.
#[cfg(feature = "std")]
#[track_caller]
fn field_of<'w>(
    dtype: Option<DType>,
    (sizes, axes): (&[usize], &[usize]),
    rows: &Rows,
    known: bool,
    write: &mut dyn FnMut(&mut Writer<'w>) -> Register,
) -> Result<Option<Field>, DimError> {
    // If a loop is empty, a writer copies neither borrowed elements nor indices. But the
    // expression may have elements even if a loop along which it does not vary is empty.
    let own = |(axis, &size): (usize, &usize)| if size == 0 && !axes.contains(&axis) { 1 } else { size };
    let own: Vec<usize> = sizes.iter().enumerate().map(own).collect();
    let along_all = |mut field: Field| {
        field.sizes.copy_from_slice(sizes);
        Some(field)
    };
    let mut writer = Writer::new();
    let mut value = write(&mut writer);
    if writer.is_recorded() {
        writer = Writer::repeatable();
        value = write(&mut writer);
        return finished(writer.finish_any(value, &own, rows)).map(along_all);
    }
    if let Some(operation) = writer.opaque_operation() {
        let is_lost = known || writer.is_traced() && dtype.is_some_and(DType::is_float);
        let names = || writer.names_of_variables();
        return if is_lost { Err(no_derivative(operation, &names())) } else { Ok(None) };
    }
    finished(writer.finish_any(value, &own, rows)).map(along_all)
}

/// Computes `code(tensor, value)` as a step of the recorded function. The elements are contiguous
/// in `order`.
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
        let mut data =
            Buffer::of_held(&own.field.computed(order, dtype)?).expect("the elements have this type");
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

/// Elements computed by a step with a [`Rule`].
#[cfg(feature = "std")]
#[cold]
#[track_caller]
pub(crate) fn ruled<T: Element>(data: Vec<T>, rule: impl Rule + 'static) -> Buffer<T> {
    told(&data);
    let dtype = DType::of::<T>().expect("only types that programs know are recorded");
    let node = new_node(dtype, data.len(), NodeStep::Rule(Box::new(rule)), None);
    Buffer::traced(data, node)
}
