//! Frees the memory of the inputs of a recording, and of the values that were computed from them.

use super::Recording;
use crate::memory::held::{Held, Mark};
use crate::trace::{Field, FieldOperand, FieldSource, Node, NodeStep, Part, StridedPlace, TableSource};
use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::sync::Arc;
use core::any::{Any, TypeId};

/// A placeholder for each value of a call, by its number.
type Placeholders = BTreeMap<u64, Arc<dyn Held>>;

/// Replaces the memory of a value that each call receives or computes.
pub(in crate::trace) struct Placeholder {
    element: TypeId,
    len: usize,
    bytes: usize,
    /// The node of the value.
    mark: Mark,
}

impl Placeholder {
    pub(in crate::trace) fn of(node: &Node) -> Arc<dyn Held> {
        let (element, len, bytes) = (node.dtype.element(), node.len, node.bytes());
        Arc::new(Placeholder { element, len, bytes, mark: Box::new(node.name_only()) })
    }
}

impl Held for Placeholder {
    fn start(&self) -> *const u8 {
        panic!("a placeholder has no elements: calls replace it with their value")
    }

    fn start_mut(&mut self) -> Option<*mut u8> {
        None
    }

    fn len(&self) -> usize {
        self.len
    }

    fn element(&self) -> TypeId {
        self.element
    }

    fn bytes(&self) -> usize {
        self.bytes
    }

    fn mark(&self) -> Option<&Mark> {
        Some(&self.mark)
    }

    fn into_mark(self: Arc<Self>) -> Option<Mark> {
        Arc::into_inner(self).map(|own| own.mark)
    }

    fn into_any(self: Arc<Self>) -> Arc<dyn Any + Send + Sync> {
        self
    }
}

impl Recording {
    /// Frees the memory of the inputs and of all values that depend on them: each call has its own
    /// values. Memory that is still held elsewhere stays allocated.
    pub fn release(&mut self) {
        let mut values: Placeholders =
            self.inputs.iter().map(|node| (node.id, Placeholder::of(node))).collect();
        for node in &self.steps {
            // Steps that depend on no input are constants.
            if node.all_inputs().iter().any(|input| values.contains_key(&input.id)) {
                values.insert(node.id, Placeholder::of(node));
            }
        }
        self.outputs.iter_mut().for_each(|held| replace(held, &values));
        // From last to first: once the readers of a step have placeholders, nothing else holds the
        // step.
        for node in self.steps.iter_mut().rev().filter_map(Arc::get_mut) {
            match &mut node.step {
                NodeStep::Variable(_) => {}
                NodeStep::Parts(parts) => {
                    for Part { field, place } in parts {
                        field.release(&values);
                        place.release(&values);
                    }
                }
                NodeStep::Rule(rule) => {
                    rule.operands_mut().into_iter().for_each(|field| field.release(&values));
                    rule.end_gradients();
                }
            }
        }
    }
}

fn replace(held: &mut Arc<dyn Held>, values: &Placeholders) {
    if let Some(value) = held.node().and_then(|node| values.get(&node.id)) {
        *held = Arc::clone(value);
    }
}

impl Field {
    fn release(&mut self, values: &Placeholders) {
        for FieldOperand { source, place } in &mut self.operands {
            if let FieldSource::Memory(held) = source {
                replace(held, values);
            }
            place.release(values);
        }
    }
}

impl StridedPlace {
    fn release(&mut self, values: &Placeholders) {
        let Some(source) = self.table.as_mut().and_then(|table| table.source.as_mut()) else { return };
        let mut own = TableSource::clone(source);
        own.indices.iter_mut().for_each(|index| index.index.release(values));
        *source = Arc::new(own);
    }
}
