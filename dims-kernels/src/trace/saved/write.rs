//! Writes recordings as data.

use super::{
    SavedBytes, SavedConstant, SavedField, SavedIndex, SavedInstruction, SavedLookup, SavedOperand,
    SavedOperation, SavedPart, SavedPlace, SavedProgramText, SavedRecording, SavedRule, SavedStep,
    SavedTable, SavedType, SavedWork,
};
use crate::error::{Error, Origin};
use crate::memory::buffer::Buffer;
use crate::ops::code::{DType, Number, each_dtype, match_dtype};
use crate::program::{Instruction, ScalarProgram};
use crate::scalar::Element;
use crate::trace::rules::Placed;
use crate::trace::{
    Field, FieldOperand, FieldSource, Held, Node, NodeAxes, NodeStep, Part, PerLoop, Recording, StridedPlace,
    Table,
};
use alloc::boxed::Box;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::any::Any;

/// Saves the rules of higher layers; `None` for others.
pub(crate) type SaveRule<'s> = &'s dyn Fn(&dyn Any, &mut RecordingWriter) -> Option<SavedRule>;

pub(crate) struct RecordingWriter {
    /// The numbers of the inputs and of the steps that depend on them, by the ids of their nodes.
    values: BTreeMap<u64, usize>,
    /// The number of each constant, by the address of its [`Held`].
    of_constants: BTreeMap<usize, usize>,
    constants: Vec<SavedConstant>,
    /// The number of each table, by the address of its offsets.
    of_tables: BTreeMap<usize, usize>,
    tables: Vec<SavedTable>,
    /// Whether the recording is saved to be [opened](SavedRecording::open). A constant can be
    /// opened only if its elements are equal.
    pub(super) to_open: bool,
    /// The reason why the recording cannot be saved.
    refused: Option<Error>,
}

/// The number of the first constant while a recording is written. Constants and steps are
/// renumbered at the end, when it is known how many constants there are.
const CONSTANTS: usize = usize::MAX / 2;

impl RecordingWriter {
    pub(crate) fn write(
        recording: &Recording,
        to_open: bool,
        others: SaveRule<'_>,
    ) -> Result<SavedRecording, Error> {
        let mut writer = RecordingWriter {
            values: recording.inputs.iter().enumerate().map(|(at, node)| (node.id, at)).collect(),
            of_constants: BTreeMap::new(),
            constants: Vec::new(),
            of_tables: BTreeMap::new(),
            tables: Vec::new(),
            to_open,
            refused: None,
        };
        let mut steps = Vec::new();
        for node in recording.steps_of_inputs() {
            let work = writer.work(node, others)?;
            steps.push(SavedStep { dtype: node.dtype, len: node.len, work });
            let number = writer.values.len();
            writer.values.insert(node.id, number);
        }
        let outputs = recording.outputs.iter().map(|held| writer.value(held)).collect();
        if let Some(refused) = writer.refused {
            return Err(refused);
        }
        let RecordingWriter { constants, tables, .. } = writer;
        let inputs: Vec<SavedType> =
            recording.inputs.iter().map(|node| SavedType { dtype: node.dtype, len: node.len }).collect();
        let mut saved = SavedRecording { inputs, constants, tables, steps, outputs };
        saved.number_values();
        Ok(saved)
    }

    fn work(&mut self, node: &Node, others: SaveRule<'_>) -> Result<SavedWork, Error> {
        match &node.step {
            NodeStep::Variable(_) => unreachable!("a variable is not a step"),
            NodeStep::Parts(parts) => Ok(SavedWork::Parts(self.parts(parts))),
            NodeStep::Rule(rule) => {
                let any = rule.as_any();
                let saved = any.and_then(|any| self.rule(any).or_else(|| others(any, self)));
                saved.map(|rule| SavedWork::Rule(Box::new(rule))).ok_or_else(|| not_saved(rule.name()))
            }
        }
    }

    pub(crate) fn parts(&mut self, parts: &[Part]) -> Vec<SavedPart> {
        let part =
            |Part { field, place }: &Part| SavedPart { field: self.field(field), place: self.place(place) };
        parts.iter().map(part).collect()
    }

    pub(crate) fn field(&mut self, field: &Field) -> SavedField {
        let operands = field.operands.iter().map(|FieldOperand { source, place }| SavedOperand {
            value: match source {
                FieldSource::Memory(held) => Some(self.value(held)),
                FieldSource::Position => None,
            },
            place: self.place(place),
        });
        SavedField {
            sizes: field.sizes.to_vec(),
            operands: operands.collect(),
            program: self.program(&field.program),
        }
    }

    /// A field that is only used for its sizes.
    pub(crate) fn sizes_of(&mut self, field: &Field) -> SavedField {
        let program = SavedProgramText {
            instructions: vec![(SavedInstruction::Bool(false), crate::ops::code::RegisterKind::Bool)],
            result: 0,
        };
        SavedField { sizes: field.sizes.to_vec(), operands: Vec::new(), program }
    }

    pub(crate) fn place(&mut self, StridedPlace { offset, strides, table }: &StridedPlace) -> SavedPlace {
        let table = table.as_ref().map(|table| SavedLookup {
            number: self.table(table),
            start: table.start,
            strides: table.strides.to_vec(),
        });
        SavedPlace { offset: *offset, strides: strides.to_vec(), table }
    }

    fn table(&mut self, table: &Table) -> usize {
        let address = Arc::as_ptr(&table.offsets).cast::<()>().addr();
        if let Some(&number) = self.of_tables.get(&address) {
            return number;
        }
        let saved = match &table.source {
            None => SavedTable::Given(table.offsets.to_vec()),
            Some(source) => {
                let indices = source.indices.iter().map(|own| SavedIndex {
                    field: self.field(&own.index),
                    stride: own.stride,
                    size: own.size,
                });
                SavedTable::Computed { indices: indices.collect(), order: source.order.to_vec() }
            }
        };
        self.tables.push(saved);
        self.of_tables.insert(address, self.tables.len() - 1);
        self.tables.len() - 1
    }

    pub(crate) fn value(&mut self, held: &Arc<dyn Held>) -> usize {
        match held.node().and_then(|node| self.values.get(&node.id)) {
            Some(&number) => number,
            None => self.constant(held),
        }
    }

    fn constant(&mut self, held: &Arc<dyn Held>) -> usize {
        let address = Arc::as_ptr(held).cast::<()>().addr();
        if let Some(&number) = self.of_constants.get(&address) {
            return number;
        }
        let Some(dtype) = held.dtype() else {
            self.refuse("a constant with elements of a type that programs do not know cannot be saved");
            return CONSTANTS;
        };
        let number = self.new_constant(dtype, elements_of(held, dtype));
        self.of_constants.insert(address, number);
        number
    }

    /// Adds a constant, and returns its number.
    pub(crate) fn new_constant(&mut self, dtype: DType, elements: Vec<u8>) -> usize {
        self.constants.push(SavedConstant { dtype, elements: SavedBytes(elements) });
        CONSTANTS + self.constants.len() - 1
    }

    pub(crate) fn program(&mut self, program: &ScalarProgram) -> SavedProgramText {
        let operation =
            |(name, words): (&str, smallvec::SmallVec<[u64; 2]>)| SavedOperation(name.into(), words.to_vec());
        let instructions = program.instructions().iter().enumerate().map(|(at, instruction)| {
            let saved = match *instruction {
                Instruction::Load(at) => SavedInstruction::Load(at),
                Instruction::Position(at) => SavedInstruction::Position(at),
                Instruction::Constant(Number::Float(value)) => SavedInstruction::Float(value.to_bits()),
                Instruction::Constant(Number::Int(value)) => SavedInstruction::Int(value),
                Instruction::Constant(Number::Bool(value)) => SavedInstruction::Bool(value),
                Instruction::Unary(op, a) => SavedInstruction::Unary(operation(op.words()), a),
                Instruction::Binary(op, a, b) => SavedInstruction::Binary(operation(op.words()), a, b),
                Instruction::Select(cond, a, b) => SavedInstruction::Select(cond, a, b),
                Instruction::Cast(to, a) => SavedInstruction::Cast(to, a),
                Instruction::Call(number, ..) => {
                    self.refused.get_or_insert(not_saved(program.functions().get(number).name()));
                    SavedInstruction::Bool(false)
                }
            };
            (saved, program.kind(at as u32))
        });
        SavedProgramText { instructions: instructions.collect(), result: program.result() }
    }

    /// Refuses to save the recording, for this reason.
    pub(crate) fn refuse(&mut self, what: &str) {
        self.refused.get_or_insert(Error::Saved { what: what.into() });
    }
}

fn not_saved(operation: &str) -> Error {
    Error::Saved {
        what: format!("`{operation}` calls a user's function, which saved programs and engines cannot run"),
    }
}

/// The axes, the operation and the origin of a recorded value.
#[derive(Clone, Debug)]
pub struct DescribedValue {
    /// The axes of the elements, from the outermost in memory to the innermost, if they are known.
    pub axes: Option<NodeAxes>,
    /// The operation that computed the value, or `"input"`.
    pub operation: &'static str,
    /// The location of the operation in the user's program.
    pub origin: Origin,
}

impl Recording {
    /// The steps that depend on an input. The result of any other step is saved as a constant.
    fn steps_of_inputs(&self) -> Vec<&Arc<Node>> {
        let mut known: BTreeSet<u64> = self.inputs.iter().map(|node| node.id).collect();
        let mut depends = |node: &&Arc<Node>| {
            node.all_inputs().iter().any(|input| known.contains(&input.id)) && known.insert(node.id)
        };
        self.steps.iter().filter(|node| depends(node)).collect()
    }

    /// Describes the values of [`SavedRecording::inputs`], then those of [`SavedRecording::steps`].
    pub fn described(&self) -> Vec<DescribedValue> {
        let described = |node: &Arc<Node>| DescribedValue {
            axes: node.axes().map(NodeAxes::from_slice),
            operation: match &node.step {
                NodeStep::Variable(_) => "input",
                NodeStep::Parts(parts) => match parts.iter().any(|part| part.place.table.is_some()) {
                    true => "scatter",
                    false => "expression",
                },
                NodeStep::Rule(rule) => rule.name(),
            },
            origin: node.origin,
        };
        self.inputs.iter().chain(self.steps_of_inputs()).map(described).collect()
    }
}

impl SavedRecording {
    /// Numbers constants after the inputs, and steps after the constants.
    fn number_values(&mut self) {
        let (inputs, constants) = (self.inputs.len(), self.constants.len());
        let number = |own: &mut usize| {
            if *own >= CONSTANTS {
                *own = *own - CONSTANTS + inputs;
            } else if *own >= inputs {
                *own += constants;
            }
        };
        let of_field = |field: &mut SavedField| {
            field.operands.iter_mut().filter_map(|own| own.value.as_mut()).for_each(number);
        };
        for table in &mut self.tables {
            if let SavedTable::Computed { indices, .. } = table {
                indices.iter_mut().for_each(|own| of_field(&mut own.field));
            }
        }
        for step in &mut self.steps {
            match &mut step.work {
                SavedWork::Parts(parts) => parts.iter_mut().for_each(|part| of_field(&mut part.field)),
                SavedWork::Rule(rule) => {
                    rule.fields_mut().into_iter().for_each(of_field);
                    if let SavedRule::Placed { around, .. } = &mut **rule {
                        number(around);
                    }
                }
            }
        }
        self.outputs.iter_mut().for_each(number);
    }
}

/// Converts an element to bytes and back.
pub(super) trait SavedElement: Element {
    /// The size of a saved element in bytes.
    const BYTES: usize;
    fn write(self, to: &mut Vec<u8>);
    /// `None` if the bytes are not a valid element.
    fn read(bytes: &[u8]) -> Option<Self>;
}

macro_rules! elements {
    ($($t:ty as $bytes:ty,)*) => {$(
        impl SavedElement for $t {
            const BYTES: usize = size_of::<$bytes>();

            #[allow(clippy::unnecessary_cast)]
            fn write(self, to: &mut Vec<u8>) {
                to.extend_from_slice(&(self as $bytes).to_le_bytes());
            }

            #[allow(clippy::useless_conversion)]
            fn read(bytes: &[u8]) -> Option<Self> {
                <$bytes>::from_le_bytes(bytes.try_into().ok()?).try_into().ok()
            }
        }
    )*};
}

elements! {
    f32 as f32, f64 as f64, i8 as i8, i16 as i16, i32 as i32, i64 as i64, isize as i64, u8 as u8, u16 as u16, u32 as u32, u64 as u64, usize as u64,
}

#[cfg(feature = "half")]
macro_rules! halves {
    ($($t:ty,)*) => {$(
        impl SavedElement for $t {
            const BYTES: usize = 2;

            fn write(self, to: &mut Vec<u8>) {
                to.extend_from_slice(&self.to_le_bytes());
            }

            fn read(bytes: &[u8]) -> Option<Self> {
                Some(<$t>::from_le_bytes(bytes.try_into().ok()?))
            }
        }
    )*};
}
#[cfg(feature = "half")]
halves!(half::f16, half::bf16,);

impl SavedElement for bool {
    const BYTES: usize = 1;

    fn write(self, to: &mut Vec<u8>) {
        to.push(self.into());
    }

    fn read(bytes: &[u8]) -> Option<Self> {
        match bytes {
            [0] => Some(false),
            [1] => Some(true),
            _ => None,
        }
    }
}

/// The bytes of one element, if programs support the type.
pub(crate) fn element_bytes(element: &dyn Any) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    macro_rules! find {
        ($($name:ident $t:ty,)*) => {{
            $(if let Some(&element) = element.downcast_ref::<$t>() {
                element.write(&mut bytes);
                return Some(bytes);
            })*
        }};
    }
    each_dtype!(find!());
    None
}

/// The bytes of all elements, little-endian. `isize` and `usize` have eight bytes.
///
/// # Panics
///
/// If programs do not know the type.
pub fn bytes_of(held: &Arc<dyn Held>) -> Vec<u8> {
    elements_of(held, held.dtype().expect("programs know the type"))
}

/// The elements with these bytes, if programs support the type and the bytes are valid.
pub fn elements_of_bytes<T: Element>(bytes: &[u8]) -> Option<Vec<T>> {
    fn of<S: SavedElement>(bytes: &[u8]) -> Option<Box<dyn Any>> {
        let elements = bytes.chunks(S::BYTES).map(S::read).collect::<Option<Vec<S>>>()?;
        Some(Box::new(elements))
    }
    let elements = match_dtype!(DType::of::<T>()?, E => of::<E>(bytes))?;
    elements.downcast::<Vec<T>>().ok().map(|elements| *elements)
}

fn elements_of(held: &Arc<dyn Held>, dtype: DType) -> Vec<u8> {
    fn of<T: SavedElement>(held: &Arc<dyn Held>) -> Vec<u8> {
        let buffer = Buffer::<T>::of_held(held).expect("the memory has its type");
        let mut bytes = Vec::with_capacity(buffer.len() * T::BYTES);
        buffer.iter().for_each(|&element| element.write(&mut bytes));
        bytes
    }
    match_dtype!(dtype, T => of::<T>(held))
}

/// The bytes of the elements around parts, with zeros where parts are written. With `alike`, the
/// zeros are replaced by the first of the other elements, if there are any; and if `around` is a
/// single element that stands for equal ones, only this element is returned.
pub(super) fn elements_around(Placed { parts, around, len, dtype }: &Placed, alike: bool) -> Vec<u8> {
    let mut bytes = elements_of(around, *dtype);
    let width = bytes.len().checked_div(around.len()).unwrap_or(0);
    if around.len() != *len {
        if alike {
            return bytes;
        }
        bytes = bytes.repeat(*len);
    }
    let mut is_written = vec![false; *len];
    for Part { field, place } in parts {
        if field.sizes.contains(&0) {
            continue;
        }
        let mut at: PerLoop<usize> = PerLoop::from_elem(0, field.sizes.len());
        loop {
            is_written[place.position(&at)] = true;
            let Some(axis) = (0..at.len()).rev().find(|&axis| at[axis] + 1 < field.sizes[axis]) else {
                break;
            };
            at[axis] += 1;
            at[axis + 1..].fill(0);
        }
    }
    let other = is_written.iter().position(|is_written| !is_written).filter(|_| alike);
    let fill = other.map_or_else(|| vec![0; width], |at| bytes[at * width..][..width].to_vec());
    for (own, is_written) in bytes.chunks_exact_mut(width.max(1)).zip(is_written) {
        if is_written {
            own.copy_from_slice(&fill);
        }
    }
    bytes
}
