//! Recording: turns an expression into a program over its operands.

use crate::error::Error;
use crate::load::gather::{IndexedAxis, computed_axis};
use crate::load::strided::Strided;
use crate::loops::nest::{Nest, Odometer};
use crate::loops::rows::Rows;
use crate::map::elementwise::collect;
use crate::memory::allocate::{defaults, reserve};
use crate::memory::buffer::Buffer;
use crate::memory::destination::Destination;
use crate::memory::elements::{Elements, ElementsMut, Reached};
use crate::memory::hollow;
use crate::ops::Own;
use crate::ops::code::{BinaryOpcode, Code, DType, Number, RegisterKind, UnaryOpcode, match_dtype};
use crate::program::Register;
use crate::program::builder::Builder;
use crate::program::interpreter::OperandSource;
use crate::program::lowered::LoweredProgram;
use crate::scalar::Element;
use crate::trace::compute::mapped;
use crate::trace::link::Linked;
use crate::trace::ranges::{are_noted, note_range};
use crate::trace::{
    Field, FieldOperand, FieldSource, Held, PerLoop, StridedPlace, Table, TableIndex, TableSource,
    names_of_variables, registry,
};
use alloc::boxed::Box;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::any::{Any, TypeId};
use core::marker::PhantomData;
use smallvec::SmallVec;

/// The reason why an expression cannot be recorded.
#[derive(Debug)]
pub enum Unrecorded {
    /// An operation or an element type that programs do not know, and the names of the variables
    /// that the expression depends on.
    Opaque(&'static str, Vec<String>),
    /// A user's operation without a derivative, and the names of the variables that the expression
    /// depends on.
    Own(&'static str, Vec<String>),
    /// An operation or an element type that programs do not know, in a recorded function. The flag
    /// says whether it is a user's operation.
    Unrepeatable(&'static str, bool),
    /// There is not enough memory, or a constant index is out of range.
    Failed(Error),
}

impl From<Error> for Unrecorded {
    fn from(error: Error) -> Self {
        Unrecorded::Failed(error)
    }
}

type FinishWriter = fn(Writer<'_>, Register, &[usize], &Rows) -> Result<Field, Unrecorded>;

/// The function that finishes a [`Writer`].
static FINISH: Linked<FinishWriter> = Linked::new();

/// Links the code that writers need.
pub(super) fn link() {
    FINISH.set(|writer, value, sizes, rows| writer.finish_linked(value, sizes, rows));
}

/// Records the program of an expression, and the operands in the order of their rows of strides.
pub struct Writer<'w> {
    build: Builder,
    leaves: Vec<RecordedLeaf<'w>>,
    rows: usize,
    opaque: Option<&'static str>,
    traced: bool,
    /// Whether an operand depends on inputs of a function that is being recorded to run again.
    recorded: bool,
    /// Whether `opaque` is a user's operation.
    own: bool,
    /// Whether the program replaces the kernel of the expression, instead of becoming a step.
    exact: bool,
    /// Whether the expression may leave elements of some operands unused.
    is_partial: bool,
}

struct RecordedLeaf<'w> {
    /// The index of the leaf's row of strides.
    row: usize,
    memory: LeafMemory<'w>,
    /// Computed indices: for each, its value, and the axis that it selects from.
    indices: SmallVec<[(Register, IndexedAxis); 1]>,
}

/// An element type.
#[derive(Clone, Copy)]
struct TypeName {
    id: TypeId,
    name: &'static str,
}

impl TypeName {
    fn of<T: 'static>() -> Self {
        TypeName { id: TypeId::of::<T>(), name: core::any::type_name::<T>() }
    }
}

enum LeafMemory<'w> {
    /// Shared memory, and the index in it from which the offsets of the operand are counted.
    Shared(Arc<dyn Held>, isize),
    /// Borrowed memory: a program that replaces a kernel reads it in place, and a field gets a
    /// copy.
    Borrowed(Borrowed<'w>),
    Position,
}

/// Borrowed elements of any type.
#[derive(Clone, Copy)]
struct Borrowed<'w> {
    start: *const u8,
    dtype: DType,
    reached: Reached,
    memory: PhantomData<&'w [u8]>,
}

impl<'w> Borrowed<'w> {
    /// The elements as elements of type `T`.
    ///
    /// # Panics
    ///
    /// If the elements have another type.
    fn elements<T: Element>(self) -> Elements<'w, T> {
        assert_eq!(DType::of::<T>(), Some(self.dtype), "elements are of their type");
        // SAFETY: the writer took the start, the type and the reach from the same elements, which
        // are borrowed for `'w`.
        unsafe { Elements::reaching(self.start.cast(), self.reached) }
    }
}

/// The positions of a leaf's elements along loops.
struct LeafStrides<'a> {
    sizes: &'a [usize],
    /// The loops along which the leaf varies.
    order: &'a [usize],
    offset: isize,
    strides: &'a [isize],
    table: Option<&'a [isize]>,
}

impl<'w> Default for Writer<'w> {
    fn default() -> Self {
        Writer {
            build: Builder::new(),
            leaves: Vec::new(),
            rows: 0,
            opaque: None,
            traced: false,
            recorded: false,
            own: false,
            exact: false,
            is_partial: false,
        }
    }
}

impl<'w> Writer<'w> {
    /// An empty program.
    pub fn new() -> Self {
        Writer::default()
    }

    /// An empty program to run again. It computes the same bits as the expression: `x + 0` is not
    /// simplified, because `-0 + 0` is 0.
    pub fn repeatable() -> Self {
        Writer { build: Builder::exact(), ..Writer::default() }
    }

    /// An empty program to replace a kernel: see [`lowered`](Writer::lowered).
    pub fn exact() -> Self {
        Writer { build: Builder::exact(), exact: true, ..Writer::default() }
    }

    fn push(&mut self, memory: LeafMemory<'w>) -> u32 {
        self.leaves.push(RecordedLeaf { row: self.rows, memory, indices: SmallVec::new() });
        self.rows += 1;
        (self.leaves.len() - 1) as u32
    }

    /// Elements in memory. `owner` is the buffer, if it is known.
    pub fn elements<T: Element>(&mut self, elements: Elements<'w, T>, owner: Option<&Buffer<T>>) -> Register {
        let held = if self.exact { None } else { owner.map(Buffer::held) };
        self.memory(elements.as_ptr().cast(), TypeName::of::<T>(), elements.reached(), held)
    }

    /// The part of [`elements`](Writer::elements) that does not depend on the type. This part and
    /// the others like it below are separate functions, so that they are compiled with this crate.
    fn memory(
        &mut self,
        start: *const u8,
        element: TypeName,
        reached: Reached,
        held: Option<Arc<dyn Held>>,
    ) -> Register {
        let Some(dtype) = DType::of_id(element.id) else {
            self.push(LeafMemory::Position);
            return self.opaque(element.name);
        };
        let held = if self.exact { None } else { held.or_else(|| registry::find(start)) };
        if let Some(node) = held.as_ref().and_then(|held| held.node()) {
            node.note_read();
            self.recorded |= node.is_recorded();
        }
        let is_recorded = held.as_ref().and_then(|held| held.node()).is_some_and(|node| node.is_recorded());
        // A program that held memory of a call that has ended would keep all steps of that call
        // alive.
        let memory = match held.filter(|held| held.node().is_none() || held.is_traced()) {
            Some(held) => {
                self.traced |= held.is_traced();
                // An operand without elements may begin anywhere.
                let offset = (start as isize).wrapping_sub(held.start() as isize) / dtype.bytes() as isize;
                LeafMemory::Shared(held, offset)
            }
            None => LeafMemory::Borrowed(Borrowed { start, dtype, reached, memory: PhantomData }),
        };
        let number = self.push(memory);
        // 64-bit integers do not fit into the registers of 32-bit targets.
        let is_too_wide =
            is_recorded && dtype.kind() == RegisterKind::Int && dtype.bytes() > size_of::<isize>();
        if self.exact && !dtype.is_exact() || is_too_wide {
            self.opaque(element.name)
        } else {
            self.build.load(number, dtype)
        }
    }

    /// Skips a row along which nothing is read.
    pub fn skip(&mut self) {
        self.push(LeafMemory::Position);
    }

    /// The elements that the results are written to, as the first operand of a program that
    /// replaces a kernel.
    pub fn place<T: Element>(&mut self, place: &mut ElementsMut<'_, T>) -> Register {
        assert!(self.exact, "the program is to replace a kernel");
        let start = place.as_mut_ptr().cast_const().cast();
        self.memory(start, TypeName::of::<T>(), place.reached(), None)
    }

    /// Adds a computed index to the elements in the register `elements`. The index selects along
    /// `axis`.
    pub fn index(&mut self, elements: Register, index: Register, axis: IndexedAxis) {
        let crate::program::Instruction::Load(number) = self.build.instruction(elements) else { return };
        self.leaves[number as usize].indices.push((index, axis));
    }

    /// Positions along the loops, with the strides of their row.
    pub fn position(&mut self) -> Register {
        let number = self.push(LeafMemory::Position);
        self.build.position(number)
    }

    /// A constant.
    pub fn constant<T: Element>(&mut self, value: T) -> Register {
        self.number(&value, TypeName::of::<T>())
    }

    fn number(&mut self, value: &dyn Any, element: TypeName) -> Register {
        match Number::of_any(value) {
            Some(_) if self.exact && !DType::of_id(element.id).is_some_and(DType::is_exact) => {
                self.opaque(element.name)
            }
            Some((number, kind)) => match DType::of_id(element.id) {
                Some(dtype) => self.build.constant_of(number, dtype),
                None => self.build.constant(number, kind),
            },
            None => self.opaque(element.name),
        }
    }

    /// An operation of the [table](crate::ops::table).
    pub fn operation(&mut self, code: Code, name: &'static str, operands: &[Register]) -> Register {
        if self.exact && !self.is_exact(code, operands) {
            return self.opaque(name);
        }
        self.build.operation(code, operands).unwrap_or_else(|| self.opaque(name))
    }

    /// Whether programs compute the same bits as the operation, and panic whenever the operation
    /// panics. In programs, an integer divided by 0 is 0, and the constants of operations such as
    /// `clamp` are floats.
    fn is_exact(&self, code: Code, operands: &[Register]) -> bool {
        let of_integers = operands.iter().any(|&operand| self.build.kind(operand) == RegisterKind::Int);
        match code {
            Code::Cast(to) => to.is_exact(),
            Code::Unary(UnaryOpcode::Clamp(..) | UnaryOpcode::LeakyRelu(_)) => !of_integers,
            Code::Binary(
                BinaryOpcode::Div | BinaryOpcode::Rem | BinaryOpcode::Remainder | BinaryOpcode::FloorDiv,
            ) => !of_integers,
            Code::Unary(_) | Code::Binary(_) | Code::Same | Code::Left | Code::Right => true,
            Code::Opaque => false,
        }
    }

    /// A user's operation.
    pub fn call(&mut self, function: Own, name: &'static str, operands: &[Register]) -> Register {
        match function {
            // The operation may panic, and must be called only with elements that are used.
            _ if self.exact => self.opaque(name),
            Some(function) => {
                let value = self.build.call(&function, operands);
                self.build.of_type(value, function.dtype())
            }
            None => {
                let value = self.opaque(name);
                self.own |= self.opaque == Some(name);
                value
            }
        }
    }

    /// `if cond { a } else { b }`
    pub fn select(&mut self, cond: Register, a: Register, b: Register) -> Register {
        self.is_partial = true;
        self.build.select(cond, a, b)
    }

    /// An operation or an element type that programs do not know.
    pub fn opaque(&mut self, name: &'static str) -> Register {
        self.opaque.get_or_insert(name);
        self.build.float(f64::NAN, RegisterKind::F64)
    }

    /// Whether an operand is traced.
    pub fn is_traced(&self) -> bool {
        self.traced
    }

    /// Whether an operand depends on inputs of a function that is being recorded to run again.
    pub fn is_recorded(&self) -> bool {
        self.recorded
    }

    /// The names of the variables that the operands depend on.
    pub fn names_of_variables(&self) -> Vec<String> {
        names_of_variables(self.leaves.iter().filter_map(|leaf| match &leaf.memory {
            LeafMemory::Shared(held, _) => held.node(),
            _ => None,
        }))
    }

    /// The first operation or element type that programs do not know, if there is one.
    pub fn opaque_operation(&self) -> Option<&'static str> {
        self.opaque
    }

    /// The program of the value, with elements of type `T`, if it computes the same bits as the
    /// expression's kernel. The program must consist of operations of the
    /// [table](crate::ops::table) on elements that registers represent exactly, none of them at
    /// computed places.
    pub fn lowered<T: Element>(self, value: Register) -> Option<LoweredProgram<'w>> {
        self.lowered_of(value, TypeId::of::<T>())
    }

    fn lowered_of(self, value: Register, element: TypeId) -> Option<LoweredProgram<'w>> {
        let dtype = DType::of_id(element)?;
        assert!(self.exact, "the program is to replace a kernel");
        if self.opaque.is_some() || !dtype.is_exact() || self.build.kind(value) != dtype.kind() {
            return None;
        }
        let mut sources = SmallVec::new();
        for leaf in &self.leaves {
            if !leaf.indices.is_empty() {
                return None;
            }
            sources.push(match leaf.memory {
                LeafMemory::Borrowed(Borrowed { start, dtype, reached, .. }) => {
                    // SAFETY: the code that runs the program promises that the positions of the
                    // nest are elements.
                    unsafe { OperandSource::new(start, dtype, None) }.reaching(reached)
                }
                _ => OperandSource::position(),
            });
        }
        // SAFETY: the program loads its leaves, whose memory these sources are.
        Some(unsafe { LoweredProgram::new(self.build.finish(value), sources, dtype) })
    }

    /// The field of the value, over loops of these sizes; `None` if no operand is traced. The value
    /// is used at all positions of the loops.
    pub fn finish(self, value: Register, sizes: &[usize], rows: &Rows) -> Result<Option<Field>, Unrecorded> {
        if self.traced { (FINISH.get())(self, value, sizes, rows).map(Some) } else { Ok(None) }
    }

    /// The field of the value, whether or not an operand is traced. The value may be used at some
    /// positions only.
    ///
    /// # Panics
    ///
    /// If no variable has been made and no recording has been restored.
    pub fn finish_any(mut self, value: Register, sizes: &[usize], rows: &Rows) -> Result<Field, Unrecorded> {
        self.is_partial = true;
        (FINISH.get())(self, value, sizes, rows)
    }

    /// The [linked](super::link) part of [`finish_any`](Writer::finish_any).
    fn finish_linked(self, value: Register, sizes: &[usize], rows: &Rows) -> Result<Field, Unrecorded> {
        if let Some(operation) = self.opaque {
            if self.recorded {
                return Err(Unrecorded::Unrepeatable(operation, self.own));
            }
            let names = self.names_of_variables();
            let error = if self.own { Unrecorded::Own } else { Unrecorded::Opaque };
            return Err(error(operation, names));
        }
        let Writer { build, leaves, is_partial, .. } = self;
        let mut fault = None;
        let mut operands: Vec<FieldOperand> = Vec::with_capacity(leaves.len());
        // The operands of indices have rows after the row of the leaf.
        for leaf in leaves.iter().rev() {
            let strides = rows.row(leaf.row);
            let offset = rows.offsets()[leaf.row];
            let later = |at: u32| (leaves.len() - 1) as u32 - at;
            let table = if leaf.indices.is_empty() || sizes.contains(&0) {
                None
            } else {
                let table = OffsetTable::of(leaf, &build, &operands, sizes, &later)?;
                fault = table.fault().or(fault);
                Some(table)
            };
            operands.push(leaf.operand(sizes, offset, strides, table)?);
        }
        operands.reverse();
        let field = Field {
            sizes: PerLoop::from_slice(sizes),
            program: Arc::new(build.finish(value)),
            operands,
            names: None,
        };
        if let Some(fault) = fault.filter(|_| !is_partial && field.is_hollow()) {
            // (Without elements, the expression does not run, so nothing else reports the index.)
            return Err(fault.into());
        }
        if field.has_distinct_operands() {
            return Ok(field);
        }
        // Removes operands that only indices read, and merges equal operands.
        let distinct = field.with_distinct_operands();
        // The kernel of `if x == x { y } else { y }` reads `x`, although the distinct operands do
        // not include it, and must not run if `x` has no elements.
        Ok(if field.is_hollow() && !distinct.is_hollow() { field } else { distinct })
    }
}

/// The sums of some indices, each times its stride, contiguous in an order of their loops. An
/// out-of-range index counts as 0. The first one found is returned, after the number of its entry
/// in `indices`. If `noted` is a leaf, the positions that the indices select along its axes are
/// [noted](note_range).
fn offsets(
    indices: &[TableIndex],
    order: &[usize],
    noted: Option<&RecordedLeaf<'_>>,
) -> Result<(Vec<isize>, Option<(usize, isize)>), Error> {
    if let [first, ..] = indices
        && indices.iter().all(TableIndex::is_hollow)
    {
        let len = order.iter().map(|&axis| first.index.sizes[axis]).product();
        return Ok((hollow::zeros(len)?, None));
    }
    let (mut offsets, mut fault) = (Vec::new(), None);
    for (at, own @ TableIndex { index, stride, size, .. }) in indices.iter().enumerate() {
        if own.is_hollow() {
            // Each run computes the index. Here it counts as 0.
            if offsets.is_empty() {
                offsets = defaults(order.iter().map(|&axis| index.sizes[axis]).product())?;
            }
            continue;
        }
        let values = mapped::<isize>(index, order)?;
        if let Some(leaf) = noted {
            note_positions(&values, *size, &leaf.indices[at].1);
        }
        offsets.resize(values.len(), 0);
        for (offset, index) in offsets.iter_mut().zip(values) {
            // An out-of-range index is an error if its element is used. Running the expression
            // reports it. An unused element may have any value.
            if usize::try_from(index).is_ok_and(|index| index < *size) {
                *offset += index * stride;
            } else {
                fault = fault.or(Some((at, index)));
            }
        }
    }
    Ok((offsets, fault))
}

/// Notes each position that an index selects along an axis. (A single range around them would not
/// do: positions that are counted from the end move relative to the others if the size changes.)
fn note_positions(values: &[isize], size: usize, axis: &IndexedAxis) {
    let name = || computed_axis((axis.dim, axis.axis), core::iter::empty());
    for at in values.iter().filter_map(|&at| usize::try_from(at).ok()).filter(|&at| at < size) {
        note_range(at..at + 1, size, &name);
    }
}

/// Whether some of the indices depend on inputs of a function that is being recorded to run again.
fn are_recorded(indices: &[TableIndex]) -> bool {
    indices.iter().any(|own| own.index.all_nodes().iter().any(|node| node.is_recorded()))
}

/// The offsets from the computed indices of a leaf, over the loops along which they vary.
struct OffsetTable {
    offsets: Vec<isize>,
    order: SmallVec<[usize; 8]>,
    indices: Vec<TableIndex>,
    /// The error of an out-of-range index, if there is one.
    fault: Option<Error>,
}

impl OffsetTable {
    fn of(
        leaf: &RecordedLeaf<'_>,
        build: &Builder,
        later: &[FieldOperand],
        sizes: &[usize],
        number: &dyn Fn(u32) -> u32,
    ) -> Result<OffsetTable, Unrecorded> {
        let indices = leaf.indices.iter().map(|&(index, axis)| {
            let program = build.clone().finish(index).with_operands(number);
            let field = Field {
                sizes: PerLoop::from_slice(sizes),
                program: Arc::new(program),
                operands: later.to_vec(),
                names: None,
            };
            let IndexedAxis { stride, size, .. } = axis;
            TableIndex { index: field.with_distinct_operands(), stride, size, axis: Some(axis) }
        });
        let indices: Vec<TableIndex> = indices.collect();
        let varies = |axis: usize| {
            let mut operands = indices.iter().flat_map(|own| &own.index.operands);
            operands.any(|own| own.place.varies(axis))
        };
        let order: SmallVec<[usize; 8]> =
            (0..sizes.len()).filter(|&axis| sizes[axis] != 1 && varies(axis)).collect();
        // (If each run computes the indices, it also checks them.)
        let noted = (are_noted() && !are_recorded(&indices)).then_some(leaf);
        let (offsets, fault) = offsets(&indices, &order, noted)?;
        let fault = fault.map(|(at, index)| {
            let (_, axis) = &leaf.indices[at];
            let (what, index) = (axis.describe(), index as i128);
            Error::OutOfBounds { what, index, size: axis.size, origin: axis.origin }
        });
        Ok(OffsetTable { offsets, order, indices, fault })
    }

    /// The error of an out-of-range index that is the same in each run. (A run checks the others.)
    fn fault(&self) -> Option<Error> {
        if self.is_recorded() { None } else { self.fault.clone() }
    }

    /// Whether the indices depend on inputs of a function that is being recorded to run again.
    fn is_recorded(&self) -> bool {
        are_recorded(&self.indices)
    }

    fn table(self, sizes: &[usize]) -> Table {
        let is_recorded = self.is_recorded();
        let OffsetTable { offsets, order, indices, .. } = self;
        let mut table = if indices.iter().all(TableIndex::is_hollow) {
            Table::within(offsets, (0, 0), sizes, &order)
        } else {
            Table::new(offsets, sizes, &order)
        };
        if is_recorded {
            table.source = Some(Arc::new(TableSource { indices, order: order.into_iter().collect() }));
        }
        table
    }
}

/// A placeholder for an operand whose elements are never read.
fn nothing(dtype: DType, sizes: &[usize]) -> FieldOperand {
    fn any<T: Element>() -> Arc<dyn Held> {
        Buffer::from(alloc::vec![T::default()]).held()
    }
    let source = FieldSource::Memory(match_dtype!(dtype, T => any::<T>()));
    FieldOperand { source, place: StridedPlace::strided(0, sizes.iter().map(|_| 0)) }
}

impl RecordedLeaf<'_> {
    fn dtype(&self) -> DType {
        match &self.memory {
            LeafMemory::Shared(held, _) => held.dtype().expect("programs read types that they know"),
            LeafMemory::Borrowed(borrowed) => borrowed.dtype,
            LeafMemory::Position => DType::Isize,
        }
    }

    fn operand(
        &self,
        sizes: &[usize],
        offset: isize,
        strides: &[isize],
        table: Option<OffsetTable>,
    ) -> Result<FieldOperand, Unrecorded> {
        let is_empty = sizes.contains(&0);
        if !is_empty && self.indices.iter().any(|(_, axis)| axis.size == 0) {
            // An index selects from an axis of size 0, so no element is read.
            return Ok(nothing(self.dtype(), sizes));
        }
        let strides = || sizes.iter().zip(strides).map(|(&size, &stride)| if size == 1 { 0 } else { stride });
        Ok(match &self.memory {
            LeafMemory::Position => FieldOperand {
                source: FieldSource::Position,
                place: StridedPlace::strided(offset, strides()),
            },
            LeafMemory::Shared(held, start) => {
                let mut place = StridedPlace::strided(start + offset, strides());
                place.table = table.map(|own| Box::new(own.table(sizes)));
                FieldOperand { source: FieldSource::Memory(Arc::clone(held)), place }
            }
            // An array without elements may have a stride of 0 along all axes, including those
            // whose size is not 0.
            LeafMemory::Borrowed(borrowed) if is_empty => nothing(borrowed.dtype, sizes),
            LeafMemory::Borrowed(borrowed) if table.as_ref().is_some_and(OffsetTable::is_recorded) => {
                // All elements that an index may select are copied, along additional loops.
                let mut table = table.expect("the table is recorded");
                let mut whole = *borrowed;
                let own: SmallVec<[isize; 8]> = strides().collect();
                let mut order: SmallVec<[usize; 8]> =
                    (0..sizes.len()).filter(|&axis| own[axis] != 0).collect();
                let (mut all, mut all_strides) = (SmallVec::from_slice(sizes), own);
                for index in &table.indices {
                    order.push(all.len());
                    all.push(index.size);
                    all_strides.push(index.stride);
                    // An index within the size selects an element.
                    whole.reached = whole.reached.along(index.size, index.stride);
                }
                let all: SmallVec<[usize; 8]> = all;
                let along =
                    LeafStrides { sizes: &all, order: &order, offset, strides: &all_strides, table: None };
                let held = match_dtype!(whole.dtype, T => copied::<T>(whole, &along))?;
                let lying = StridedPlace::contiguous(&all, &order).strides;
                for (at, index) in table.indices.iter_mut().enumerate() {
                    index.stride = lying[sizes.len() + at];
                }
                let mut place = StridedPlace::strided(0, lying[..sizes.len()].iter().copied());
                table.offsets = offsets(&table.indices, &table.order, None)?.0;
                place.table = Some(Box::new(table.table(sizes)));
                FieldOperand { source: FieldSource::Memory(held), place }
            }
            LeafMemory::Borrowed(borrowed) => {
                let strides: SmallVec<[isize; 8]> = strides().collect();
                let table = table.map(|own| (own.offsets, own.order));
                let in_table = |axis: &usize| table.as_ref().is_some_and(|(_, order)| order.contains(axis));
                let order: SmallVec<[usize; 8]> =
                    (0..sizes.len()).filter(|axis| strides[*axis] != 0 || in_table(axis)).collect();
                // The table along all loops of the copy.
                let spread = table.map(|(offsets, own)| {
                    let along = StridedPlace::contiguous(sizes, &own).strides;
                    positions(sizes, &order, &along).map(|at| offsets[at as usize]).collect::<Vec<_>>()
                });
                let along =
                    LeafStrides { sizes, order: &order, offset, strides: &strides, table: spread.as_deref() };
                let held = match_dtype!(borrowed.dtype, T => copied::<T>(*borrowed, &along))?;
                FieldOperand {
                    source: FieldSource::Memory(held),
                    place: StridedPlace::contiguous(sizes, &order),
                }
            }
        })
    }
}

/// The offset of each position of some loops from the origin, in the order of the loops.
fn positions<'a>(
    sizes: &'a [usize],
    order: &'a [usize],
    strides: &'a [isize],
) -> impl Iterator<Item = isize> + 'a {
    let own: SmallVec<[usize; 8]> = order.iter().map(|&axis| sizes[axis]).collect();
    let mut at: SmallVec<[usize; 8]> = SmallVec::from_elem(0, order.len());
    let mut done = Odometer::new(&own).is_done();
    core::iter::from_fn(move || {
        if done {
            return None;
        }
        let here = order.iter().zip(&at).map(|(&axis, &at)| strides[axis] * at as isize).sum();
        done = true;
        for (at, &size) in at.iter_mut().zip(&own).rev() {
            *at += 1;
            if *at < size {
                done = false;
                break;
            }
            *at = 0;
        }
        Some(here)
    })
}

/// A copy of borrowed elements, in the order of the loops.
fn copied<T: Element>(borrowed: Borrowed<'_>, along: &LeafStrides<'_>) -> Result<Arc<dyn Held>, Error> {
    let elements = borrowed.elements::<T>();
    let LeafStrides { sizes, order, offset, strides, table } = *along;
    let len = order.iter().map(|&axis| sizes[axis]).product();
    let Some(table) = table else {
        let mut rows = Rows::new(sizes.len());
        rows.push_at(offset).copy_from_slice(strides);
        let nest = Nest::map(sizes, order, &rows);
        // SAFETY: the recorded expression reads the elements along these strides, at the sizes of
        // its loops. Additional loops are over elements that a computed index may select. The
        // kernel runs over this nest.
        let lower = |nest| unsafe { Strided::<T, ()>::new(elements, Nest::operands(nest).next_row(), ()) };
        let data = collect(core::slice::from_ref(&nest), &lower, Destination::New(len))?;
        return Ok(Buffer::from(data).held());
    };
    let mut data = reserve(len)?;
    for (moved, &from_table) in positions(sizes, order, strides).zip(table) {
        // SAFETY: the plan of the expression has the same row of strides. The indices from which
        // the table was computed are in range, because `offsets` counts an out-of-range index as 0.
        data.push(unsafe { *elements.as_ptr().wrapping_offset(offset + moved + from_table) });
    }
    Ok(Buffer::from(data).held())
}
