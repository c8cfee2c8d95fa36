//! The gradients of a field with respect to its operands.

use crate::error::Error;
use crate::ops::code::{DType, RegisterKind};
use crate::program::derivative::{depends_on, pull_back};
use crate::program::{Instruction, Register};
use crate::trace::compute::{kept, together, with_step};
use crate::trace::field::Merged;
use crate::trace::{Field, FieldOperand, Node, NodeStep, Part, StridedPlace};
use alloc::sync::Arc;
use alloc::vec::Vec;
use smallvec::SmallVec;

impl Field {
    /// The parts of the gradient: the terms that the cotangent adds to the gradient of each traced
    /// operand. The cotangent has one element for each element of the field.
    pub fn pull(&self, cotangent: &Field) -> Vec<(Arc<Node>, Part)> {
        self.pull_by(cotangent, &|_| true).map_or_else(Vec::new, FieldGradients::parts)
    }

    /// The gradients with respect to the requested nodes, as one program; `None` if all are 0.
    pub(crate) fn pull_by(&self, cotangent: &Field, asked: &dyn Fn(u64) -> bool) -> Option<FieldGradients> {
        let traced = |operand: &FieldOperand| {
            operand.source.is_float() && operand.source.node().is_some_and(|node| asked(node.id))
        };
        let numbers: SmallVec<[u32; 4]> =
            (0..self.operands.len() as u32).filter(|&at| traced(&self.operands[at as usize])).collect();
        let depends = depends_on(&self.program, &numbers)?;
        let mut merged = Merged::new(&self.sizes);
        let own = merged.add_all(self);
        let given = merged.add(cotangent);
        let given = merged.build.cast_kind(self.kind(), given);
        let results = pull_back(&mut merged.build, &self.program, &own, &depends, &numbers, given);
        if results.is_empty() {
            return None;
        }
        let values: SmallVec<[Register; 4]> = results.iter().map(|&(_, value)| value).collect();
        let (field, values) = merged.finish_all(&values);
        let pulled = results.into_iter().zip(values).map(|((at, _), value)| {
            let operand = &self.operands[numbers[at] as usize];
            let node = operand.source.node().expect("the operand is traced");
            (Arc::clone(node), value, operand.place.clone())
        });
        Some(FieldGradients { pulled: pulled.collect(), field })
    }
}

/// The gradients of a field with respect to some of its operands, as values of one program.
pub(crate) struct FieldGradients {
    /// The program, and its operands.
    field: Field,
    /// The node of each operand, the value of its gradient, and the place to add it to.
    pulled: Vec<(Arc<Node>, Register, StridedPlace)>,
}

impl FieldGradients {
    /// Each gradient as a part with its own program.
    pub(crate) fn parts(self) -> Vec<(Arc<Node>, Part)> {
        let FieldGradients { field, pulled } = self;
        if let [(_, _, _)] = &pulled[..] {
            return pulled
                .into_iter()
                .map(|(node, _, place)| (node, Part { field: field.clone(), place }))
                .collect();
        }
        let part = |value, place| Part { field: field.with_result(value), place };
        pulled.into_iter().map(|(node, value, place)| (node, part(value, place))).collect()
    }

    /// Like [`parts`](Self::parts), but values with one element for each position and the same
    /// memory order are computed in one pass if at least two gradients use them, and if all
    /// gradients are `f32`s or all are `f64`s. If `recorded` is set and the field is traced, each
    /// computed value is a step.
    pub(crate) fn shared(self, recorded: bool) -> Result<Vec<(Arc<Node>, Part)>, Error> {
        let sizes = &self.field.sizes[..];
        let is_load = |value| matches!(self.field.program.instruction(value), Instruction::Load(_));
        let whole = |place: &StridedPlace| {
            place.table.is_none() && (0..sizes.len()).all(|axis| sizes[axis] == 1 || place.strides[axis] != 0)
        };
        // The first computed value that has an element for each position gives the memory order.
        let Some((_, _, place)) =
            self.pulled.iter().find(|(_, value, place)| whole(place) && !is_load(*value))
        else {
            return Ok(self.parts());
        };
        let order = kept(place, sizes);
        let mut values: Vec<Register> = Vec::new();
        for (_, value, place) in &self.pulled {
            if whole(place) && !is_load(*value) && kept(place, sizes) == order && !values.contains(value) {
                values.push(*value);
            }
        }
        let readers = self.pulled.iter().filter(|(_, value, _)| values.contains(value)).count();
        let kind = self.field.program.kind(values[0]);
        let is_same = self.pulled.iter().all(|(node, value, _)| {
            node.dtype == self.pulled[0].0.dtype && self.field.program.kind(*value) == kind
        });
        if readers < 2 || !is_same || node_kind(&self.pulled[0].0) != Some(kind) {
            return Ok(self.parts());
        }
        let dtype = self.pulled[0].0.dtype;
        let mut computed = together(&self.field, &values, &order, dtype)?;
        let place = StridedPlace::contiguous(sizes, &order);
        if recorded && self.field.is_traced() {
            let step = |value: &Register| {
                let part = Part { field: self.field.with_result(*value), place: place.clone() };
                NodeStep::Parts(vec![part])
            };
            let steps = computed.into_iter().zip(&values);
            computed = steps.map(|(held, value)| with_step(held, step(value))).collect();
        }
        let parts = self.pulled.into_iter().map(|(node, value, own)| {
            let field = match values.iter().position(|&computed| computed == value) {
                Some(at) => Field::held(&self.field.sizes, &computed[at], place.clone()),
                None => self.field.with_result(value),
            };
            (node, Part { field, place: own })
        });
        Ok(parts.collect())
    }
}

/// The register kind that represents the elements of a node exactly, if they are `f32` or `f64`.
fn node_kind(node: &Node) -> Option<RegisterKind> {
    match node.dtype {
        DType::F32 => Some(RegisterKind::F32),
        DType::F64 => Some(RegisterKind::F64),
        _ => None,
    }
}
