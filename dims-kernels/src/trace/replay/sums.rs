//! Prepared sums: contractions and sums over loops, planned once.

use super::draft::Draft;
use super::memory::{CallValues, OperandMemory, filled, result_of, written};
use crate::error::Error;
use crate::load::any::AnyElements;
use crate::loops::modes::told_all;
use crate::loops::nest::{Nest, NestParts, Row};
use crate::loops::rows::Rows;
use crate::loops::steps::{Loops, PlanStep, note};
use crate::machine::threads;
use crate::memory::axes::Axis;
use crate::memory::elements::Elements;
use crate::ops::code::DType;
use crate::program::ScalarProgram;
use crate::program::interpreter::{Interpreted, OperandSource, ProgramOutput, Slots};
use crate::reduce::input::ReduceInput;
use crate::reduce::{Reducer, reduce, reducers};
use crate::scalar::{Element, Real};
use crate::trace::compute::{SumLoops, covers, kept, rows};
use crate::trace::products::{PlannedContraction, factors, has_nan};
use crate::trace::{FieldOperand, FieldSource, Held, Node, NodeStep, Part, StridedPlace};
use alloc::boxed::Box;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::iter::once_with;
use core::marker::PhantomData;
use smallvec::SmallVec;

/// The plan of a step that is one sum.
pub(super) trait PlannedSum: Send + Sync {
    /// Computes the elements, in the cell's memory if it is free. `None` if, after all, the step
    /// must run as recorded.
    ///
    /// # Safety
    ///
    /// The value in each slot that is read has the type and the length of the input or step that
    /// the slot was made for.
    unsafe fn run(
        &self,
        values: &CallValues,
        cell: Option<Arc<dyn Held>>,
    ) -> Result<Option<Arc<dyn Held>>, Error>;
}

/// The plan of a step, if it is a sum of `f32`s or `f64`s that writes all elements and reads none
/// through a table. Even so, some contractions have no plan. `slot` returns the slot of a value.
pub(super) fn planned(
    node: &Node,
    draft: &Draft,
    slot: &dyn Fn(u64) -> usize,
) -> Option<Box<dyn PlannedSum>> {
    match node.dtype {
        DType::F32 => planned_as::<f32>(node, draft, slot),
        DType::F64 => planned_as::<f64>(node, draft, slot),
        _ => None,
    }
}

fn planned_as<T: ProgramOutput + Real>(
    node: &Node,
    draft: &Draft,
    slot: &dyn Fn(u64) -> usize,
) -> Option<Box<dyn PlannedSum>> {
    let NodeStep::Parts(parts) = &node.step else { return None };
    let [Part { field, place }] = &parts[..] else { return None };
    let has_table = |own: &FieldOperand| own.place.table.is_some();
    if field.sizes.contains(&0)
        || !covers(place, &field.sizes, node.len)
        || field.operands.iter().any(has_table)
    {
        return None;
    }
    let SumLoops { order, reduced, count, is_whole } = SumLoops::new(field, place);
    if !is_whole || reduced.is_empty() {
        return None;
    }
    let operand = |own: &FieldOperand| SumOperand::new(own, &field.sizes, draft, slot);
    if let Some((fields, scale)) = factors::<T>(field, &order, &reduced) {
        let plan = PlannedContraction::new::<T>(field, &order, &reduced, &(fields, scale * count))?;
        let operands = [operand(&plan.operands[0]), operand(&plan.operands[1])];
        return Some(Box::new(SumOfProducts::<T> { plan, operands, len: node.len, element: PhantomData }));
    }
    let scaled = (count != 1.0).then(|| field.scaled(count));
    let field = scaled.as_ref().unwrap_or(field);
    let volume = |axes: &[usize]| axes.iter().map(|&axis| field.sizes[axis]).product::<usize>();
    let (len, count) = (volume(&order), volume(&reduced));
    let in_memory = field.plain::<T>().map(|(_, own)| own);
    let rows = match in_memory {
        Some(own) => {
            let mut rows = Rows::new(field.sizes.len());
            rows.push().copy_from_slice(&own.place.strides);
            rows
        }
        None => rows(field),
    };
    let nest = Nest::reduce(&field.sizes, &order, &reduced, &rows);
    let input = match in_memory {
        Some(own) => SumInput::Memory(operand(own)),
        None => SumInput::Program {
            program: Arc::clone(&field.program),
            slots: Slots::new(&field.program, core::iter::once(field.program.result())),
            operands: field.operands.iter().map(operand).collect(),
        },
    };
    Some(Box::new(SumOverLoops::<T> { nest, input, len, count, element: PhantomData }))
}

/// The order in which a sum adds its elements, if it can run together with maps, in their loops.
#[derive(Clone)]
pub(super) struct SumOrder {
    /// The loops, in the order in which the elements of the maps are contiguous.
    pub(super) loops: Vec<usize>,
    /// The number of positions of all loops.
    pub(super) positions: usize,
    /// The loops of the sum. The last row numbers the positions, in the order of `loops`.
    pub(super) nest: Nest,
    /// The number of rows before the last one.
    others: usize,
    /// The number of sums.
    pub(super) len: usize,
    /// The number of elements in each sum.
    pub(super) count: usize,
}

impl SumOrder {
    /// The order in which a step adds its elements, if the step is a sum (not a contraction) of
    /// `f32`s or `f64`s that a program computes, and if maps can run in this order.
    pub(super) fn of(node: &Node) -> Option<Self> {
        match node.dtype {
            DType::F32 => Self::of_type::<f32>(node),
            DType::F64 => Self::of_type::<f64>(node),
            _ => None,
        }
    }

    fn of_type<T: ProgramOutput + Real>(node: &Node) -> Option<Self> {
        let NodeStep::Parts(parts) = &node.step else { return None };
        let [Part { field, place }] = &parts[..] else { return None };
        let sizes = &field.sizes[..];
        let has_table = |own: &FieldOperand| own.place.table.is_some();
        if sizes.contains(&0)
            || !covers(place, sizes, node.len)
            || field.operands.iter().any(has_table)
            || field.kind() != T::KIND
            || field.plain::<T>().is_some()
        {
            return None;
        }
        let SumLoops { order, reduced, count, is_whole } = SumLoops::new(field, place);
        if !is_whole || reduced.is_empty() || count != 1.0 || factors::<T>(field, &order, &reduced).is_some()
        {
            return None;
        }
        let volume = |axes: &[usize]| axes.iter().map(|&axis| sizes[axis]).product::<usize>();
        let positions = volume(&order) * volume(&reduced);
        let loops = field.operands.iter().find_map(|own| {
            let loops = kept(&own.place, sizes);
            (own.place.table.is_none() && volume(&loops) == positions).then(|| loops.to_vec())
        })?;
        let mut rows = rows(field);
        let alone = Nest::reduce(sizes, &order, &reduced, &rows);
        rows.push().copy_from_slice(&StridedPlace::contiguous(sizes, &loops).strides);
        let nest = Nest::reduce(sizes, &order, &reduced, &rows);
        let others = field.operands.len();
        // If the row of position numbers changed the loops, elements would be added in another
        // order.
        let is_same = (alone.outer, alone.inner_kept, &alone.sizes[..])
            == (nest.outer, nest.inner_kept, &nest.sizes[..])
            && (0..others).all(|at| alone.strides_of(at) == nest.strides_of(at))
            && nest.strides_of(others).last() == Some(&1);
        is_same.then(|| SumOrder {
            positions,
            loops,
            nest,
            others,
            len: volume(&order),
            count: volume(&reduced),
        })
    }

    /// The row that numbers the positions of the loops.
    pub(super) fn numbers<'n>(&self, nest: &'n Nest) -> Row<'n> {
        let mut rows = nest.operands();
        (0..self.others).for_each(|_| _ = rows.next_row());
        rows.next_row()
    }

    pub(super) fn note<T: Element>(&self, expression: &dyn Fn() -> String) {
        note(|| PlanStep::Reduce {
            reduction: "sum",
            expression: expression(),
            loops: Loops::new::<T>(&self.nest, self.len, threads::parts(self.positions)),
            count: self.count,
        });
    }
}

struct SumOperand {
    memory: OperandMemory,
    dtype: DType,
    /// The axes along the loops.
    axes: SmallVec<[Axis; 6]>,
    /// The index of the element at the origin of the loops.
    offset: isize,
}

impl SumOperand {
    fn new(own: &FieldOperand, sizes: &[usize], draft: &Draft, slot: &dyn Fn(u64) -> usize) -> Self {
        let meaning = match &own.source {
            FieldSource::Position => None,
            FieldSource::Memory(held) => {
                own.place.assert_within(sizes, held.len());
                Some(draft.meaning(held))
            }
        };
        let axes = sizes.iter().zip(&own.place.strides).map(|(&size, &stride)| Axis::new(size, stride));
        SumOperand {
            memory: OperandMemory::new(meaning, slot),
            dtype: own.source.dtype(),
            axes: axes.collect(),
            offset: own.place.offset,
        }
    }

    /// The address of the element at the origin of the loops.
    fn start<T>(&self, values: &CallValues) -> *const T {
        let start = self.memory.start(values).expect("the operand is in memory");
        start.cast::<T>().wrapping_offset(self.offset)
    }
}

struct SumOfProducts<T> {
    plan: PlannedContraction,
    operands: [SumOperand; 2],
    len: usize,
    element: PhantomData<T>,
}

impl<T: ProgramOutput + Real> PlannedSum for SumOfProducts<T> {
    unsafe fn run(
        &self,
        values: &CallValues,
        cell: Option<Arc<dyn Held>>,
    ) -> Result<Option<Arc<dyn Held>>, Error> {
        let starts = [self.operands[0].start::<T>(values), self.operands[1].start(values)];
        // SAFETY: the plan was made for this type and these operands. Their elements are within
        // their memory: `SumOperand::new` asserted this for the recorded lengths, and the caller
        // promises that the lengths are the same.
        let (held, is_given) = filled(cell, self.len, |to| unsafe { self.plan.run(starts, to) })?;
        // SAFETY: the elements were just written, and are of this type.
        if self.plan.has_chain && has_nan(unsafe { elements::<T>(&held) }) {
            return Ok(None);
        }
        told_all(once_with(|| result_of::<T>(&held, is_given)));
        Ok(Some(held))
    }
}

struct SumOverLoops<T> {
    nest: Nest,
    input: SumInput,
    len: usize,
    /// The number of elements in each sum.
    count: usize,
    element: PhantomData<T>,
}

enum SumInput {
    /// Elements in memory.
    Memory(SumOperand),
    /// The results of a program.
    Program { program: Arc<ScalarProgram>, slots: Slots, operands: Vec<SumOperand> },
}

impl<T: ProgramOutput + Real> PlannedSum for SumOverLoops<T> {
    unsafe fn run(
        &self,
        values: &CallValues,
        cell: Option<Arc<dyn Held>>,
    ) -> Result<Option<Arc<dyn Held>>, Error> {
        let &SumOverLoops { ref nest, len, count, .. } = self;
        match &self.input {
            SumInput::Memory(operand) => {
                let work = nest.positions();
                self.note(work, &|| "x0".into());
                // SAFETY: the operand's elements are within its memory: `SumOperand::new` asserted
                // this for the recorded length, and the caller promises that the length is the
                // same.
                let elements = unsafe { Elements::new(operand.start::<T>(values), &operand.axes, &[]) };
                // SAFETY: the row of the nest has the strides of the operand.
                let input = unsafe { ReduceInput::new(elements, nest, work, count) };
                written(cell, len, |to| reducers::Sum::ONCE.reduce_memory(input, to)).map(Some)
            }
            SumInput::Program { program, slots, operands } => {
                let source = |own: &SumOperand| match own.memory.start(values) {
                    None => OperandSource::position(),
                    // SAFETY: all positions are within the memory: `SumOperand::new` asserted this
                    // for the recorded length, and the caller promises that the length is the same.
                    // The rows of the nest have the strides of the operands.
                    Some(start) => unsafe { OperandSource::new(start, own.dtype, None) },
                };
                let sources: SmallVec<[OperandSource; 6]> = operands.iter().map(source).collect();
                let work = len.saturating_mul(count);
                self.note(work, &|| program.describe());
                let computed = |nest| {
                    let mut rows = Nest::operands(nest);
                    // SAFETY: the program loads the operands of the sum. The sources are their
                    // memory, and the nest has their rows.
                    AnyElements::computed(unsafe {
                        Interpreted::<T>::with_slots(program, slots, &sources, &mut rows)
                    })
                };
                let mut parts = NestParts::new();
                written(cell, len, |to| {
                    reduce(nest, &mut parts, &computed, work, to, count, reducers::Sum::ONCE)
                })
                .map(Some)
            }
        }
    }
}

impl<T: ProgramOutput> SumOverLoops<T> {
    fn note(&self, work: usize, expression: &dyn Fn() -> String) {
        note(|| PlanStep::Reduce {
            reduction: "sum",
            expression: expression(),
            loops: Loops::new::<T>(&self.nest, self.len, threads::parts(work)),
            count: self.count,
        });
    }
}

/// The elements of a value.
///
/// # Safety
///
/// They are of type `T`.
unsafe fn elements<T>(held: &Arc<dyn Held>) -> &[T] {
    // SAFETY: the caller's promise. Shared memory is not changed while it is borrowed.
    unsafe { core::slice::from_raw_parts(held.start().cast(), held.len()) }
}
