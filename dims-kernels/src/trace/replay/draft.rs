//! The first pass over recorded steps: finds constants, copies of other values, and values that are
//! computed twice.

use super::Recording;
use crate::ops::code::DType;
use crate::program::Instruction;
use crate::trace::compute::{covers, kept};
use crate::trace::rules::attention::AttentionPullBack;
use crate::trace::{Field, FieldSource, Held, Node, NodeStep, Part};
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::sync::Arc;
use alloc::vec::Vec;

/// The steps that calls run, and the replacements of the others.
pub(super) struct Draft {
    /// The steps, each after those that it reads.
    pub(super) steps: Vec<Arc<Node>>,
    /// The numbers of all values of a call: inputs and steps.
    values: BTreeSet<u64>,
    /// Steps that do not run, and the replacements of their results.
    replaced: BTreeMap<u64, Meaning>,
    /// Steps whose result is only read in pieces, with the steps that copy the pieces. The copies
    /// do not run. A piece that is never read has no copy.
    pub(super) in_pieces: BTreeMap<u64, Vec<Option<Arc<Node>>>>,
}

/// The value or constant that a recorded step reads.
#[derive(Clone)]
pub(super) enum Meaning {
    /// The value of the input or step with this number.
    Value(u64),
    /// Elements that are the same in each call.
    Constant(Arc<dyn Held>),
}

impl Meaning {
    fn is_value(&self) -> bool {
        matches!(self, Meaning::Value(_))
    }

    pub(super) fn is_same(&self, other: &Meaning) -> bool {
        match (self, other) {
            (Meaning::Value(a), Meaning::Value(b)) => a == b,
            (Meaning::Constant(a), Meaning::Constant(b)) => {
                core::ptr::addr_eq(Arc::as_ptr(a), Arc::as_ptr(b))
            }
            _ => false,
        }
    }
}

/// Results of at most this many bytes stay in memory for all equal steps that come later. A larger
/// result is shared only with equal steps that run before its last reader. It must not be kept for
/// longer: `checkpoint` saves memory by freeing such results and computing them again.
const SMALL: usize = 32 << 10;

impl Node {
    /// The size of the elements in bytes.
    pub(super) fn bytes(&self) -> usize {
        self.len.saturating_mul(self.dtype.bytes())
    }

    /// Whether the elements are small enough to be kept in memory for long.
    pub(super) fn is_small(&self) -> bool {
        self.bytes() <= SMALL
    }
}

impl Draft {
    pub(super) fn new(recording: &Recording) -> Self {
        let mut draft = Draft {
            steps: Vec::new(),
            values: recording.inputs.iter().map(|node| node.id).collect(),
            replaced: BTreeMap::new(),
            in_pieces: BTreeMap::new(),
        };
        let mut last_reads = last_reads(recording);
        let mut found: BTreeMap<u64, Vec<Arc<Node>>> = BTreeMap::new();
        for (at, node) in recording.steps.iter().enumerate() {
            if !node
                .all_inputs()
                .iter()
                .any(|input| draft.meaning_of(input.id).is_some_and(|own| own.is_value()))
            {
                // The step reads only constants, so its result is a constant. The steps that read
                // it hold the elements of the recorded call.
                continue;
            }
            let last_read = last_reads.get(&node.id).copied().unwrap_or(0);
            if let Some(meaning) = draft.copied(node) {
                if let Meaning::Value(of) = &meaning {
                    let own = last_reads.entry(*of).or_insert(0);
                    *own = last_read.max(*own);
                }
                draft.replaced.insert(node.id, meaning);
                continue;
            }
            if let NodeStep::Parts(parts) = &node.step {
                let same = found.entry(draft.hash(node, parts)).or_default();
                let is_kept = |own: &Node| {
                    own.is_small() || last_reads.get(&own.id).is_some_and(|&last_read| last_read >= at)
                };
                if let Some(own) = same.iter().find(|own| draft.is_same(own, node) && is_kept(own)) {
                    draft.replaced.insert(node.id, Meaning::Value(own.id));
                    let own = last_reads.entry(own.id).or_insert(0);
                    *own = last_read.max(*own);
                    continue;
                }
                same.push(Arc::clone(node));
            }
            draft.values.insert(node.id);
            draft.steps.push(Arc::clone(node));
        }
        draft.drop_unread(recording);
        draft.share_factors();
        draft.split_gradients(recording);
        draft
    }

    /// Adds the value of a new step.
    pub(super) fn add_value(&mut self, number: u64) {
        self.values.insert(number);
    }

    /// Replaces a value, and all values that it has replaced.
    pub(super) fn replace_value(&mut self, number: u64, by: Meaning) {
        self.values.remove(&number);
        for meaning in self.replaced.values_mut() {
            if matches!(meaning, Meaning::Value(own) if *own == number) {
                *meaning = by.clone();
            }
        }
        self.replaced.insert(number, by);
    }

    /// The value or constant of an input or a step. `None` for a step that reads only constants.
    pub(super) fn meaning_of(&self, number: u64) -> Option<Meaning> {
        match self.replaced.get(&number) {
            Some(meaning) => Some(meaning.clone()),
            None => self.values.contains(&number).then_some(Meaning::Value(number)),
        }
    }

    /// The value or constant in this memory.
    pub(super) fn meaning(&self, held: &Arc<dyn Held>) -> Meaning {
        let known = held.node().and_then(|node| self.meaning_of(node.id));
        known.unwrap_or_else(|| Meaning::Constant(Arc::clone(held)))
    }

    /// The values that a step reads.
    pub(super) fn reads(&self, node: &Node) -> BTreeSet<u64> {
        let inputs = node.all_inputs().into_iter().filter_map(|input| match self.meaning_of(input.id) {
            Some(Meaning::Value(number)) => Some(number),
            _ => None,
        });
        inputs.collect()
    }

    /// The steps whose results are replaced, and the replacements.
    pub(super) fn replaced(&self) -> impl Iterator<Item = (u64, &Meaning)> {
        self.replaced.iter().map(|(&number, meaning)| (number, meaning))
    }

    /// The value or constant that a step copies element by element, if the step is such a copy.
    fn copied(&self, node: &Node) -> Option<Meaning> {
        let NodeStep::Parts(parts) = &node.step else { return None };
        let [Part { field, place }] = &parts[..] else { return None };
        let [operand] = &field.operands[..] else { return None };
        let FieldSource::Memory(memory) = &operand.source else { return None };
        let is_same = matches!(field.program.instructions(), [Instruction::Load(_)])
            && memory.dtype() == Some(node.dtype)
            && memory.len() == node.len
            && !field.sizes.contains(&0)
            && covers(place, &field.sizes, node.len)
            && covers(&operand.place, &field.sizes, node.len)
            // A loop along which the place does not vary is a sum.
            && (0..field.sizes.len()).all(|axis| {
                let stride = place.strides[axis];
                field.sizes[axis] == 1 || stride != 0 && stride == operand.place.strides[axis]
            });
        is_same.then(|| self.meaning(memory))
    }

    /// A hash that is the same for equal steps.
    fn hash(&self, node: &Node, parts: &[Part]) -> u64 {
        let mut hash = 0xCBF2_9CE4_8422_2325_u64;
        let mut add = |value: u64| hash = (hash ^ value).wrapping_mul(0x0000_0100_0000_01B3).rotate_left(5);
        add(node.len as u64);
        for Part { field, place } in parts {
            field.sizes.iter().for_each(|&size| add(size as u64));
            add(field.program.instructions().len() as u64);
            place.strides.iter().for_each(|&stride| add(stride as u64));
            for operand in &field.operands {
                match &operand.source {
                    FieldSource::Position => add(1),
                    FieldSource::Memory(held) => match self.meaning(held) {
                        Meaning::Value(number) => add(number),
                        Meaning::Constant(held) => add(held.start().addr() as u64),
                    },
                }
                add(operand.place.offset as u64);
                operand.place.strides.iter().for_each(|&stride| add(stride as u64));
            }
        }
        hash
    }

    /// Whether two steps are sums of the same parts.
    fn is_same(&self, a: &Node, b: &Node) -> bool {
        let (NodeStep::Parts(of_a), NodeStep::Parts(of_b)) = (&a.step, &b.step) else { return false };
        (a.dtype, a.len, of_a.len()) == (b.dtype, b.len, of_b.len())
            && of_a
                .iter()
                .zip(of_b)
                .all(|(a, b)| a.place.is_same(&b.place) && self.is_same_field(&a.field, &b.field))
    }

    pub(super) fn is_same_field(&self, a: &Field, b: &Field) -> bool {
        let is_same_source = |a: &FieldSource, b: &FieldSource| match (a, b) {
            (FieldSource::Memory(a), FieldSource::Memory(b)) => self.meaning(a).is_same(&self.meaning(b)),
            (FieldSource::Position, FieldSource::Position) => true,
            _ => false,
        };
        a.sizes == b.sizes
            && a.operands.len() == b.operands.len()
            && a.program.is_same(&b.program)
            && a.operands
                .iter()
                .zip(&b.operands)
                .all(|(a, b)| is_same_source(&a.source, &b.source) && a.place.is_same(&b.place))
    }

    /// Finds gradients of attention that are read one by one, although one step yields them
    /// concatenated.
    fn split_gradients(&mut self, recording: &Recording) {
        for at in 0..self.steps.len() {
            let node = Arc::clone(&self.steps[at]);
            let NodeStep::Rule(rule) = &node.step else { continue };
            let Some(rule) = rule.as_any().and_then(|rule| rule.downcast_ref::<AttentionPullBack>()) else {
                continue;
            };
            let is_output = |held| matches!(self.meaning(held), Meaning::Value(own) if own == node.id);
            if rule.dtype != node.dtype || recording.outputs.iter().any(is_output) {
                continue;
            }
            let readers: Vec<&Arc<Node>> =
                self.steps[at + 1..].iter().filter(|own| self.reads(own).contains(&node.id)).collect();
            let mut pieces: Vec<Option<Arc<Node>>> = rule.lens.iter().map(|_| None).collect();
            let is_each = readers.iter().all(|reader| {
                let mut from = 0;
                let piece = rule.lens.iter().position(|&len| {
                    let is_piece = copied_from(reader) == Some(from) && reader.len == len;
                    from += len;
                    is_piece
                });
                let free = piece.map(|piece| &mut pieces[piece]).filter(|piece| piece.is_none());
                free.map(|piece| *piece = Some(Arc::clone(reader))).is_some() && reader.dtype == node.dtype
            });
            if is_each {
                self.in_pieces.insert(node.id, pieces);
            }
        }
        let pieces: BTreeSet<u64> =
            self.in_pieces.values().flatten().flatten().map(|piece| piece.id).collect();
        self.steps.retain(|node| !pieces.contains(&node.id));
    }

    /// Drops steps whose results nothing reads.
    fn drop_unread(&mut self, recording: &Recording) {
        let mut read: BTreeSet<u64> = recording
            .outputs
            .iter()
            .filter_map(|held| match self.meaning(held) {
                Meaning::Value(number) => Some(number),
                Meaning::Constant(_) => None,
            })
            .collect();
        let mut steps = core::mem::take(&mut self.steps);
        for at in (0..steps.len()).rev() {
            if read.contains(&steps[at].id) {
                read.extend(self.reads(&steps[at]));
            }
        }
        steps.retain(|node| read.contains(&node.id));
        self.steps = steps;
    }
}

/// The index of the first element that a step copies, if it copies contiguous `f32`s or `f64`s
/// unchanged.
fn copied_from(node: &Node) -> Option<usize> {
    let NodeStep::Parts(parts) = &node.step else { return None };
    let [Part { field, place }] = &parts[..] else { return None };
    let order = kept(place, &field.sizes);
    let (held, start) = match node.dtype {
        DType::F32 => field.lying_in::<f32>(&order),
        DType::F64 => field.lying_in::<f64>(&order),
        _ => None,
    }?;
    let is_whole = !field.sizes.contains(&0)
        && covers(place, &field.sizes, node.len)
        && field.sizes.iter().product::<usize>() == node.len
        && start + node.len <= held.len();
    is_whole.then_some(start)
}

/// For each value, the position of the last step that reads it. Outputs are read after all steps.
fn last_reads(recording: &Recording) -> BTreeMap<u64, usize> {
    let mut last_reads = BTreeMap::new();
    for (at, node) in recording.steps.iter().enumerate() {
        last_reads.extend(node.all_inputs().into_iter().map(|input| (input.id, at)));
    }
    let outputs = recording.outputs.iter().filter_map(|held| held.node());
    last_reads.extend(outputs.map(|node| (node.id, usize::MAX)));
    last_reads
}
