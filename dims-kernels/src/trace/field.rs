//! Fields: programs over operands along loops.

use crate::memory::buffer::Buffer;
use crate::ops::code::{DType, RegisterKind};
use crate::program::builder::Builder;
use crate::program::{Instruction, Register, ScalarProgram};
use crate::trace::{FieldOperand, FieldSource, Held, Node, PerLoop, StridedPlace};
use alloc::sync::Arc;
use alloc::vec::Vec;
use smallvec::SmallVec;
use std::sync::OnceLock;

/// An element for each position of some loops, computed by a program from operands.
pub struct Field {
    /// The size of each loop.
    pub sizes: PerLoop<usize>,
    /// The program.
    pub program: Arc<ScalarProgram>,
    /// The operands.
    pub operands: Vec<FieldOperand>,
    /// The names of the loops, if a listener needs them.
    pub names: Option<Arc<[&'static str]>>,
}

impl Clone for Field {
    fn clone(&self) -> Self {
        Field {
            sizes: PerLoop::from_slice(&self.sizes),
            program: Arc::clone(&self.program),
            operands: self.operands.clone(),
            names: self.names.clone(),
        }
    }
}

impl Field {
    /// The memory of the first operand that has any.
    pub fn memory(&self) -> Option<&Arc<dyn Held>> {
        self.operands.iter().find_map(|own| match &own.source {
            FieldSource::Memory(held) => Some(held),
            FieldSource::Position => None,
        })
    }

    /// The [memory](Field::memory) as a buffer, if its elements are of type `T`.
    pub fn buffer<T: Send + Sync + 'static>(&self) -> Option<Buffer<T>> {
        Buffer::of_held(self.memory()?)
    }
}

impl Field {
    /// The elements of a source, unchanged.
    pub fn of(sizes: &[usize], source: FieldSource, place: StridedPlace) -> Self {
        Field {
            sizes: PerLoop::from_slice(sizes),
            program: loaded(source.dtype()),
            operands: vec![FieldOperand { source, place }],
            names: None,
        }
    }

    /// Elements of shared memory at a place.
    pub fn held(sizes: &[usize], held: &Arc<dyn Held>, place: StridedPlace) -> Self {
        Field::of(sizes, FieldSource::Memory(Arc::clone(held)), place)
    }

    /// Elements of a type that programs do not know, for a rule that reads the memory itself. The
    /// field's program yields zeros.
    pub fn unknown(sizes: &[usize], held: &Arc<dyn Held>, place: StridedPlace) -> Self {
        let mut build = Builder::new();
        let zero = build.float(0.0, RegisterKind::F64);
        Field {
            sizes: PerLoop::from_slice(sizes),
            program: Arc::new(build.finish(zero)),
            operands: vec![FieldOperand { source: FieldSource::Memory(Arc::clone(held)), place }],
            names: None,
        }
    }

    /// The same loops without operands, for a rule that only needs sizes and must not keep the
    /// operands in memory.
    pub(crate) fn loops_alone(&self) -> Self {
        let mut build = Builder::new();
        let zero = build.float(0.0, RegisterKind::F64);
        let (sizes, program) = (self.sizes.clone(), Arc::new(build.finish(zero)));
        Field { sizes, program, operands: Vec::new(), names: self.names.clone() }
    }

    /// The number 1 at each position.
    pub(super) fn ones(sizes: &[usize], kind: RegisterKind) -> Self {
        let mut build = Builder::new();
        let one = build.float(1.0, kind);
        let (sizes, program) = (PerLoop::from_slice(sizes), Arc::new(build.finish(one)));
        Field { sizes, program, operands: Vec::new(), names: None }
    }

    /// The nodes of the floats that the field reads. Gradients only flow through floats.
    pub fn nodes(&self) -> impl Iterator<Item = &Arc<Node>> {
        self.operands.iter().filter(|own| own.source.is_float()).filter_map(|own| own.source.node())
    }

    /// All nodes that the field reads, including those of computed places.
    pub(crate) fn all_nodes(&self) -> Vec<&Arc<Node>> {
        let mut nodes: Vec<&Arc<Node>> = Vec::new();
        for FieldOperand { source, place } in &self.operands {
            nodes.extend(source.node());
            if let Some(source) = place.table.as_ref().and_then(|table| table.source.as_ref()) {
                nodes.extend(source.indices.iter().flat_map(|index| index.index.all_nodes()));
            }
        }
        nodes
    }

    /// Whether a program knows the elements that the field reads.
    pub fn is_traced(&self) -> bool {
        self.nodes().next().is_some() || self.is_recorded()
    }

    /// Whether the field depends on inputs of a function that is being recorded to run again.
    pub fn is_recorded(&self) -> bool {
        self.all_nodes().iter().any(|node| node.is_recorded())
    }

    /// Whether the field depends on an input without elements, and so is not computed.
    pub fn is_hollow(&self) -> bool {
        self.all_nodes().iter().any(|node| node.is_hollow())
    }

    /// Whether the program reads all operands, and all are distinct.
    pub(crate) fn has_distinct_operands(&self) -> bool {
        self.operands.iter().enumerate().all(|(at, own)| {
            let same =
                |other: &FieldOperand| own.source.is_same(&other.source) && own.place.is_same(&other.place);
            self.program.reads(at as u32) && !self.operands[..at].iter().any(same)
        })
    }

    /// Removes all operands, and returns their sources.
    pub fn take_sources(&mut self) -> Vec<FieldSource> {
        let mut sources = Vec::new();
        let mut open = core::mem::take(&mut self.operands);
        while let Some(FieldOperand { source, place }) = open.pop() {
            sources.push(source);
            // The fields that compute offsets are taken apart as well, if nothing else holds them.
            let table = place.table.and_then(|table| table.source).and_then(Arc::into_inner);
            open.extend(table.into_iter().flat_map(|own| own.indices).flat_map(|own| own.index.operands));
        }
        sources
    }

    /// The kind of the elements.
    pub fn kind(&self) -> RegisterKind {
        self.program.kind(self.program.result())
    }

    /// Whether the elements are unsigned integers that fill a register.
    pub(crate) fn is_unsigned(&self) -> bool {
        let load = |operand: u32| self.operands[operand as usize].source.dtype().is_unsigned_word();
        self.program.is_unsigned(self.program.result(), load)
    }

    /// The field without unused and duplicate operands.
    pub(super) fn with_distinct_operands(&self) -> Field {
        let mut merged = Merged { build: Builder::exact(), ..Merged::new(&self.sizes) };
        let value = merged.add(self);
        merged.finish(value)
    }

    /// A field computed from this one and others over the same loops.
    pub fn map<const N: usize>(
        &self,
        others: [&Field; N],
        f: impl FnOnce(&mut Builder, Register, [Register; N]) -> Register,
    ) -> Field {
        let mut merged = Merged::new(&self.sizes);
        let first = merged.add(self);
        let rest = others.map(|other| merged.add(other));
        let result = f(&mut merged.build, first, rest);
        merged.finish(result)
    }

    /// `len` elements along a loop, starting at a position. The size of the loop becomes `len`.
    ///
    /// # Panics
    ///
    /// If the loop has fewer than `from + len` positions.
    pub fn slice(&self, axis: usize, from: usize, len: usize) -> Field {
        assert!(from + len <= self.sizes[axis], "the slice is within the loop");
        let mut field = self.clone();
        field.sizes[axis] = len;
        for FieldOperand { place, .. } in &mut field.operands {
            place.offset += from as isize * place.strides[axis];
            if let Some(table) = &mut place.table {
                table.start += from as isize * table.strides[axis];
            }
        }
        field
    }

    /// The elements at the origin of all loops except `axes`.
    pub fn only(&self, axes: &[usize]) -> Field {
        let mut field = self.clone();
        let others: Vec<usize> = (0..field.sizes.len()).filter(|axis| !axes.contains(axis)).collect();
        for &axis in &others {
            field.sizes[axis] = 1;
        }
        for FieldOperand { place, .. } in &mut field.operands {
            for &axis in &others {
                place.strides[axis] = 0;
                if let Some(table) = &mut place.table {
                    table.strides[axis] = 0;
                }
            }
        }
        field
    }

    /// The field whose result is another value of the program, without unused operands.
    pub(crate) fn with_result(&self, value: Register) -> Field {
        if let Instruction::Load(number) = self.program.instruction(value) {
            let FieldOperand { source, place } = self.operands[number as usize].clone();
            return Field::of(&self.sizes, source, place);
        }
        let merged = Merged {
            sizes: self.sizes.clone(),
            build: Builder::from_program((*self.program).clone()),
            operands: self.operands.clone(),
            names: self.names.clone(),
        };
        merged.finish_all(&[value]).0
    }
}

/// The program that loads an element of this type.
fn loaded(dtype: DType) -> Arc<ScalarProgram> {
    let load = || {
        let mut build = Builder::new();
        let register = build.load(0, dtype);
        Arc::new(build.finish(register))
    };
    // Most fields of gradients have these types and this program.
    static SINGLE: OnceLock<Arc<ScalarProgram>> = OnceLock::new();
    static DOUBLE: OnceLock<Arc<ScalarProgram>> = OnceLock::new();
    match dtype {
        DType::F32 => Arc::clone(SINGLE.get_or_init(load)),
        DType::F64 => Arc::clone(DOUBLE.get_or_init(load)),
        _ => load(),
    }
}

/// Merges fields over the same loops. Equal operands become one.
pub(super) struct Merged {
    sizes: PerLoop<usize>,
    pub(super) build: Builder,
    operands: Vec<FieldOperand>,
    names: Option<Arc<[&'static str]>>,
}

impl Merged {
    pub(super) fn new(sizes: &[usize]) -> Self {
        Merged { sizes: PerLoop::from_slice(sizes), build: Builder::new(), operands: Vec::new(), names: None }
    }

    /// The number of an operand. Adds it if it is new.
    fn operand(&mut self, operand: &FieldOperand) -> u32 {
        let same =
            |own: &FieldOperand| own.source.is_same(&operand.source) && own.place.is_same(&operand.place);
        let at = self.operands.iter().position(same).unwrap_or_else(|| {
            self.operands.push(operand.clone());
            self.operands.len() - 1
        });
        at as u32
    }

    /// Adds a field, and returns the register of its elements.
    pub(super) fn add(&mut self, field: &Field) -> Register {
        self.add_all(field)[field.program.result() as usize]
    }

    /// Adds a field, and returns the registers of all values of its program.
    pub(super) fn add_all(&mut self, field: &Field) -> Vec<Register> {
        assert_eq!(self.sizes, field.sizes, "fields are over the same loops");
        if self.names.is_none() {
            self.names.clone_from(&field.names);
        }
        let own: SmallVec<[u32; 8]> = field.operands.iter().map(|own| self.operand(own)).collect();
        self.build.inline_all(&field.program, &|number| own[number as usize])
    }

    /// The field that yields this value, without unused operands.
    pub(super) fn finish(self, result: Register) -> Field {
        self.finish_all(&[result]).0
    }

    /// The field that computes these values, without unused operands, and the registers of the
    /// values in its program.
    pub(super) fn finish_all(self, results: &[Register]) -> (Field, SmallVec<[Register; 4]>) {
        let (program, results) = self.build.finish_all(results);
        if (0..self.operands.len() as u32).all(|at| program.reads(at)) {
            let field = Field {
                sizes: self.sizes,
                program: Arc::new(program),
                operands: self.operands,
                names: self.names,
            };
            return (field, results);
        }
        let mut numbers: SmallVec<[u32; 8]> = SmallVec::from_elem(0, self.operands.len());
        let mut operands = Vec::with_capacity(self.operands.len());
        for (at, operand) in self.operands.into_iter().enumerate() {
            if program.reads(at as u32) {
                numbers[at] = operands.len() as u32;
                operands.push(operand);
            }
        }
        let program = Arc::new(program.with_operands(|number| numbers[number as usize]));
        (Field { sizes: self.sizes, program, operands, names: self.names }, results)
    }
}

impl FieldSource {
    /// Whether both sources are the same memory, or both are positions.
    fn is_same(&self, other: &FieldSource) -> bool {
        match (self, other) {
            (FieldSource::Memory(a), FieldSource::Memory(b)) => {
                core::ptr::addr_eq(Arc::as_ptr(a), Arc::as_ptr(b))
            }
            (FieldSource::Position, FieldSource::Position) => true,
            _ => false,
        }
    }
}
