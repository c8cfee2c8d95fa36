//! Recordings as calls run them: a flat list of steps, which read and write slots.

use super::draft::{Draft, Meaning};
use super::fuse::{Unit, units};
use super::loops::FusedLoops;
use super::{Recording, assert_fits, plain};
use crate::error::Error;
use crate::trace::{Held, Node};
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::sync::Arc;
use alloc::vec::Vec;

/// What calls of a recording run.
pub(super) struct Prepared {
    steps: Vec<PreparedStep>,
    /// How many values a call has at most; the first are the inputs.
    slots: usize,
    /// Where the values of recorded steps are.
    places: BTreeMap<u64, ValuePlace>,
    outputs: Vec<ValuePlace>,
}

/// Where a value is.
#[derive(Clone)]
enum ValuePlace {
    Slot(usize),
    Constant(Arc<dyn Held>),
}

struct PreparedStep {
    work: PreparedWork,
    /// The slots whose values nobody reads afterwards.
    freed: Vec<usize>,
}

enum PreparedWork {
    /// Maps over the same loops.
    Loops(FusedLoops),
    /// A step by itself, and the slot of its value.
    Alone(Arc<Node>, usize),
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
            // (What runs only for others that are not read runs no more.)
            if results.is_empty() {
                continue;
            }
            steps.push(match unit {
                Unit::Step(node) => {
                    let (slot, reads) = (slot_of[&node.id], draft.reads(&node));
                    let reads = reads.iter().map(|number| slot_of[number]).collect();
                    (PreparedWork::Alone(node, slot), reads)
                }
                Unit::Group(group) => {
                    let loops = FusedLoops::new(group, &results, &|number| slot_of[&number]);
                    let reads = loops.reads();
                    (PreparedWork::Loops(loops), reads)
                }
            });
        }
        let outputs: Vec<ValuePlace> =
            outputs.iter().map(|meaning| place(meaning).expect("outputs have slots")).collect();
        // From the last step on: who reads a value first reads it last.
        let mut seen: BTreeSet<usize> = outputs
            .iter()
            .filter_map(|own| match own {
                ValuePlace::Slot(slot) => Some(*slot),
                ValuePlace::Constant(_) => None,
            })
            .collect();
        let mut prepared: Vec<PreparedStep> = Vec::with_capacity(steps.len());
        for (work, reads) in steps.into_iter().rev() {
            let reads: BTreeSet<usize> = reads;
            let freed = reads.into_iter().filter(|&slot| seen.insert(slot)).collect();
            prepared.push(PreparedStep { work, freed });
        }
        prepared.reverse();
        let of_values = slot_of.iter().map(|(&number, &slot)| (number, ValuePlace::Slot(slot)));
        let of_others =
            draft.replaced().filter_map(|(number, meaning)| place(meaning).map(|place| (number, place)));
        let places = of_values.chain(of_others).collect();
        Prepared { steps: prepared, slots, places, outputs }
    }

    /// Runs all steps with these inputs, which have the types and sizes of the recorded ones. Returns the outputs.
    pub(super) fn run(&self, inputs: Vec<Arc<dyn Held>>) -> Result<Vec<Arc<dyn Held>>, Error> {
        let mut values: Vec<Option<Arc<dyn Held>>> = inputs.into_iter().map(Some).collect();
        values.resize(self.slots, None);
        for PreparedStep { work, freed } in &self.steps {
            match work {
                // SAFETY: inputs have the types and lengths of the recorded ones, and so do the values of steps: `assert_fits` has seen it, and loops write results of the
                // type and the length of their steps.
                PreparedWork::Loops(loops) => unsafe { loops.run(&mut values) }?,
                PreparedWork::Alone(node, slot) => {
                    let value = plain::value_of(node, &|number| match self.places.get(&number)? {
                        ValuePlace::Slot(slot) => values[*slot].clone(),
                        ValuePlace::Constant(held) => Some(Arc::clone(held)),
                    })?;
                    assert_fits(node, &value);
                    values[*slot] = Some(value);
                }
            }
            freed.iter().for_each(|&slot| values[slot] = None);
        }
        let value = |place: &ValuePlace| match place {
            ValuePlace::Slot(slot) => Arc::clone(values[*slot].as_ref().expect("outputs are kept")),
            ValuePlace::Constant(held) => Arc::clone(held),
        };
        Ok(self.outputs.iter().map(value).collect())
    }
}
