//! Factors that contractions share with other steps.
//!
//! A contraction first computes those factors that are expressions. If another contraction, a sum
//! that is not a contraction, or an earlier map computes the same factor, the factor becomes a
//! separate step, whose result the contractions and sums read. The step computes the same elements
//! as each contraction did, so results have the same bits.

use super::draft::{Draft, Meaning};
use super::release::Placeholder;
use crate::loops::nest::Nest;
use crate::ops::code::{DType, RegisterKind};
use crate::program::interpreter::ProgramOutput;
use crate::program::{Instruction, Register, ScalarProgram};
use crate::scalar::Real;
use crate::trace::compute::{SumLoops, covers, kept, rows};
use crate::trace::products::factors;
use crate::trace::{Field, FieldOperand, FieldSource, Node, NodeStep, Part, PerLoop, StridedPlace};
use alloc::collections::BTreeMap;
use alloc::sync::Arc;
use alloc::vec::Vec;

/// A factor of fewer operations is recomputed as fast as it is read.
const WORTHWHILE: usize = 3;

/// Factors are not searched for in programs with more instructions.
const LONGEST: usize = 64;

/// A factor of a sum.
struct SharedFactor {
    /// The position of the sum among the steps.
    step: usize,
    field: Field,
}

impl Draft {
    /// Turns factors that several steps compute into steps.
    pub(super) fn share_factors(&mut self) {
        let mut found: Vec<Vec<SharedFactor>> = Vec::new();
        for (step, node) in self.steps.iter().enumerate() {
            for field in factors_to_compute(node) {
                let own = SharedFactor { step, field };
                match found.iter_mut().find(|all| self.is_same_field(&all[0].field, &own.field)) {
                    Some(all) => all.push(own),
                    None => found.push(Vec::from([own])),
                }
            }
        }
        // The steps to insert, each before the step at a position.
        let mut inserted: BTreeMap<usize, Vec<Arc<Node>>> = BTreeMap::new();
        for mut all in found {
            // Other sums that add values computed from the factor.
            for (step, node) in self.steps.iter().enumerate() {
                let is_known = all.iter().any(|own| own.step == step);
                if !is_known && self.is_sum_of(node, &all[0].field) {
                    all.push(SharedFactor { step, field: all[0].field.clone() });
                }
            }
            let first = all.iter().map(|own| own.step).min().unwrap_or(0);
            let map = self.steps.iter().take(first).position(|node| self.is_map_of(node, &all[0].field));
            if map.is_none() && all.iter().all(|own| own.step == first) {
                continue;
            }
            let field = all[0].field.clone();
            let node = &self.steps[first];
            let order: Vec<usize> = (0..field.sizes.len()).filter(|&axis| field.sizes[axis] != 1).collect();
            let place = StridedPlace::contiguous(&field.sizes, &order);
            let len = order.iter().map(|&axis| field.sizes[axis]).product();
            let part = Part { field: field.clone(), place: place.clone() };
            let step = Node::new(node.dtype, len, NodeStep::Parts(Vec::from([part])), node.origin);
            let operand = FieldOperand { source: FieldSource::Memory(Placeholder::of(&step)), place };
            let mut is_read = false;
            for SharedFactor { step: at, .. } in all {
                if let Some(sum) = self.reading(&self.steps[at], &field, &operand) {
                    self.replace(at, sum);
                    is_read = true;
                }
            }
            if is_read {
                self.add_value(step.id);
                inserted.entry(map.unwrap_or(first)).or_default().push(step);
            }
        }
        if inserted.is_empty() {
            return;
        }
        let steps = core::mem::take(&mut self.steps);
        for (at, node) in steps.into_iter().enumerate() {
            self.steps.extend(inserted.remove(&at).into_iter().flatten());
            self.steps.push(node);
        }
    }

    /// Whether a step is a map that computes the elements of a field.
    fn is_map_of(&self, node: &Node, field: &Field) -> bool {
        let NodeStep::Parts(parts) = &node.step else { return false };
        let [Part { field: own, place }] = &parts[..] else { return false };
        covers(place, &own.sizes, node.len)
            && kept(place, &own.sizes).len() == own.sizes.iter().filter(|&&size| size != 1).count()
            && self.register_of(own, field).is_some()
    }

    /// Whether a step is a sum of `f32`s or `f64`s whose program computes the elements of a field.
    fn is_sum_of(&self, node: &Node, field: &Field) -> bool {
        let NodeStep::Parts(parts) = &node.step else { return false };
        let [Part { field: own, place }] = &parts[..] else { return false };
        covers(place, &own.sizes, node.len)
            && node.len != field.sizes.iter().product::<usize>()
            && matches!(node.dtype, DType::F32 | DType::F64)
            && self.register_of(own, field).is_some()
    }

    /// The register of a value of `own` that has the elements of `field`.
    fn register_of(&self, own: &Field, field: &Field) -> Option<Register> {
        let all = own.program.instructions();
        if own.sizes != field.sizes || all.len() > LONGEST {
            return None;
        }
        let result = core::mem::discriminant(&field.program.instruction(field.program.result()));
        let is_field = |value: &Register| {
            core::mem::discriminant(&all[*value as usize]) == result
                && self.is_same_field(&own.with_result(*value), field)
        };
        (0..all.len() as Register).find(is_field)
    }

    /// The sum, reading a factor from an operand; `None` if that would change how the sum is
    /// computed, or if the sum no longer computes the factor.
    fn reading(&self, node: &Arc<Node>, factor: &Field, operand: &FieldOperand) -> Option<Arc<Node>> {
        let count = |node: &Node| match node.dtype {
            DType::F32 => contraction::<f32>(node).map(|(_, count)| count),
            _ => contraction::<f64>(node).map(|(_, count)| count),
        };
        let NodeStep::Parts(parts) = &node.step else { return None };
        let [Part { field, place }] = &parts[..] else { return None };
        // Each factor that the sum reads from an operand changes the registers of the others.
        let value = self.register_of(field, factor)?;
        let (program, number) = (&field.program, field.operands.len() as u32);
        let instructions = program.instructions().iter().enumerate().map(|(at, &own)| {
            let own = if at == value as usize { Instruction::Load(number) } else { own };
            (own, program.kind(at as Register))
        });
        let program = ScalarProgram::of(instructions, program.functions().clone(), program.result());
        let mut changed = field.clone();
        changed.program = Arc::new(program);
        changed.operands.push(operand.clone());
        let field = changed.with_distinct_operands();
        let part = Part { field, place: place.clone() };
        let changed = Node::new(node.dtype, node.len, NodeStep::Parts(Vec::from([part])), node.origin);
        let is_same = match (count(node), count(&changed)) {
            (None, None) => adds_in_same_order(node, &changed),
            (before, after) => before == after,
        };
        is_same.then_some(changed)
    }
}

/// The factors of a contraction that vary along all of its loops and take at least [`WORTHWHILE`]
/// operations to compute. Empty if the step is not a contraction of `f32`s or `f64`s.
fn factors_to_compute(node: &Node) -> Vec<Field> {
    match node.dtype {
        DType::F32 => factors_of_type::<f32>(node),
        DType::F64 => factors_of_type::<f64>(node),
        _ => Vec::new(),
    }
}

/// The part of a step and the number of its factors, if the step is a contraction.
fn contraction<T: ProgramOutput + Real>(node: &Node) -> Option<(&Part, usize)> {
    let NodeStep::Parts(parts) = &node.step else { return None };
    let [part] = &parts[..] else { return None };
    let Part { field, place } = part;
    let has_table = |own: &FieldOperand| own.place.table.is_some();
    if field.sizes.contains(&0)
        || field.operands.iter().any(has_table)
        || field.program.instructions().len() > LONGEST
        || !covers(place, &field.sizes, node.len)
    {
        return None;
    }
    let SumLoops { order, reduced, count, is_whole } = SumLoops::new(field, place);
    if !is_whole || reduced.is_empty() || count != 1.0 {
        return None;
    }
    factors::<T>(field, &order, &reduced).map(|(all, _)| (part, all.len()))
}

fn factors_of_type<T: ProgramOutput + Real>(node: &Node) -> Vec<Field> {
    let Some((Part { field, .. }, _)) = contraction::<T>(node) else { return Vec::new() };
    let (mut values, _) = field.program.factors();
    values.sort_unstable();
    values.dedup();
    let kind: RegisterKind = T::KIND;
    let candidates = values.into_iter().filter(|&value| field.program.kind(value) == kind);
    let fields = candidates.map(|value| field.with_result(value));
    let is_whole = |own: &Field| {
        (0..own.sizes.len())
            .all(|axis| own.sizes[axis] == 1 || own.operands.iter().any(|own| own.place.varies(axis)))
    };
    fields.filter(|own| own.program.operations() >= WORTHWHILE && is_whole(own)).collect()
}

/// Whether two steps are sums that the interpreter computes, and that add elements in the same
/// order.
fn adds_in_same_order(a: &Node, b: &Node) -> bool {
    // `numbers` are strides that number the positions of the loops.
    fn nest<T: ProgramOutput>(node: &Node, numbers: &mut Option<PerLoop<isize>>) -> Option<Nest> {
        let NodeStep::Parts(parts) = &node.step else { return None };
        let [Part { field, place }] = &parts[..] else { return None };
        let SumLoops { order, reduced, count, is_whole } = SumLoops::new(field, place);
        let is_program = field.operands.iter().all(|own| own.place.table.is_none())
            && !field.sizes.contains(&0)
            && field.plain::<T>().is_none();
        if !is_program || !is_whole || reduced.is_empty() || count != 1.0 {
            return None;
        }
        let mut rows = rows(field);
        let alone = Nest::reduce(&field.sizes, &order, &reduced, &rows);
        // The last row numbers the positions. It must not change the loops.
        let numbers = numbers.get_or_insert_with(|| {
            let all: Vec<usize> = order.iter().chain(&reduced).copied().collect();
            StridedPlace::contiguous(&field.sizes, &all).strides
        });
        rows.push().copy_from_slice(numbers);
        let nest = Nest::reduce(&field.sizes, &order, &reduced, &rows);
        let is_same = (alone.outer, alone.inner_kept, &alone.sizes[..])
            == (nest.outer, nest.inner_kept, &nest.sizes[..])
            && (0..field.operands.len()).all(|at| alone.strides_of(at) == nest.strides_of(at));
        is_same.then_some(nest)
    }
    let mut strides = None;
    let mut of = |node: &Node| match node.dtype {
        DType::F32 => nest::<f32>(node, &mut strides),
        _ => nest::<f64>(node, &mut strides),
    };
    let (Some(a), Some(b)) = (of(a), of(b)) else { return false };
    let numbers = |nest: &Nest| nest.operand_strides().pop();
    (a.outer, a.inner_kept, &a.sizes[..]) == (b.outer, b.inner_kept, &b.sizes[..])
        && numbers(&a) == numbers(&b)
}

impl Draft {
    fn replace(&mut self, at: usize, node: Arc<Node>) {
        self.replace_value(self.steps[at].id, Meaning::Value(node.id));
        self.add_value(node.id);
        self.steps[at] = node;
    }
}
