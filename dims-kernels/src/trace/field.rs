//! Fields: a program over operands along loops, which has an element for each position.

use crate::ops::code::Kind;
use crate::program::derivative::pulled_back;
use crate::program::{Builder, Program, Register};
use crate::trace::{Held, Loops, Node, Operand, Part, Place, Source};
use alloc::sync::Arc;
use alloc::vec::Vec;

/// An element for each position of some loops, computed by a program.
#[derive(Clone)]
pub struct Field {
    /// How often each loop runs.
    pub sizes: Loops<usize>,
    /// The program.
    pub program: Arc<Program>,
    /// Of what.
    pub operands: Vec<Operand>,
    /// What the loops are called, if steps are explained.
    pub names: Option<Arc<[&'static str]>>,
}

/// The number of a cotangent, before it has a place among the operands.
const COTANGENT: u32 = u32::MAX;

impl Field {
    /// Elements as they are.
    pub fn of(sizes: &[usize], source: Source, place: Place) -> Self {
        let mut build = Builder::new();
        let register = build.load(0, source.dtype());
        Field {
            sizes: sizes.into(),
            program: Arc::new(build.finish(register)),
            operands: vec![Operand { source, place }],
            names: None,
        }
    }

    /// The elements of shared memory, which lie at a place.
    pub fn held(sizes: &[usize], held: &Arc<dyn Held>, place: Place) -> Self {
        Field::of(sizes, Source::Memory(Arc::clone(held)), place)
    }

    /// The nodes that the field reads floats of, as gradients go through no others.
    pub fn nodes(&self) -> impl Iterator<Item = &Arc<Node>> {
        self.operands.iter().filter(|own| own.source.dtype().is_float()).filter_map(|own| own.source.node())
    }

    /// What the operands read.
    pub fn into_sources(self) -> impl Iterator<Item = Source> {
        self.operands.into_iter().map(|own| own.source)
    }

    /// The kind of the elements.
    pub fn kind(&self) -> Kind {
        self.program.kind(self.program.result())
    }

    /// A field of this one's elements and those of others over the same loops.
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

    /// The elements from a position on along a loop, which then runs `len` times.
    ///
    /// # Panics
    ///
    /// If there are fewer.
    pub fn slice(&self, axis: usize, from: usize, len: usize) -> Field {
        assert!(from + len <= self.sizes[axis], "the slice is within the loop");
        let mut field = self.clone();
        field.sizes[axis] = len;
        for Operand { place, .. } in &mut field.operands {
            place.offset += from as isize * place.strides[axis];
            if let Some(table) = &mut place.table {
                table.start += from as isize * table.strides[axis];
            }
        }
        field
    }

    /// The elements at the origin of all loops but these.
    pub fn only(&self, axes: &[usize]) -> Field {
        let mut field = self.clone();
        let others: Vec<usize> = (0..field.sizes.len()).filter(|axis| !axes.contains(axis)).collect();
        for &axis in &others {
            field.sizes[axis] = 1;
        }
        for Operand { place, .. } in &mut field.operands {
            for &axis in &others {
                place.strides[axis] = 0;
                if let Some(table) = &mut place.table {
                    table.strides[axis] = 0;
                }
            }
        }
        field
    }

    /// The parts of the gradient: what the cotangent, which has an element for each of the field's, adds to that of each traced operand.
    pub fn pull(&self, cotangent: &Field) -> Vec<(Arc<Node>, Part)> {
        self.pull_by(cotangent, &|_| true)
    }

    /// The same, for nodes that are asked for.
    pub(crate) fn pull_by(&self, cotangent: &Field, asked: &dyn Fn(u64) -> bool) -> Vec<(Arc<Node>, Part)> {
        let mut parts = Vec::new();
        for (number, operand) in self.operands.iter().enumerate() {
            let (true, Some(node)) = (operand.source.dtype().is_float(), operand.source.node()) else {
                continue;
            };
            if !asked(node.id) {
                continue;
            }
            let Some(program) = pulled_back(&self.program, number as u32, COTANGENT) else { continue };
            let mut merged = Merged::new(&self.sizes);
            merged.names.clone_from(&self.names);
            let own: Vec<u32> = self.operands.iter().map(|own| merged.operand(own)).collect();
            let given = merged.add(cotangent);
            let mut build = core::mem::take(&mut merged.build);
            let result = build.inline(&program, &mut |build, number, kind| {
                Some(if number == COTANGENT {
                    build.cast_kind(kind, given)
                } else {
                    build.load_as(own[number as usize], kind)
                })
            });
            merged.build = build;
            parts.push((
                Arc::clone(node),
                Part { field: merged.finish(result), place: operand.place.clone() },
            ));
        }
        parts
    }
}

/// Fields over the same loops, put together: equal operands are one.
struct Merged {
    sizes: Loops<usize>,
    build: Builder,
    operands: Vec<Operand>,
    names: Option<Arc<[&'static str]>>,
}

impl Merged {
    fn new(sizes: &[usize]) -> Self {
        Merged { sizes: sizes.into(), build: Builder::new(), operands: Vec::new(), names: None }
    }

    /// The number of an operand.
    fn operand(&mut self, operand: &Operand) -> u32 {
        let same = |own: &Operand| own.source.is_same(&operand.source) && own.place.is_same(&operand.place);
        let at = self.operands.iter().position(same).unwrap_or_else(|| {
            self.operands.push(operand.clone());
            self.operands.len() - 1
        });
        at as u32
    }

    /// The elements of a field.
    fn add(&mut self, field: &Field) -> Register {
        assert_eq!(self.sizes, field.sizes, "fields are over the same loops");
        if self.names.is_none() {
            self.names.clone_from(&field.names);
        }
        let own: Vec<u32> = field.operands.iter().map(|own| self.operand(own)).collect();
        let program = (*field.program).clone().with_operands(|number| own[number as usize]);
        self.build.inline(&program, &mut |_, _, _| None)
    }

    /// The field that yields this value, without operands that it does not read.
    fn finish(self, result: Register) -> Field {
        let program = self.build.finish(result);
        let mut numbers = vec![0; self.operands.len()];
        let mut operands = Vec::new();
        for (at, operand) in self.operands.into_iter().enumerate() {
            if program.reads(at as u32) {
                numbers[at] = operands.len() as u32;
                operands.push(operand);
            }
        }
        let program = Arc::new(program.with_operands(|number| numbers[number as usize]));
        Field { sizes: self.sizes, program, operands, names: self.names }
    }
}

impl Source {
    /// Whether these are the same elements.
    fn is_same(&self, other: &Source) -> bool {
        match (self, other) {
            (Source::Memory(a), Source::Memory(b)) => core::ptr::addr_eq(Arc::as_ptr(a), Arc::as_ptr(b)),
            (Source::Position, Source::Position) => true,
            _ => false,
        }
    }
}
