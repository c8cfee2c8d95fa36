//! The gradient of attention as one step that can run again.

use super::{Attention, added};
use crate::error::Error;
use crate::loops::steps::{Loops, PlanStep, note, told};
use crate::memory::allocate::reserve;
use crate::memory::buffer::Buffer;
use crate::memory::held::Mark;
use crate::ops::code::DType;
use crate::program::interpreter::ProgramOutput;
use crate::scalar::Real;
use crate::trace::backward::whole;
use crate::trace::compute::{filled, floats, hollow_of, with_rule};
use crate::trace::rules::{NodeParts, along, pull_backs, wide};
use crate::trace::{Field, FieldSource, Held, Node, NodeStep, Part, Rule, StridedPlace};
use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::any::{Any, TypeId};

/// The gradients of attention with respect to the nodes that its operands read, concatenated. The
/// step has no derivative.
pub(in crate::trace) struct AttentionPullBack {
    pub(in crate::trace) attention: Attention,
    pub(in crate::trace) dy: Field,
    /// For each operand of each field of the attention, the number of its gradient, if it has one.
    pub(in crate::trace) numbers: Vec<Vec<Option<usize>>>,
    /// The number of elements of each gradient.
    pub(in crate::trace) lens: Vec<usize>,
    /// The type of all gradients.
    pub(in crate::trace) dtype: DType,
}

impl Rule for AttentionPullBack {
    fn name(&self) -> &'static str {
        "gradient of attention"
    }

    fn as_any(&self) -> Option<&dyn Any> {
        Some(self)
    }

    fn operands(&self) -> Vec<&Field> {
        self.attention.operands().into_iter().chain([&self.dy]).collect()
    }

    fn operands_mut(&mut self) -> Vec<&mut Field> {
        self.attention.operands_mut().into_iter().chain([&mut self.dy]).collect()
    }

    fn is_repeatable(&self) -> bool {
        true
    }

    fn run(&self, operands: Vec<Field>) -> Option<Result<Arc<dyn Held>, Error>> {
        Some((pull_backs().repeat_attention_pull_back)(self, operands))
    }

    fn plan(&self, _: &[Field], _: usize, _: usize) -> Option<PlanStep> {
        None
    }

    fn pull(&self, _: &Arc<dyn Held>, _: Arc<dyn Held>, _: bool) -> Result<NodeParts, Error> {
        unreachable!("steps that are only recorded to run again have no gradient")
    }
}

impl Attention {
    /// The gradient as one step that can run again, if all gradients have elements and the same
    /// accumulator type.
    pub(in crate::trace::rules) fn pull_back_again(
        &self,
        cotangent: &Arc<dyn Held>,
    ) -> Result<Option<NodeParts>, Error> {
        let mut nodes: Vec<Arc<Node>> = Vec::new();
        let mut numbers = Vec::new();
        for field in self.operands() {
            let mut number = |node: &Arc<Node>| {
                let known = nodes.iter().position(|own| own.id == node.id);
                known.unwrap_or_else(|| {
                    nodes.push(Arc::clone(node));
                    nodes.len() - 1
                })
            };
            let of = field
                .operands
                .iter()
                .map(|own| own.source.node().filter(|_| own.source.is_float()).map(&mut number));
            numbers.push(of.collect::<Vec<_>>());
        }
        let Some(dtype) = nodes.first().map(|node| wide(node.dtype)) else { return Ok(None) };
        if nodes.iter().any(|node| wide(node.dtype) != dtype || node.len == 0) {
            return Ok(None);
        }
        let lens: Vec<usize> = nodes.iter().map(|node| node.len).collect();
        let dy = along(&self.operands[0].sizes, cotangent, &self.kept);
        let all = if self.operands().into_iter().chain([&dy]).any(Field::is_hollow) {
            floats!(dtype, hollow(lens.iter().sum()))?
        } else {
            let pulled = self.pull_tiles(Arc::clone(cotangent), false)?;
            floats!(dtype, joined(pulled, &nodes))?
        };
        let rule = AttentionPullBack {
            attention: self.with_operands(self.operands().into_iter().cloned()),
            dy,
            numbers,
            lens,
            dtype,
        };
        let all = with_rule(all, rule)?;
        let mut from = 0;
        let parts = nodes.into_iter().map(|node| {
            let field = Field::held(&[node.len], &all, StridedPlace::strided(from, [1]));
            from += node.len as isize;
            (node, Part { field, place: StridedPlace::strided(0, [1]) })
        });
        Ok(Some(parts.collect()))
    }

    fn with_operands(&self, mut operands: impl Iterator<Item = Field>) -> Attention {
        let mut next = || operands.next().expect("all operands of the step are passed");
        Attention {
            operands: [next(), next(), next()],
            mask: self.mask.as_ref().map(|_| next()),
            bias: self.bias.as_ref().map(|_| next()),
            scale: self.scale,
            features: self.features.clone(),
            over: self.over.clone(),
            scores: self.scores.clone(),
            kept: self.kept.clone(),
            dtype: self.dtype,
        }
    }
}

impl AttentionPullBack {
    /// Computes the gradients for other operands, concatenated.
    pub(in crate::trace::rules) fn repeat(&self, operands: Vec<Field>) -> Result<Arc<dyn Held>, Error> {
        let (pulled, nodes) = self.pulled(operands)?;
        floats!(self.dtype, joined(pulled, &nodes))
    }

    /// Computes each of the gradients for other operands.
    pub(in crate::trace) fn repeat_each(&self, operands: Vec<Field>) -> Result<Vec<Arc<dyn Held>>, Error> {
        let (pulled, nodes) = self.pulled(operands)?;
        floats!(self.dtype, each(pulled, &nodes))
    }

    /// The parts of the gradients for other operands, and a node for each gradient. The parts
    /// come with these nodes.
    fn pulled(&self, mut operands: Vec<Field>) -> Result<(NodeParts, Vec<Arc<Node>>), Error> {
        let dy = operands.pop().expect("all operands of the step are passed");
        let cotangent = dy.memory().cloned().expect("the cotangent is in memory");
        drop(dy);
        let nodes: Vec<Arc<Node>> =
            self.lens.iter().map(|&len| Node::new(self.dtype, len, NodeStep::Variable(None), None)).collect();
        for (field, numbers) in operands.iter_mut().zip(&self.numbers) {
            for (operand, number) in field.operands.iter_mut().zip(numbers) {
                if let (FieldSource::Memory(memory), Some(number)) = (&mut operand.source, number) {
                    let mark: Mark = Box::new(Arc::clone(&nodes[*number]));
                    *memory = Arc::new(NumberedMemory { memory: Arc::clone(memory), mark });
                }
            }
        }
        let attention = self.attention.with_operands(operands.into_iter());
        Ok((attention.pull_tiles(cotangent, false)?, nodes))
    }
}

/// The sum of the parts for each node.
fn each<T: ProgramOutput + Real>(parts: NodeParts, nodes: &[Arc<Node>]) -> Result<Vec<Arc<dyn Held>>, Error> {
    let mut sums = sums_of::<T>(parts)?;
    let zeros = |len| Ok(Buffer::from(filled::<T>(len)?).held());
    nodes.iter().map(|node| sums.remove(&node.id).map_or_else(|| zeros(node.len), Ok)).collect()
}

/// For each node that has parts, the sum of these parts, by the number of the node.
fn sums_of<T: ProgramOutput + Real>(parts: NodeParts) -> Result<BTreeMap<u64, Arc<dyn Held>>, Error> {
    let mut sums: BTreeMap<u64, Arc<dyn Held>> = BTreeMap::new();
    for (node, part) in parts {
        let before = sums.remove(&node.id);
        let sum = match whole(core::slice::from_ref(&part), node.dtype, node.len) {
            Some(memory) if before.is_none() => memory,
            _ => added::<T>(before, node.len, part)?,
        };
        sums.insert(node.id, sum);
    }
    Ok(sums)
}

/// The sums of the parts for each node, concatenated.
fn joined<T: ProgramOutput + Real>(parts: NodeParts, nodes: &[Arc<Node>]) -> Result<Arc<dyn Held>, Error> {
    let mut sums = sums_of::<T>(parts)?;
    let mut all = reserve::<T>(nodes.iter().map(|node| node.len).sum())?;
    for node in nodes {
        match sums.remove(&node.id) {
            Some(sum) => all.extend_from_slice(&Buffer::<T>::of_held(&sum).expect("the sum is of this type")),
            None => all.resize(all.len() + node.len, T::ZERO),
        }
    }
    note(|| {
        let (len, bytes) = (all.len(), size_of_val(&all[..]));
        let loops = Loops { sizes: vec![len], operands: Vec::new(), bytes, threads: 1, typed: false };
        PlanStep::Copy { reason: "gradient of attention", loops }
    });
    told(&all);
    Ok(Buffer::from(all).held())
}

/// Memory that has a length but no elements.
fn hollow<T: ProgramOutput + Real>(len: usize) -> Result<Arc<dyn Held>, Error> {
    Ok(Buffer::from(hollow_of::<T>(len)?).held())
}

/// Memory of a call, marked with the node with respect to which a gradient is computed.
struct NumberedMemory {
    memory: Arc<dyn Held>,
    mark: Mark,
}

impl Held for NumberedMemory {
    fn start(&self) -> *const u8 {
        self.memory.start()
    }

    fn start_mut(&mut self) -> Option<*mut u8> {
        None
    }

    fn len(&self) -> usize {
        self.memory.len()
    }

    fn element(&self) -> TypeId {
        self.memory.element()
    }

    fn bytes(&self) -> usize {
        self.memory.bytes()
    }

    fn mark(&self) -> Option<&Mark> {
        Some(&self.mark)
    }

    fn into_mark(self: Arc<Self>) -> Option<Mark> {
        Arc::into_inner(self).map(|own| own.mark)
    }

    fn into_any(self: Arc<Self>) -> Arc<dyn Any + Send + Sync> {
        Arc::clone(&self.memory).into_any()
    }
}
