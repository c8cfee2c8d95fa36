//! Converts rules to data and back. A restored rule is checked.

use super::read::{are_distinct, check, covers_all, volume};
use super::write::elements_around;
use super::{
    RecordingReader, RecordingWriter, SavedAttention, SavedField, SavedLines, SavedOperation, SavedReduction,
    SavedRule, SavedType, refused,
};
use crate::error::Error;
use crate::memory::allocate::reserve;
use crate::ops::code::{DType, LineWork, ReductionKind, RegisterKind};
use crate::program::Instruction;
use crate::scan::pull::needs_input;
use crate::trace::rules::{
    Attention, AttentionPullBack, BestOf, DetachedElements, LinePullBack, LineRule, Placed, Recurrence,
    ReductionRule,
};
use crate::trace::updates::SumOfSquares;
use crate::trace::{Field, FieldSource, Held, Rule};
use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::any::Any;

impl SavedRule {
    pub(super) fn fields(&self) -> Vec<&SavedField> {
        match self {
            SavedRule::Reduction(own) | SavedRule::MomentOfLines(own) => vec![&own.field],
            SavedRule::Lines(own) => vec![&own.field],
            SavedRule::LinePullBack { lines, y, dy } => vec![&lines.field, y, dy],
            SavedRule::BestOf { x, y, .. } => vec![x, y],
            SavedRule::Attention(own) => own.fields(),
            SavedRule::AttentionPullBack { attention, dy, .. } => {
                attention.fields().into_iter().chain([dy]).collect()
            }
            SavedRule::Recurrence { a, b, .. } => a.iter().chain([b]).collect(),
            SavedRule::Placed { parts, .. } => parts.iter().map(|part| &part.field).collect(),
            SavedRule::Detached { field, .. } => vec![field],
            SavedRule::SumOfSquares(operands) | SavedRule::Kind { operands, .. } => operands.iter().collect(),
        }
    }

    pub(super) fn fields_mut(&mut self) -> Vec<&mut SavedField> {
        match self {
            SavedRule::Reduction(own) | SavedRule::MomentOfLines(own) => vec![&mut own.field],
            SavedRule::Lines(own) => vec![&mut own.field],
            SavedRule::LinePullBack { lines, y, dy } => vec![&mut lines.field, y, dy],
            SavedRule::BestOf { x, y, .. } => vec![x, y],
            SavedRule::Attention(own) => own.fields_mut(),
            SavedRule::AttentionPullBack { attention, dy, .. } => {
                attention.fields_mut().into_iter().chain([dy]).collect()
            }
            SavedRule::Recurrence { a, b, .. } => a.iter_mut().chain([b]).collect(),
            SavedRule::Placed { parts, .. } => parts.iter_mut().map(|part| &mut part.field).collect(),
            SavedRule::Detached { field, .. } => vec![field],
            SavedRule::SumOfSquares(operands) | SavedRule::Kind { operands, .. } => {
                operands.iter_mut().collect()
            }
        }
    }
}

impl SavedAttention {
    fn fields(&self) -> Vec<&SavedField> {
        self.operands.iter().chain(&self.mask).chain(&self.bias).collect()
    }

    fn fields_mut(&mut self) -> Vec<&mut SavedField> {
        self.operands.iter_mut().chain(&mut self.mask).chain(&mut self.bias).collect()
    }
}

impl RecordingWriter {
    /// A rule of this layer as data; `None` for other rules.
    pub(super) fn rule(&mut self, rule: &dyn Any) -> Option<SavedRule> {
        if let Some(rule) = rule.downcast_ref() {
            return Some(SavedRule::Reduction(self.reduction(rule)));
        }
        if let Some(rule) = rule.downcast_ref::<LineRule>() {
            let field = self.field(&rule.field);
            return Some(SavedRule::Lines(lines(rule, field)));
        }
        if let Some(LinePullBack { lines: rule, y, dy }) = rule.downcast_ref() {
            // If the pull-back does not read the operand, only its sizes are saved.
            let field =
                if needs_input(rule.work) { self.field(&rule.field) } else { self.sizes_of(&rule.field) };
            let (lines, y, dy) = (lines(rule, field), self.field(y), self.field(dy));
            return Some(SavedRule::LinePullBack { lines, y, dy });
        }
        if let Some(BestOf { x, y, order, axis, dtype }) = rule.downcast_ref() {
            let (x, y) = (self.field(x), self.field(y));
            return Some(SavedRule::BestOf { x, y, order: order.clone(), axis: *axis, dtype: *dtype });
        }
        if let Some(rule) = rule.downcast_ref() {
            return Some(SavedRule::Attention(self.attention(rule)));
        }
        if let Some(AttentionPullBack { attention, dy, numbers, lens, dtype }) = rule.downcast_ref() {
            return Some(SavedRule::AttentionPullBack {
                attention: self.attention(attention),
                dy: self.field(dy),
                numbers: numbers.clone(),
                lens: lens.clone(),
                dtype: *dtype,
            });
        }
        if let Some(Recurrence { a, b, axis, order, backward, dtype }) = rule.downcast_ref() {
            return Some(SavedRule::Recurrence {
                a: a.as_ref().map(|a| self.field(a)),
                b: self.field(b),
                axis: *axis,
                order: order.clone(),
                backward: *backward,
                dtype: *dtype,
            });
        }
        if let Some(placed @ Placed { parts, dtype, .. }) = rule.downcast_ref() {
            // The elements that the parts overwrite belong to the recorded call, so they are not
            // saved.
            let around = elements_around(placed, self.to_open);
            let around = self.new_constant(*dtype, around);
            return Some(SavedRule::Placed { parts: self.parts(parts), around, dtype: *dtype });
        }
        if let Some(DetachedElements { field, order, dtype }) = rule.downcast_ref() {
            let field = self.field(field);
            return Some(SavedRule::Detached { field, order: order.clone(), dtype: *dtype });
        }
        if let Some(SumOfSquares { operands }) = rule.downcast_ref() {
            return Some(SavedRule::SumOfSquares(operands.iter().map(|own| self.field(own)).collect()));
        }
        None
    }

    pub(crate) fn reduction(&mut self, rule: &ReductionRule) -> SavedReduction {
        let ReductionRule { field, kept, reduced, reduction, dtype } = rule;
        let (name, words) = reduction.words();
        SavedReduction {
            field: self.field(field),
            kept: kept.clone(),
            reduced: reduced.clone(),
            reduction: SavedOperation(name.into(), words.to_vec()),
            dtype: *dtype,
        }
    }

    fn attention(&mut self, rule: &Attention) -> SavedAttention {
        let Attention { operands, mask, bias, scale, features, over, scores, kept, dtype } = rule;
        SavedAttention {
            operands: operands.each_ref().map(|own| self.field(own)),
            mask: mask.as_ref().map(|own| self.field(own)),
            bias: bias.as_ref().map(|own| self.field(own)),
            scale: scale.to_bits(),
            features: features.clone(),
            over: over.clone(),
            scores: scores.clone(),
            kept: kept.clone(),
            dtype: *dtype,
        }
    }
}

fn lines(rule: &LineRule, field: SavedField) -> SavedLines {
    let (name, words) = rule.work.words();
    SavedLines {
        field,
        order: rule.order.clone(),
        lines: rule.lines.clone(),
        work: SavedOperation(name.into(), words.to_vec()),
        dtype: rule.dtype,
        is_masked: rule.is_masked,
    }
}

fn check_result(of: SavedType, dtype: DType, len: usize) -> Result<(), Error> {
    check((of.dtype, of.len) == (dtype, len), "a result has another type or length than its step computes")
}

/// Checks that a field reads a single operand and computes nothing from it, and that the operand's
/// memory has this type and length. The operand's place is not checked.
pub(crate) fn check_whole(field: &Field, dtype: DType, len: usize) -> Result<(), Error> {
    let is_whole = match (&field.operands[..], field.program.instruction(field.program.result())) {
        ([own], Instruction::Load(0)) => match &own.source {
            FieldSource::Memory(held) => (held.dtype(), held.len()) == (Some(dtype), len),
            FieldSource::Position => false,
        },
        _ => false,
    };
    check(is_whole, "an operand of a step has the wrong type or length")
}

impl RecordingReader<'_> {
    /// Restores a rule of this layer.
    pub(super) fn rule(&self, saved: &SavedRule, of: SavedType) -> Result<Box<dyn Rule>, Error> {
        match saved {
            SavedRule::Reduction(saved) => Ok(Box::new(self.restored_reduction(saved, of)?)),
            SavedRule::Lines(saved) => {
                let rule = self.lines(saved, of)?;
                let kind = rule.field.kind();
                check(rule.dtype.takes(kind), "lines have another element type than their results")?;
                Ok(Box::new(rule))
            }
            SavedRule::LinePullBack { lines, y, dy } => {
                let (lines, y, dy) = (self.lines(lines, of)?, self.field(y)?, self.field(dy)?);
                let is_known = matches!(
                    lines.work,
                    LineWork::Softmax { .. }
                        | LineWork::Standardize { .. }
                        | LineWork::RootMeanSquare { .. }
                        | LineWork::UnitLength { .. }
                );
                check(is_known && are_inner(&lines), "these lines have no gradient in one step")?;
                check(!lines.field.sizes.contains(&0), "the gradient of lines has no elements")?;
                if needs_input(lines.work) {
                    check(lines.dtype.takes(lines.field.kind()), "lines have another element type")?;
                }
                for field in [&y, &dy] {
                    check_whole(field, lines.dtype, of.len)?;
                    check(field.sizes == lines.field.sizes, "a gradient has other loops than its lines")?;
                }
                Ok(Box::new(LinePullBack { lines, y, dy }))
            }
            SavedRule::BestOf { x, y, order, axis, dtype } => {
                let (x, y) = (self.field(x)?, self.field(y)?);
                check(x.sizes == y.sizes, "running extremes have other loops than their operand")?;
                is_permutation(&x, order)?;
                check(*axis < order.len() && dtype.is_float(), "running extremes need floats along a loop")?;
                check(
                    dtype.takes(x.kind()) && dtype.takes(y.kind()),
                    "running extremes have another element type",
                )?;
                check_result(of, DType::Isize, volume(&x, order))?;
                Ok(Box::new(BestOf { x, y, order: order.clone(), axis: *axis, dtype: *dtype }))
            }
            SavedRule::Attention(saved) => {
                let rule = self.restored_attention(saved)?;
                check_result(of, rule.dtype, volume(&rule.operands[0], &rule.kept))?;
                Ok(Box::new(rule))
            }
            SavedRule::AttentionPullBack { attention, dy, numbers, lens, dtype } => {
                let (attention, dy) = (self.restored_attention(attention)?, self.field(dy)?);
                check(
                    matches!(dtype, DType::F32 | DType::F64),
                    "gradients of attention must be `f32` or `f64`",
                )?;
                let len = volume(&attention.operands[0], &attention.kept);
                check_whole(&dy, attention.dtype, len)?;
                let fields = attention.operands();
                check(fields.len() == numbers.len(), "the gradient of attention has other operands")?;
                for (field, numbers) in fields.iter().zip(numbers) {
                    check(
                        field.operands.len() == numbers.len(),
                        "the gradient of attention has other operands",
                    )?;
                    for (own, number) in field.operands.iter().zip(numbers) {
                        let Some(number) = *number else { continue };
                        let held = memory(&own.source)?;
                        let is_float = held.dtype().is_some_and(DType::is_float);
                        check(
                            is_float && lens.get(number) == Some(&held.len()),
                            "the gradient of attention has another length than its operand",
                        )?;
                    }
                }
                let len = lens.iter().try_fold(0, |sum: usize, &len| sum.checked_add(len));
                check_result(of, *dtype, len.unwrap_or(usize::MAX))?;
                Ok(Box::new(AttentionPullBack {
                    attention,
                    dy,
                    numbers: numbers.clone(),
                    lens: lens.clone(),
                    dtype: *dtype,
                }))
            }
            SavedRule::Recurrence { a, b, axis, order, backward, dtype } => {
                let (a, b) = (a.as_ref().map(|a| self.field(a)).transpose()?, self.field(b)?);
                is_permutation(&b, order)?;
                check(*axis < order.len() && dtype.is_float(), "a recurrence needs floats along a loop")?;
                check(dtype.takes(b.kind()), "a recurrence has another element type")?;
                if let Some(a) = &a {
                    let mut sizes = b.sizes.clone();
                    sizes[*axis] = sizes[*axis].saturating_sub(1);
                    check(a.sizes == sizes && dtype.takes(a.kind()), "a recurrence has the wrong factors")?;
                }
                check_result(of, *dtype, volume(&b, order))?;
                let (order, axis, backward, dtype) = (order.clone(), *axis, *backward, *dtype);
                Ok(Box::new(Recurrence { a, b, axis, order, backward, dtype }))
            }
            SavedRule::Placed { parts, around, dtype } => {
                let around = Arc::clone(self.constant(*around)?);
                check(around.dtype() == Some(*dtype), "the elements around parts have another type")?;
                let len = if around.len() == 1 { of.len } else { around.len() };
                check_result(of, *dtype, len)?;
                if len > around.len() {
                    // The data can claim any length, so this returns an error if there is not
                    // enough memory.
                    drop(reserve::<u8>(len.saturating_mul(dtype.bytes()))?);
                }
                let parts = parts.iter().map(|part| self.part(part, of)).collect::<Result<Vec<_>, _>>()?;
                // Places must be fixed, not computed anew in each call.
                let is_given = |part: &crate::trace::Part| {
                    part.place.table.as_ref().is_none_or(|table| table.source.is_none())
                };
                check(parts.iter().all(is_given), "parts of a result have computed places")?;
                Ok(Box::new(Placed { parts, around, len, dtype: *dtype }))
            }
            SavedRule::Detached { field, order, dtype } => {
                let field = self.field(field)?;
                covers_all(&field, order)?;
                check(dtype.takes(field.kind()), "detached elements have another type")?;
                check_result(of, *dtype, volume(&field, order))?;
                Ok(Box::new(DetachedElements { field, order: order.clone(), dtype: *dtype }))
            }
            SavedRule::SumOfSquares(operands) => {
                let operands = operands.iter().map(|own| self.field(own)).collect::<Result<Vec<_>, _>>()?;
                for own in &operands {
                    let [operand] = &own.operands[..] else {
                        return Err(refused("a sum of squares must read elements unchanged"));
                    };
                    let held = memory(&operand.source)?;
                    check(held.dtype().is_some_and(DType::is_float), "a sum of squares needs floats")?;
                    let (program, place) = (&own.program, &operand.place);
                    let is_unchanged = matches!(program.instruction(program.result()), Instruction::Load(_))
                        && own.sizes[..] == [held.len()]
                        && (place.offset, place.table.is_none()) == (0, true)
                        && (held.len() <= 1 || place.strides[..] == [1]);
                    check(is_unchanged, "a sum of squares must read elements unchanged")?;
                }
                check_result(of, DType::F64, 1)?;
                Ok(Box::new(SumOfSquares { operands }))
            }
            SavedRule::MomentOfLines(_) | SavedRule::Kind { .. } => {
                unreachable!("a higher layer restores this rule")
            }
        }
    }

    pub(crate) fn restored_reduction(
        &self,
        saved: &SavedReduction,
        of: SavedType,
    ) -> Result<ReductionRule, Error> {
        use ReductionKind::{All, Any, ArgMax, ArgMin, Count, Max, Min, Prod};
        let SavedReduction { field, kept, reduced, reduction: SavedOperation(name, words), dtype } = saved;
        let reduction = ReductionKind::of_words(name, words)
            .ok_or_else(|| refused(format!("there is no reduction `{name}`")))?;
        let field = self.field(field)?;
        are_distinct(&[&kept[..], reduced].concat(), field.sizes.len())?;
        let is_known =
            |axis: &usize| field.sizes[*axis] == 1 || kept.contains(axis) || reduced.contains(axis);
        check((0..field.sizes.len()).all(|axis| is_known(&axis)), "a reduction lacks a loop")?;
        let is_right = match field.kind() {
            RegisterKind::Bool => match reduction {
                Any | All => *dtype == DType::Bool,
                Count => *dtype == DType::Usize,
                _ => false,
            },
            RegisterKind::Int => match reduction {
                ArgMax | ArgMin => *dtype == DType::Usize,
                Prod | Max | Min => dtype.kind() == RegisterKind::Int,
                _ => false,
            },
            RegisterKind::F32 | RegisterKind::F64 => match reduction {
                ArgMax | ArgMin => *dtype == DType::Usize,
                Any | All | Count | ReductionKind::Opaque => false,
                _ => dtype.is_float(),
            },
        };
        check(is_right, "a reduction has another element type")?;
        // If a loop is empty, nothing has checked that the first offset is in the table.
        let has_table = field.operands.iter().any(|own| own.place.table.is_some());
        check(!has_table || !field.sizes.contains(&0), "a reduction of no elements looks up offsets")?;
        let needs_elements = matches!(reduction, ArgMax | ArgMin | Max | Min);
        check(
            !needs_elements || volume(&field, reduced) > 0 || volume(&field, kept) == 0,
            "a maximum or minimum needs at least one element",
        )?;
        check_result(of, *dtype, volume(&field, kept))?;
        Ok(ReductionRule { field, kept: kept.clone(), reduced: reduced.clone(), reduction, dtype: *dtype })
    }

    fn lines(&self, saved: &SavedLines, of: SavedType) -> Result<LineRule, Error> {
        let SavedLines { field, order, lines, work: SavedOperation(name, words), dtype, is_masked } = saved;
        let work = LineWork::of_words(name, words)
            .ok_or_else(|| refused(format!("there is no work on lines named `{name}`")))?;
        let field = self.field(field)?;
        is_permutation(&field, order)?;
        are_distinct(lines, field.sizes.len())?;
        let first = order.iter().position(|axis| lines.contains(axis)).unwrap_or(0);
        let along = order.get(first..first + lines.len()).unwrap_or(&[]);
        check(
            !lines.is_empty() && along.len() == lines.len() && along.iter().all(|axis| lines.contains(axis)),
            "the loops of lines are not adjacent",
        )?;
        let is_right = match work {
            LineWork::Cumulate | LineWork::CumulateProduct | LineWork::CumulateBest { .. } => {
                *dtype != DType::Bool
            }
            LineWork::Softmax { .. } | LineWork::CumulateLogSumExp => dtype.is_float(),
            LineWork::Standardize { .. } | LineWork::RootMeanSquare { .. } | LineWork::UnitLength { .. } => {
                dtype.is_float() && first + lines.len() == order.len()
            }
            LineWork::Opaque => false,
        };
        check(is_right, "this work does not support these lines")?;
        let is_softmax = work == LineWork::Softmax { log: false };
        check(
            !is_masked || is_softmax && first + lines.len() == order.len(),
            "only softmax along the innermost loops supports masked lines",
        )?;
        check_result(of, *dtype, volume(&field, order))?;
        let (order, lines) = (order.clone(), lines.clone());
        Ok(LineRule { field, order, lines, work, dtype: *dtype, is_masked: *is_masked })
    }

    /// A field that is read only along these loops. It does not vary along the others. If one of
    /// the others is empty, [`field`](Self::field) has not checked which elements are read.
    fn field_along(&self, saved: &SavedField, loops: &[usize]) -> Result<Field, Error> {
        let field = self.field(saved)?;
        covers_all(&field, loops)?;
        if saved.sizes.contains(&0) {
            let size = |(axis, &size): (usize, &usize)| if loops.contains(&axis) { size } else { 1 };
            let sizes = saved.sizes.iter().enumerate().map(size).collect();
            self.field(&SavedField { sizes, ..saved.clone() })?;
        }
        Ok(field)
    }

    fn restored_attention(&self, saved: &SavedAttention) -> Result<Attention, Error> {
        let SavedAttention { operands: [q, k, v], mask, bias, scale, features, over, scores, kept, dtype } =
            saved;
        let (of_scores, of_values) = ([&scores[..], features].concat(), [&over[..], kept].concat());
        let operands = [
            self.field_along(q, &of_scores)?,
            self.field_along(k, &of_scores)?,
            self.field_along(v, &of_values)?,
        ];
        let mask = mask.as_ref().map(|own| self.field_along(own, scores)).transpose()?;
        let bias = bias.as_ref().map(|own| self.field_along(own, scores)).transpose()?;
        check(dtype.is_float(), "attention needs floats")?;
        for own in operands.iter().chain(&bias) {
            check(dtype.takes(own.kind()), "attention has operands of another type")?;
        }
        let is_mask = mask.as_ref().is_some_and(|mask| mask.kind() == RegisterKind::Bool);
        check(is_mask, "attention needs a mask of `bool`s")?;
        let sizes = &operands[0].sizes;
        check(
            operands.iter().chain(&mask).chain(&bias).all(|own| own.sizes == *sizes),
            "operands of attention have different loops",
        )?;
        // The loops of the scores and those over features are distinct, and so are the loops over
        // keys and those of the result. Loops over features may also be kept, as columns of the
        // values.
        check(
            over.iter().all(|axis| scores.contains(axis))
                && scores.iter().all(|axis| over.contains(axis) || kept.contains(axis)),
            "the loops of attention are inconsistent",
        )?;
        Ok(Attention {
            operands,
            mask,
            bias,
            scale: f64::from_bits(*scale),
            features: features.clone(),
            over: over.clone(),
            scores: scores.clone(),
            kept: kept.clone(),
            dtype: *dtype,
        })
    }
}

/// Whether the elements of a line are contiguous.
fn are_inner(LineRule { order, lines, .. }: &LineRule) -> bool {
    order[order.len() - lines.len()..].iter().all(|axis| lines.contains(axis))
}

/// Checks that an order has each loop of a field once.
fn is_permutation(field: &Field, order: &[usize]) -> Result<(), Error> {
    are_distinct(order, field.sizes.len())?;
    check(order.len() == field.sizes.len(), "a result lacks a loop")
}

fn memory(source: &FieldSource) -> Result<&Arc<dyn Held>, Error> {
    match source {
        FieldSource::Memory(held) => Ok(held),
        FieldSource::Position => Err(refused("a step reads positions where it needs elements")),
    }
}
