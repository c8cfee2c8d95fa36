//! Running recorded steps again, with other inputs.
//!
//! A [`Recording`] is prepared once, at its first call:
//!
//! ```text
//! steps  ->  draft  ->  factors  ->  fuse  ->  prepared
//!            copies     factors      maps over  slots for values, and
//!            and equal  that sums    the same   the last use of each;
//!            steps      share        loops      plans of sums
//! ```
//!
//! A call binds the memory of its inputs and runs a flat list of steps. The loops of maps
//! ([`loops`]) are prepared, and so are the kernels and the strides of most products and sums
//! ([`sums`]). Results of maps may overwrite inputs of the call that are not read again. Other
//! small results of maps and prepared sums may be written into the memory of values that are not
//! read again, including values of earlier calls ([`memory`]).
//!
//! [`plain`] runs each step by itself, as it was recorded. Tests compare both ways bit by bit.

mod draft;
mod factors;
mod fuse;
mod loops;
mod memory;
mod merge;
mod plain;
mod prepared;
mod release;
mod sums;

pub(super) use plain::reduced_of;
pub(super) use release::Placeholder;

use crate::error::{Error, Origin};
use crate::trace::{Field, Held, Node, NodeStep};
use alloc::collections::BTreeMap;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::cell::Cell;
use prepared::Prepared;
use std::sync::OnceLock;

/// A function that was recorded: the steps that compute its results from its inputs.
pub struct Recording {
    pub(super) inputs: Vec<Arc<Node>>,
    /// The steps, each after those that it reads.
    pub(super) steps: Vec<Arc<Node>>,
    pub(super) outputs: Vec<Arc<dyn Held>>,
    /// The program that calls run. The first call prepares it.
    prepared: OnceLock<Prepared>,
}

/// A step that cannot be run again.
#[derive(Debug)]
pub struct NotRepeatable {
    /// The name of the operation.
    pub operation: &'static str,
    /// The source location in the user's program.
    pub origin: Origin,
}

impl Recording {
    /// Records the steps between inputs, which are variables, and outputs. Returns an error if a
    /// step cannot run again.
    pub fn new(inputs: Vec<Arc<Node>>, outputs: Vec<Arc<dyn Held>>) -> Result<Self, NotRepeatable> {
        let steps: Vec<Arc<Node>> = nodes_behind(&outputs)
            .into_values()
            .filter(|node| !matches!(node.step, NodeStep::Variable(_)))
            .collect();
        for node in &steps {
            if let NodeStep::Rule(rule) = &node.step
                && !rule.is_repeatable()
            {
                return Err(NotRepeatable { operation: rule.name(), origin: node.origin });
            }
        }
        Ok(Recording { inputs, steps, outputs, prepared: OnceLock::new() })
    }

    /// A recording of these steps, each of which can be run again.
    pub(super) fn of_parts(
        inputs: Vec<Arc<Node>>,
        steps: Vec<Arc<Node>>,
        outputs: Vec<Arc<dyn Held>>,
    ) -> Self {
        Recording { inputs, steps, outputs, prepared: OnceLock::new() }
    }

    /// The number of steps.
    pub fn len(&self) -> usize {
        self.steps.len()
    }

    /// Whether there are no steps.
    pub fn is_empty(&self) -> bool {
        self.steps.is_empty()
    }

    /// Runs all steps with other inputs, which have the types and sizes of the recorded ones.
    /// Returns the outputs. `room` may be empty. Otherwise it has memory for each output, in order,
    /// into which the output may be written.
    pub fn run(
        &self,
        inputs: Vec<Arc<dyn Held>>,
        room: Vec<Arc<dyn Held>>,
    ) -> Result<Vec<Arc<dyn Held>>, Error> {
        assert_eq!(inputs.len(), self.inputs.len(), "there is a value for each input");
        self.inputs.iter().zip(&inputs).for_each(|(node, value)| assert_fits(node, value));
        if PLAIN.get() {
            return plain::run(self, inputs);
        }
        self.prepared.get_or_init(|| Prepared::new(self)).run(inputs, room)
    }
}

std::thread_local! {
    /// Whether each step runs by itself on this thread.
    static PLAIN: Cell<bool> = const { Cell::new(false) };
}

/// Sets whether recordings on this thread run each step by itself, as it was recorded, instead of
/// the prepared program.
#[doc(hidden)]
pub fn run_plainly(plainly: bool) {
    PLAIN.set(plainly);
}

/// Panics unless a value has the type and the length of a node.
fn assert_fits(node: &Node, value: &Arc<dyn Held>) {
    assert_eq!(
        (value.dtype(), value.len()),
        (Some(node.dtype), node.len),
        "a value has the type and the length that were recorded"
    );
}

/// The nodes of these values and of all values that they are computed from, by number. The number
/// of a node is greater than the numbers of the nodes that it reads.
pub(super) fn nodes_behind(values: &[Arc<dyn Held>]) -> BTreeMap<u64, Arc<Node>> {
    let mut found: BTreeMap<u64, Arc<Node>> = BTreeMap::new();
    let mut open: Vec<Arc<Node>> = values.iter().filter_map(|held| held.node().cloned()).collect();
    while let Some(node) = open.pop() {
        if found.contains_key(&node.id) {
            continue;
        }
        open.extend(node.all_inputs().into_iter().cloned());
        found.insert(node.id, node);
    }
    found
}

impl Node {
    /// The nodes that the step reads, whatever their element types, including those of computed
    /// places.
    pub(super) fn all_inputs(&self) -> Vec<&Arc<Node>> {
        match &self.step {
            NodeStep::Variable(_) => Vec::new(),
            NodeStep::Parts(parts) => parts
                .iter()
                .flat_map(|part| part.field.all_nodes().into_iter().chain(part.place.nodes()))
                .collect(),
            NodeStep::Rule(rule) => rule.operands().into_iter().flat_map(Field::all_nodes).collect(),
        }
    }
}
