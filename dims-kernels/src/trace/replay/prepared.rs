//! Prepared recordings: a flat list of steps that read and write slots.

use super::draft::{Draft, Meaning};
use super::fuse::{Unit, units};
use super::loops::FusedLoops;
use super::memory::{CallMemories, CallMemory, CallValues};
use super::plain::{operands_of, run_rule};
use super::sums::{PlannedSum, planned};
use super::{Recording, assert_fits, plain};
use crate::error::{Error, Origin};
use crate::loops::modes::RunsAgain;
use crate::loops::steps::is_listening;
use crate::ops::code::DType;
use crate::trace::rules::attention::AttentionPullBack;
use crate::trace::{Field, Held, Node, NodeStep, Rule};
use alloc::boxed::Box;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::sync::Arc;
use alloc::vec::Vec;

/// A recording in the form that calls run.
pub(super) struct Prepared {
    steps: Vec<PreparedStep>,
    /// The number of slots. The first ones are for the inputs.
    slots: usize,
    /// The number of cells for memory that results reuse.
    cells: usize,
    /// The locations of the values of inputs and recorded steps.
    places: BTreeMap<u64, ValuePlace>,
    outputs: Vec<PreparedOutput>,
    memories: CallMemories,
}

#[derive(Clone)]
enum ValuePlace {
    Slot(usize),
    Constant(Arc<dyn Held>),
}

impl ValuePlace {
    fn slot(&self) -> Option<usize> {
        match self {
            ValuePlace::Slot(slot) => Some(*slot),
            ValuePlace::Constant(_) => None,
        }
    }
}

struct PreparedOutput {
    place: ValuePlace,
    /// The cell whose memory the output is written into, if the caller provided memory.
    cell: Option<usize>,
}

struct PreparedStep {
    work: PreparedWork,
    /// The source location, if it is the same for all results.
    origin: Origin,
    /// The slots that are not read afterwards, and the cells for their memory.
    freed: Vec<(usize, Option<usize>)>,
}

enum PreparedWork {
    Loops(Box<FusedLoops>),
    Alone(AloneStep),
    /// A step that yields several gradients of attention, each as a value, and the slots of those
    /// that are read.
    Pieces(Arc<Node>, Vec<Option<usize>>),
}

/// A step that runs by itself.
struct AloneStep {
    node: Arc<Node>,
    slot: usize,
    /// The plan, if the step is a sum that can be planned.
    sum: Option<Box<dyn PlannedSum>>,
    /// The cell whose memory the planned sum uses if it is free.
    cell: Option<usize>,
}

impl Prepared {
    pub(super) fn new(recording: &Recording) -> Self {
        let draft = Draft::new(recording);
        let outputs: Vec<Meaning> = recording.outputs.iter().map(|held| draft.meaning(held)).collect();
        let read: Vec<u64> = outputs
            .iter()
            .filter_map(|meaning| match meaning {
                Meaning::Value(number) => Some(*number),
                Meaning::Constant(_) => None,
            })
            .collect();
        let units = units(&draft, &read);
        // Inputs first, then the values that are read outside of their groups.
        let mut slot_of: BTreeMap<u64, usize> = BTreeMap::new();
        let results = units.iter().flat_map(|(_, results)| results).map(|(node, _)| node.id);
        for number in recording.inputs.iter().map(|node| node.id).chain(results) {
            let slot = slot_of.len();
            slot_of.entry(number).or_insert(slot);
        }
        let slots = slot_of.len();
        let place = |meaning: &Meaning| match meaning {
            Meaning::Value(number) => slot_of.get(number).map(|&slot| ValuePlace::Slot(slot)),
            Meaning::Constant(held) => Some(ValuePlace::Constant(Arc::clone(held))),
        };
        let mut steps = Vec::with_capacity(units.len());
        for (unit, results) in units {
            // A group whose results are not read outside of it does not run.
            if results.is_empty() {
                continue;
            }
            let mut origins = results.iter().map(|(node, _)| node.origin);
            let first = origins.next().flatten();
            let origin = first.filter(|_| origins.all(|own| own == first));
            let (work, reads) = match unit {
                Unit::Step(node) if draft.in_pieces.contains_key(&node.id) => {
                    let reads = draft.reads(&node).iter().map(|number| slot_of[number]).collect();
                    let pieces = draft.in_pieces[&node.id].iter();
                    let slots = pieces.map(|piece| piece.as_ref().map(|piece| slot_of[&piece.id]));
                    (PreparedWork::Pieces(Arc::clone(&node), slots.collect()), reads)
                }
                Unit::Step(node) => {
                    let (slot, reads) = (slot_of[&node.id], draft.reads(&node));
                    let reads = reads.iter().map(|number| slot_of[number]).collect();
                    let sum = planned(&node, &draft, &|number| slot_of[&number]);
                    (PreparedWork::Alone(AloneStep { node, slot, sum, cell: None }), reads)
                }
                Unit::Maps(group) => {
                    let loops = FusedLoops::new(*group, &results, &|number| slot_of[&number]);
                    let reads = loops.reads();
                    (PreparedWork::Loops(Box::new(loops)), reads)
                }
            };
            steps.push((work, origin, reads));
        }
        let outputs: Vec<ValuePlace> =
            outputs.iter().map(|meaning| place(meaning).expect("outputs have slots")).collect();
        // Steps are visited from last to first, so the first one found to read a slot is its last
        // reader.
        let kept: BTreeSet<usize> = outputs.iter().filter_map(ValuePlace::slot).collect();
        let mut seen = kept.clone();
        let mut prepared: Vec<PreparedStep> = Vec::with_capacity(steps.len());
        for (mut work, origin, reads) in steps.into_iter().rev() {
            let reads: BTreeSet<usize> = reads;
            let freed: Vec<usize> = reads.into_iter().filter(|&slot| seen.insert(slot)).collect();
            if let PreparedWork::Loops(loops) = &mut work {
                loops
                    .overwrite(freed.iter().copied().filter(|&slot| slot < recording.inputs.len()).collect());
            }
            let freed = freed.into_iter().map(|slot| (slot, None)).collect();
            prepared.push(PreparedStep { work, origin, freed });
        }
        prepared.reverse();
        let (cells, of_kept) = assign_cells(&mut prepared, &kept);
        let with_cell = |place: ValuePlace| {
            let cell = place.slot().and_then(|slot| of_kept.get(&slot).copied());
            PreparedOutput { place, cell }
        };
        let outputs = outputs.into_iter().map(with_cell).collect();
        let of_values = slot_of.iter().map(|(&number, &slot)| (number, ValuePlace::Slot(slot)));
        let of_others =
            draft.replaced().filter_map(|(number, meaning)| place(meaning).map(|place| (number, place)));
        let places = of_values.chain(of_others).collect();
        Prepared { steps: prepared, slots, cells, places, outputs, memories: CallMemories::default() }
    }

    /// Runs all steps with these inputs, which have the types and sizes of the recorded ones.
    /// Returns the outputs. `room` is empty, or has memory for each output, in order.
    pub(super) fn run(
        &self,
        inputs: Vec<Arc<dyn Held>>,
        room: Vec<Arc<dyn Held>>,
    ) -> Result<Vec<Arc<dyn Held>>, Error> {
        let mut call = self.memories.take(self.slots, self.cells);
        for (held, cell) in
            room.into_iter().zip(&self.outputs).filter_map(|(held, own)| Some((held, own.cell?)))
        {
            call.cells[cell] = Some(held);
        }
        inputs.into_iter().zip(&mut call.values).for_each(|(input, value)| *value = Some(input));
        // After an error, the memory is dropped.
        self.steps.iter().try_for_each(|step| self.run_step(step, &mut call))?;
        let value = |own: &PreparedOutput| match &own.place {
            ValuePlace::Slot(slot) => Arc::clone(call.values[*slot].as_ref().expect("outputs are kept")),
            ValuePlace::Constant(held) => Arc::clone(held),
        };
        let outputs = self.outputs.iter().map(value).collect();
        // Unused memory from the caller is released, not kept for later calls.
        self.outputs.iter().filter_map(|own| own.cell).for_each(|cell| call.cells[cell] = None);
        self.memories.keep(call);
        Ok(outputs)
    }

    fn run_step(&self, step: &PreparedStep, call: &mut CallMemory) -> Result<(), Error> {
        let _place = is_listening().then(|| RunsAgain::at(step.origin));
        match &step.work {
            // SAFETY: values in slots have the types and lengths of the recorded ones.
            // `assert_fits` has checked the inputs and the values from `value_of`. The gradients of
            // attention are checked below. Loops and sums write results with the type and the
            // length of their steps.
            PreparedWork::Loops(loops) => unsafe { loops.run(call) }?,
            PreparedWork::Pieces(node, slots) => {
                let NodeStep::Rule(rule) = &node.step else { unreachable!("only rules are read in pieces") };
                let own = rule.as_any().and_then(|rule| rule.downcast_ref::<AttentionPullBack>());
                let own = own.expect("other steps are not read in pieces");
                let operands = self.operands_of(&**rule, &step.freed, &mut call.values);
                let all = operands.and_then(|operands| own.repeat_each(operands));
                let all = all.map_err(|error| error.at(node.origin))?;
                for ((value, slot), &len) in all.into_iter().zip(slots).zip(&own.lens) {
                    assert_eq!(
                        (value.dtype(), value.len()),
                        (Some(node.dtype), len),
                        "gradients have the recorded sizes"
                    );
                    if let Some(slot) = *slot {
                        call.values[slot] = Some(value);
                    }
                }
            }
            PreparedWork::Alone(AloneStep { node, slot, sum, cell }) => {
                let cell = cell.and_then(|cell| call.cells[cell].take());
                let value = match sum {
                    // SAFETY: likewise.
                    Some(sum) => unsafe { sum.run(&call.values, cell) }?,
                    None => None,
                };
                let value = match value {
                    Some(value) => value,
                    None => self.value_of(node, &step.freed, &mut call.values)?,
                };
                call.values[*slot] = Some(value);
            }
        }
        step.freed.iter().for_each(|&(slot, cell)| call.free(slot, cell));
        Ok(())
    }

    /// The value of a step that runs as it was recorded. A rule may overwrite values that are not
    /// read afterwards.
    fn value_of(
        &self,
        node: &Node,
        freed: &[(usize, Option<usize>)],
        values: &mut CallValues,
    ) -> Result<Arc<dyn Held>, Error> {
        let NodeStep::Rule(rule) = &node.step else {
            return plain::value_of(node, &|number| self.value(number, values));
        };
        let operands = self.operands_of(&**rule, freed, values);
        let value = operands.and_then(|operands| run_rule(node, &**rule, operands));
        let value = value.map_err(|error| error.at(node.origin))?;
        assert_fits(node, &value);
        Ok(value)
    }

    /// The value of an input or a step.
    fn value(&self, number: u64, values: &CallValues) -> Option<Arc<dyn Held>> {
        match self.places.get(&number)? {
            ValuePlace::Slot(slot) => values[*slot].clone(),
            ValuePlace::Constant(held) => Some(Arc::clone(held)),
        }
    }

    /// The operands of a rule. Removes from `values` those that are not read later and have no
    /// cell, so that the rule may overwrite them if nothing else holds them.
    fn operands_of(
        &self,
        rule: &dyn Rule,
        freed: &[(usize, Option<usize>)],
        values: &mut CallValues,
    ) -> Result<Vec<Field>, Error> {
        let operands = operands_of(rule, &|number| self.value(number, values))?;
        for &(slot, _) in freed.iter().filter(|(_, cell)| cell.is_none()) {
            values[slot] = None;
        }
        Ok(operands)
    }
}

/// Values of at least this many bytes have no cells: their memory goes to the pool, which all
/// programs share. Outputs have cells whatever their size.
const LARGE: usize = 256 << 10;

/// Assigns cells to results. A result can reuse the memory of a value with the same type and length
/// that is not read again. Returns the number of cells, and the cells of the slots in `kept`. Each
/// of those cells is used for one value only.
fn assign_cells(steps: &mut [PreparedStep], kept: &BTreeSet<usize>) -> (usize, BTreeMap<usize, usize>) {
    // The type, the length and the number of each free cell, and of the cell of each slot.
    let mut free: Vec<(DType, usize, usize)> = Vec::new();
    let mut of_slot: BTreeMap<usize, (DType, usize, usize)> = BTreeMap::new();
    let mut cells = 0;
    let mut of_kept = BTreeMap::new();
    for PreparedStep { work, freed, .. } in steps {
        let mut cell_for = |slot: usize, dtype: DType, len: usize| {
            if kept.contains(&slot) {
                cells += 1;
                of_kept.insert(slot, cells - 1);
                return Some(cells - 1);
            }
            if len.saturating_mul(dtype.bytes()) >= LARGE {
                return None;
            }
            let known = free.iter().position(|&(own, own_len, _)| (own, own_len) == (dtype, len));
            let (_, _, cell) = known.map_or_else(
                || {
                    cells += 1;
                    (dtype, len, cells - 1)
                },
                |at| free.swap_remove(at),
            );
            of_slot.insert(slot, (dtype, len, cell));
            Some(cell)
        };
        match work {
            PreparedWork::Loops(loops) => loops.set_cells(&mut cell_for),
            PreparedWork::Alone(AloneStep { node, slot, sum: Some(_), cell }) => {
                *cell = cell_for(*slot, node.dtype, node.len);
            }
            PreparedWork::Alone(_) | PreparedWork::Pieces(..) => {}
        }
        for (slot, cell) in freed {
            if let Some(own) = of_slot.remove(slot) {
                *cell = Some(own.2);
                free.push(own);
            }
        }
    }
    (cells, of_kept)
}
