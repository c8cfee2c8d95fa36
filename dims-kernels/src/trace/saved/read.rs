//! Restores recordings from data that may be hostile. Everything that kernels rely on is checked
//! here, in `rules`, in `step/saved`, or by a higher layer.

use super::write::SavedElement;
use super::{
    SavedBytes, SavedConstant, SavedField, SavedInstruction, SavedLookup, SavedOperand, SavedPart,
    SavedPlace, SavedProgramText, SavedRecording, SavedRule, SavedStep, SavedTable, SavedType, SavedWork,
};
use crate::error::Error;
use crate::memory::axes::is_within;
use crate::memory::buffer::Buffer;
use crate::ops::code::{BinaryOpcode, DType, Number, RegisterKind, UnaryOpcode, match_dtype};
use crate::ops::function::Functions;
use crate::program::{Instruction, ScalarProgram};
use crate::trace::link_gradients;
use crate::trace::replay::Placeholder;
use crate::trace::{
    Field, FieldOperand, FieldSource, Held, Node, NodeStep, Part, PerLoop, Recording, Rule, StridedPlace,
    Table, TableIndex, TableSource,
};
use alloc::boxed::Box;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt::Display;

/// Restores the rules of higher layers.
pub(crate) type RestoreRule<'r> =
    &'r dyn Fn(&SavedRule, &RecordingReader<'_>, SavedType) -> Result<Box<dyn Rule>, Error>;

/// The maximum number of loops of a field.
const MOST_LOOPS: usize = 64;

/// The deepest nesting of tables.
const DEEPEST: usize = 16;

/// Strides and offsets are at most this far from 0, so that their sums do not overflow.
pub const FARTHEST: usize = isize::MAX as usize / 4;

/// The reason why a saved recording cannot be restored, as an error.
pub(crate) fn refused(what: impl Display) -> Error {
    Error::Damaged { what: format!("{what}"), step: None }
}

/// An error with this text, unless `holds`.
pub(crate) fn check(holds: bool, what: &str) -> Result<(), Error> {
    if holds { Ok(()) } else { Err(refused(what)) }
}

/// The product of sizes. It is an error if the product of the nonzero sizes is too large, so
/// products of any of the sizes fit.
pub(crate) fn checked_volume(sizes: impl IntoIterator<Item = usize>) -> Result<usize, Error> {
    let (mut volume, mut all) = (1usize, 1usize);
    for size in sizes {
        all = all
            .checked_mul(size.max(1))
            .filter(|all| isize::try_from(*all).is_ok())
            .ok_or_else(|| refused("there are more elements than fit into memory"))?;
        volume *= size;
    }
    Ok(volume)
}

/// Reads a recording, step by step.
pub(crate) struct RecordingReader<'s> {
    saved: &'s SavedRecording,
    /// The values so far: placeholders for inputs and steps, with the constants between them.
    values: Vec<Arc<dyn Held>>,
    tables: Vec<RestoredTable>,
}

/// A table, with the properties that are needed to check the places that read it.
struct RestoredTable {
    offsets: Arc<Vec<isize>>,
    source: Option<Arc<TableSource>>,
    /// The number of offsets.
    len: usize,
    /// The least and the greatest possible offset.
    bounds: (isize, isize),
    depth: usize,
}

impl SavedRecording {
    /// Restores the recording. `others` restores the rules of higher layers.
    pub(crate) fn read(&self, others: RestoreRule<'_>) -> Result<Recording, Error> {
        link_gradients();
        let nodes = self.inputs.iter().map(|own| node_of(*own, NodeStep::Variable(None)));
        let inputs = nodes.collect::<Result<Vec<_>, _>>()?;
        let mut reader = RecordingReader { saved: self, values: Vec::new(), tables: Vec::new() };
        reader.values.extend(inputs.iter().map(|node| Placeholder::of(node)));
        for constant in &self.constants {
            reader.values.push(constant.elements()?);
        }
        // Tables are restored when a step first reads them, because they may read results of
        // earlier steps.
        let mut steps = Vec::new();
        for (at, step) in self.steps.iter().enumerate() {
            let node = reader.step(step, others).map_err(|error| at_step(error, at))?;
            reader.values.push(Placeholder::of(&node));
            steps.push(node);
        }
        let value = |number: usize| reader.values.get(number).cloned();
        let outputs =
            self.outputs.iter().map(|&at| value(at).ok_or_else(|| refused("a result is not computed")));
        Ok(Recording::of_parts(inputs, steps, outputs.collect::<Result<_, _>>()?))
    }

    /// The types and lengths of the results.
    pub fn results(&self) -> impl Iterator<Item = (DType, usize)> {
        let (inputs, constants) = (self.inputs.len(), self.constants.len());
        self.outputs.iter().filter_map(move |&number| {
            if let Some(own) = self.inputs.get(number) {
                return Some((own.dtype, own.len));
            }
            match self.constants.get(number - inputs) {
                Some(own) => Some((own.dtype, own.elements.0.len() / own.dtype.saved_bytes())),
                None => self.steps.get(number - inputs - constants).map(|own| (own.dtype, own.len)),
            }
        })
    }

    /// The types and lengths of the inputs.
    pub fn inputs(&self) -> impl Iterator<Item = (DType, usize)> {
        self.inputs.iter().map(|own| (own.dtype, own.len))
    }
}

fn at_step(error: Error, at: usize) -> Error {
    match error {
        Error::Damaged { what, .. } => Error::Damaged { what, step: Some(at) },
        error => error,
    }
}

fn node_of(SavedType { dtype, len }: SavedType, step: NodeStep) -> Result<Arc<Node>, Error> {
    dtype.check_known()?;
    let bytes = len.checked_mul(dtype.bytes()).filter(|&bytes| isize::try_from(bytes).is_ok());
    bytes.ok_or_else(|| refused("there are more elements than fit into memory"))?;
    Ok(Node::new(dtype, len, step, None))
}

impl DType {
    /// The size of a saved element in bytes.
    pub(super) fn saved_bytes(self) -> usize {
        match self {
            DType::Isize | DType::Usize => 8,
            _ => self.bytes(),
        }
    }

    /// Whether registers of a kind can be stored as elements of this type.
    pub(super) fn takes(self, kind: RegisterKind) -> bool {
        let is_float = |kind| matches!(kind, RegisterKind::F32 | RegisterKind::F64);
        self.is_known() && (self.kind() == kind || is_float(self.kind()) && is_float(kind))
    }

    fn check_known(self) -> Result<(), Error> {
        match self.is_known() {
            true => Ok(()),
            false => Err(refused(format!("`{}` needs the feature `half`", self.name()))),
        }
    }
}

impl SavedConstant {
    fn elements(&self) -> Result<Arc<dyn Held>, Error> {
        fn of<T: SavedElement>(bytes: &[u8]) -> Result<Arc<dyn Held>, Error> {
            check(
                bytes.len().is_multiple_of(T::BYTES),
                "the bytes of a constant do not divide into elements",
            )?;
            let elements: Option<Vec<T>> = bytes.chunks_exact(T::BYTES).map(T::read).collect();
            let elements =
                elements.ok_or_else(|| refused("a constant has an element that is invalid for its type"))?;
            Ok(Buffer::from(elements).held())
        }
        let bytes = &self.elements.0;
        self.dtype.check_known()?;
        match_dtype!(self.dtype, T => of::<T>(bytes))
    }
}

/// One element of a type, from its bytes.
pub(crate) fn element_of<T: 'static + Copy>(SavedBytes(bytes): &SavedBytes) -> Result<T, Error> {
    use core::any::Any;
    fn of<T: SavedElement>(bytes: &[u8]) -> Option<Box<dyn Any>> {
        T::read(bytes).map(|element| Box::new(element) as Box<dyn Any>)
    }
    let element = DType::of::<T>().and_then(|dtype| match_dtype!(dtype, E => of::<E>(bytes)));
    let element = element.and_then(|element| element.downcast_ref::<T>().copied());
    element.ok_or_else(|| refused("the bytes of an element do not fit its type"))
}

impl RecordingReader<'_> {
    /// A value that was restored already.
    pub(super) fn value(&self, number: usize) -> Result<&Arc<dyn Held>, Error> {
        self.values.get(number).ok_or_else(|| refused("a step reads a value that is not computed before it"))
    }

    pub(super) fn constant(&self, number: usize) -> Result<&Arc<dyn Held>, Error> {
        let inputs = self.saved.inputs.len();
        check(
            (inputs..inputs + self.saved.constants.len()).contains(&number),
            "a step lacks a constant that it needs",
        )?;
        self.value(number)
    }

    fn step(&mut self, step: &SavedStep, others: RestoreRule<'_>) -> Result<Arc<Node>, Error> {
        let of = SavedType { dtype: step.dtype, len: step.len };
        let work = match &step.work {
            SavedWork::Parts(parts) => {
                parts.iter().try_for_each(|part| self.read_tables(&part.field, Some(&part.place)))?;
                let parts = parts.iter().map(|part| self.part(part, of));
                NodeStep::Parts(parts.collect::<Result<_, _>>()?)
            }
            SavedWork::Rule(rule) => {
                rule.fields().into_iter().try_for_each(|field| self.read_tables(field, None))?;
                if let SavedRule::Placed { parts, .. } = &**rule {
                    parts.iter().try_for_each(|part| self.read_tables(&part.field, Some(&part.place)))?;
                }
                NodeStep::Rule(match &**rule {
                    SavedRule::Kind { .. } | SavedRule::MomentOfLines(_) => others(rule, self, of)?,
                    rule => self.rule(rule, of)?,
                })
            }
        };
        let node = node_of(of, work)?;
        // Calls never run a step that reads only constants. The steps that read its result would
        // need the elements from the call that was recorded, which a restored recording does not
        // have.
        check(!node.all_inputs().is_empty(), "a step reads only constants")?;
        Ok(node)
    }

    /// Restores the tables that a field and a place read, and all tables before these.
    fn read_tables(&mut self, field: &SavedField, place: Option<&SavedPlace>) -> Result<(), Error> {
        let places = field.operands.iter().map(|own| &own.place).chain(place);
        let greatest = places.filter_map(|place| place.table.as_ref()).map(|own| own.number).max();
        let Some(greatest) = greatest else { return Ok(()) };
        while self.tables.len() <= greatest {
            let table = self.saved.tables.get(self.tables.len());
            let table =
                self.table(table.ok_or_else(|| refused("a step reads a table that does not exist"))?)?;
            self.tables.push(table);
        }
        Ok(())
    }

    fn table(&self, table: &SavedTable) -> Result<RestoredTable, Error> {
        match table {
            SavedTable::Given(offsets) => {
                let least = offsets.iter().copied().min().unwrap_or(0);
                let greatest = offsets.iter().copied().max().unwrap_or(0);
                Ok(RestoredTable {
                    offsets: Arc::new(offsets.clone()),
                    source: None,
                    len: offsets.len(),
                    bounds: (least, greatest),
                    depth: 0,
                })
            }
            SavedTable::Computed { indices, order } => {
                let (mut depth, mut fields) = (0, Vec::new());
                let (mut least, mut greatest) = (0i128, 0i128);
                for own in indices {
                    let field = self.field(&own.field)?;
                    check(field.kind() == RegisterKind::Int, "an index is not an integer")?;
                    covers_all(&field, order)?;
                    // Restoring the field has checked that the tables it reads exist.
                    let read = own.field.operands.iter().filter_map(|own| own.place.table.as_ref());
                    depth = read.map(|own| self.tables[own.number].depth + 1).fold(depth, usize::max);
                    let far = (own.size as i128 - 1).max(0).saturating_mul(own.stride as i128);
                    (least, greatest) =
                        (least.saturating_add(far.min(0)), greatest.saturating_add(far.max(0)));
                    fields.push(TableIndex { index: field, stride: own.stride, size: own.size, axis: None });
                }
                check(depth < DEEPEST, "tables are nested too deeply")?;
                let first = fields.first().ok_or_else(|| refused("a table has no indices"))?;
                let sizes = first.index.sizes.clone();
                check(fields.iter().all(|own| own.index.sizes == sizes), "indices have different loops")?;
                let most = FARTHEST as i128;
                check(-most <= least && greatest <= most, "offsets are too large")?;
                let len = checked_volume(order.iter().map(|&axis| sizes[axis]))?;
                let source =
                    TableSource { indices: fields, order: order.iter().copied().collect::<PerLoop<_>>() };
                // Each call computes the offsets.
                Ok(RestoredTable {
                    offsets: Arc::default(),
                    source: Some(Arc::new(source)),
                    len,
                    bounds: (least as isize, greatest as isize),
                    depth,
                })
            }
        }
    }

    pub(super) fn part(&self, SavedPart { field, place }: &SavedPart, of: SavedType) -> Result<Part, Error> {
        let field = self.field(field)?;
        check(of.dtype.takes(field.kind()), "a step computes elements of another type than its result")?;
        let place = self.place(place, &field.sizes, Some(of.len))?;
        Ok(Part { field, place })
    }

    pub(crate) fn field(&self, saved: &SavedField) -> Result<Field, Error> {
        check(saved.sizes.len() <= MOST_LOOPS, "a step has too many loops")?;
        checked_volume(saved.sizes.iter().copied())?;
        let mut operands = Vec::new();
        for SavedOperand { value, place } in &saved.operands {
            let memory = value.map(|number| self.value(number)).transpose()?;
            let place = self.place(place, &saved.sizes, memory.map(|held| held.len()))?;
            let source = match memory {
                Some(held) => FieldSource::Memory(Arc::clone(held)),
                None => FieldSource::Position,
            };
            operands.push(FieldOperand { source, place });
        }
        let program = Arc::new(program(&saved.program, &operands)?);
        Ok(Field { sizes: PerLoop::from_slice(&saved.sizes), program, operands, names: None })
    }

    /// A place along loops of these sizes, within `len` elements. `len` is `None` for positions,
    /// which have no table.
    fn place(&self, saved: &SavedPlace, sizes: &[usize], len: Option<usize>) -> Result<StridedPlace, Error> {
        let SavedPlace { offset, strides, table } = saved;
        let is_near = |value: &isize| value.unsigned_abs() <= FARTHEST;
        check(strides.len() == sizes.len(), "a place must have one stride for each loop")?;
        check(is_near(offset) && strides.iter().all(is_near), "a stride is too large")?;
        let table = table.as_ref().map(|lookup| self.lookup(lookup, sizes)).transpose()?;
        let bounds = table.as_ref().map_or((0, 0), |(_, bounds)| *bounds);
        let axes = || sizes.iter().copied().zip(strides.iter().copied());
        let far = axes().map(|(size, stride)| size as i128 * stride.unsigned_abs() as i128);
        let far = far.fold(offset.unsigned_abs() as i128, i128::saturating_add);
        let is_known = match len {
            // There is no element that these loops could read or write. Some rules read a field
            // along some of its loops only. Such a rule checks the field's places along those
            // loops.
            Some(_) if sizes.contains(&0) => far <= FARTHEST as i128,
            Some(len) => [bounds.0, bounds.1]
                .into_iter()
                .all(|offset_of_table| is_within(len, *offset as i128 + offset_of_table as i128, axes())),
            None => table.is_none() && far <= FARTHEST as i128,
        };
        check(is_known, "a step reads or writes out of bounds")?;
        Ok(StridedPlace {
            offset: *offset,
            strides: PerLoop::from_slice(strides),
            table: table.map(|(table, _)| Box::new(table)),
        })
    }

    /// How a place reads a table, and the bounds of the table's offsets.
    fn lookup(&self, lookup: &SavedLookup, sizes: &[usize]) -> Result<(Table, (isize, isize)), Error> {
        let SavedLookup { number, start, ref strides } = *lookup;
        let table = self.tables.get(number).ok_or_else(|| refused("a table reads a later table"))?;
        check(strides.len() == sizes.len(), "a table must have one stride for each loop")?;
        let is_near = |value: &isize| value.unsigned_abs() <= FARTHEST;
        check(is_near(&start) && strides.iter().all(is_near), "a stride is too large")?;
        let axes = sizes.iter().copied().zip(strides.iter().copied());
        check(is_within(table.len, start as i128, axes), "a step reads a table out of bounds")?;
        let (least, greatest) = table.bounds;
        check(is_near(&least) && is_near(&greatest), "offsets are too large")?;
        let RestoredTable { offsets, source, bounds, .. } = table;
        let strides = PerLoop::from_slice(strides);
        let restored =
            Table { offsets: Arc::clone(offsets), start, bounds: *bounds, strides, source: source.clone() };
        Ok((restored, *bounds))
    }
}

/// Checks that the order has distinct loops, and that the field varies along no others.
pub(super) fn covers_all(field: &Field, order: &[usize]) -> Result<(), Error> {
    are_distinct(order, field.sizes.len())?;
    let varies = |axis: usize| field.operands.iter().any(|own| own.place.varies(axis));
    let is_covered = |axis: usize| field.sizes[axis] == 1 || order.contains(&axis) || !varies(axis);
    check((0..field.sizes.len()).all(is_covered), "a field varies along loops that its result lacks")
}

/// Checks that the loops in `order` are distinct and less than `loops`.
pub(super) fn are_distinct(order: &[usize], loops: usize) -> Result<(), Error> {
    let is_known = |(at, axis): (usize, &usize)| *axis < loops && !order[..at].contains(axis);
    check(
        order.len() <= loops && order.iter().enumerate().all(is_known),
        "an order repeats a loop, or names one that does not exist",
    )
}

/// The volume of some distinct loops of a field.
pub(super) fn volume(field: &Field, axes: &[usize]) -> usize {
    axes.iter().map(|&axis| field.sizes[axis]).product()
}

/// A program whose registers have the kinds that the interpreter relies on.
fn program(saved: &SavedProgramText, operands: &[FieldOperand]) -> Result<ScalarProgram, Error> {
    let mut instructions: Vec<(Instruction, RegisterKind)> = Vec::new();
    for (saved, kind) in &saved.instructions {
        let kind_of = |register: u32| {
            let known = instructions.get(register as usize).map(|(_, kind)| *kind);
            known.ok_or_else(|| refused("an instruction reads a later one"))
        };
        let operand = |number: u32| {
            operands
                .get(number as usize)
                .ok_or_else(|| refused("an instruction reads an operand that does not exist"))
        };
        let unknown = |name: &String| refused(format!("there is no operation `{name}` of this kind"));
        let (instruction, own) = match saved {
            &SavedInstruction::Load(number) => match &operand(number)?.source {
                FieldSource::Memory(held) => {
                    let dtype = held.dtype().ok_or_else(|| refused("an operand has no type"))?;
                    (Instruction::Load(number), dtype.kind())
                }
                FieldSource::Position => {
                    return Err(refused("an instruction loads an operand that is a position"));
                }
            },
            &SavedInstruction::Position(number) => match &operand(number)?.source {
                FieldSource::Position => (Instruction::Position(number), RegisterKind::Int),
                FieldSource::Memory(_) => {
                    return Err(refused("an instruction reads the position of an operand in memory"));
                }
            },
            &SavedInstruction::Float(bits) => {
                let is_float = matches!(kind, RegisterKind::F32 | RegisterKind::F64);
                check(is_float, "a float is in a register of another kind")?;
                (Instruction::Constant(Number::Float(f64::from_bits(bits))), *kind)
            }
            &SavedInstruction::Int(value) => (Instruction::Constant(Number::Int(value)), RegisterKind::Int),
            &SavedInstruction::Bool(value) => {
                (Instruction::Constant(Number::Bool(value)), RegisterKind::Bool)
            }
            SavedInstruction::Unary(op, a) => {
                let of = UnaryOpcode::of_words(&op.0, &op.1).ok_or_else(|| unknown(&op.0))?;
                (Instruction::Unary(of, *a), of.kind_of(kind_of(*a)?).ok_or_else(|| unknown(&op.0))?)
            }
            SavedInstruction::Binary(op, a, b) => {
                let of = BinaryOpcode::of_words(&op.0, &op.1).ok_or_else(|| unknown(&op.0))?;
                check(kind_of(*a)? == kind_of(*b)?, "an operation has operands of different kinds")?;
                (Instruction::Binary(of, *a, *b), of.kind_of(kind_of(*a)?).ok_or_else(|| unknown(&op.0))?)
            }
            &SavedInstruction::Select(cond, a, b) => {
                check(kind_of(cond)? == RegisterKind::Bool, "a condition is not a `bool`")?;
                check(kind_of(a)? == kind_of(b)?, "a selection has operands of different kinds")?;
                (Instruction::Select(cond, a, b), kind_of(a)?)
            }
            &SavedInstruction::Cast(to, a) => {
                to.check_known()?;
                kind_of(a)?;
                (Instruction::Cast(to, a), to.kind())
            }
        };
        check(own == *kind, "a register has another kind than its instruction")?;
        instructions.push((instruction, own));
    }
    check((saved.result as usize) < instructions.len(), "a program has no result")?;
    Ok(ScalarProgram::of(instructions, Functions::default(), saved.result))
}
