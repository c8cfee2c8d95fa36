//! Linear recurrences, which occur in the pull-backs of scans.

use super::{NodeParts, along, pull_backs};
use crate::error::Error;
use crate::loops::steps::PlanStep;
use crate::ops::code::{BinaryOpcode, DType};
use crate::program::interpreter::ProgramOutput;
use crate::scalar::{Num, Real};
use crate::trace::compute::{floats, hollow_of, mapped, stepped};
use crate::trace::{Field, Held, Rule};
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::any::Any;

/// `r[j] = b[j] + a[j - 1] r[j - 1]` along a loop, from its start, or `r[j] = b[j] + a[j] r[j + 1]`
/// from its end. The result is contiguous in an order of all loops.
///
/// The pull-back runs the recurrence in the other direction, so gradients of any order use this
/// step.
pub struct Recurrence {
    /// The factors between consecutive elements, one fewer than there are elements; `None` means 1.
    pub a: Option<Field>,
    /// The summand.
    pub b: Field,
    /// The loop along which the recurrence runs.
    pub axis: usize,
    /// The loops, in the memory order of the result.
    pub order: Vec<usize>,
    /// Whether the recurrence runs from the end.
    pub backward: bool,
    /// The type of the result.
    pub dtype: DType,
}

/// The result of a [`Recurrence`].
pub(super) fn recurrence(
    a: Option<Field>,
    b: Field,
    axis: usize,
    order: &[usize],
    backward: bool,
    dtype: DType,
    recorded: bool,
) -> Result<Arc<dyn Held>, Error> {
    let is_traced = recorded && a.iter().chain([&b]).any(Field::is_traced);
    let rule = Recurrence { a, b, axis, order: order.to_vec(), backward, dtype };
    floats!(dtype, computed(rule, is_traced))
}

/// The distance between consecutive elements along a loop, if elements are contiguous in an order
/// of the loops.
pub(super) fn inner(sizes: &[usize], order: &[usize], axis: usize) -> usize {
    order.iter().rev().take_while(|&&own| own != axis).map(|&axis| sizes[axis]).product()
}

fn computed<T: ProgramOutput + Real>(rule: Recurrence, is_traced: bool) -> Result<Arc<dyn Held>, Error> {
    let Recurrence { a, b, axis, order, backward, .. } = &rule;
    if is_traced && a.iter().chain([b]).any(Field::is_hollow) {
        let data = hollow_of::<T>(order.iter().map(|&axis| b.sizes[axis]).product())?;
        return Ok(stepped(data, Some(rule)));
    }
    let mut data = mapped::<T>(b, order)?;
    let factors = match a {
        Some(a) => Some(mapped::<T>(a, order)?),
        None => None,
    };
    let (size, inner) = (b.sizes[*axis], inner(&b.sizes, order, *axis));
    if !data.is_empty() {
        let mut states = vec![T::Wide::ZERO; inner];
        for (number, block) in data.chunks_exact_mut(size * inner).enumerate() {
            for step in 0..size {
                let at = if *backward { size - 1 - step } else { step };
                let row = &mut block[at * inner..][..inner];
                let between = if *backward { at } else { at.wrapping_sub(1) };
                let factors = match &factors {
                    Some(factors) if step > 0 => {
                        Some(&factors[(number * (size - 1) + between) * inner..][..inner])
                    }
                    _ => None,
                };
                for (at, (value, state)) in row.iter_mut().zip(&mut states).enumerate() {
                    let before = match factors {
                        _ if step == 0 => T::Wide::ZERO,
                        // A state of 0 gives 0 for any factor, as in the chain rule.
                        Some(_) if *state == T::Wide::ZERO => T::Wide::ZERO,
                        Some(factors) => factors[at].widen() * *state,
                        None => *state,
                    };
                    *state = value.widen() + before;
                    *value = T::narrow(*state);
                }
            }
        }
    }
    Ok(stepped(data, is_traced.then_some(rule)))
}

impl Rule for Recurrence {
    fn name(&self) -> &'static str {
        "recurrence"
    }

    fn as_any(&self) -> Option<&dyn Any> {
        Some(self)
    }

    fn operands(&self) -> Vec<&Field> {
        self.a.iter().chain([&self.b]).collect()
    }

    fn operands_mut(&mut self) -> Vec<&mut Field> {
        self.a.iter_mut().chain([&mut self.b]).collect()
    }

    fn is_repeatable(&self) -> bool {
        true
    }

    fn run(&self, mut operands: Vec<Field>) -> Option<Result<Arc<dyn Held>, Error>> {
        let b = operands.pop()?;
        Some((pull_backs().repeat_recurrence)(self, operands.pop(), b))
    }

    fn plan(&self, _: &[Field], len: usize, bytes: usize) -> Option<PlanStep> {
        let size = self.b.sizes[self.axis];
        let lines = len.checked_div(size).unwrap_or(0);
        Some(PlanStep::Lines { work: self.name(), lines, len: size, bytes, threads: 1 })
    }

    fn pull(
        &self,
        value: &Arc<dyn Held>,
        cotangent: Arc<dyn Held>,
        recorded: bool,
    ) -> Result<NodeParts, Error> {
        (pull_backs().recurrence)(self, value, cotangent, recorded)
    }
}

impl Recurrence {
    /// The recurrence with other fields.
    pub(super) fn repeat(&self, a: Option<Field>, b: Field) -> Result<Arc<dyn Held>, Error> {
        recurrence(a, b, self.axis, &self.order, self.backward, self.dtype, false)
    }

    pub(super) fn pull_back(
        &self,
        value: &Arc<dyn Held>,
        cotangent: Arc<dyn Held>,
        recorded: bool,
    ) -> Result<NodeParts, Error> {
        let Recurrence { a, b, axis, order, backward, dtype } = self;
        let sizes = &b.sizes[..];
        let (r, dr) = (along(sizes, value, order), along(sizes, &cotangent, order));
        let s = recurrence(a.clone(), dr, *axis, order, !backward, *dtype, recorded)?;
        let s = along(sizes, &s, order);
        let mut parts = b.pull(&s);
        if let Some(a) = a {
            let rest = sizes[*axis].saturating_sub(1);
            // The factor between two consecutive elements is the derivative of the one computed
            // later with respect to the one computed earlier.
            let (earlier, later) = if *backward { (1, 0) } else { (0, 1) };
            let rest = |field: &Field, from: usize| field.slice(*axis, from.min(sizes[*axis]), rest);
            let given = rest(&r, earlier)
                .map([&rest(&s, later)], |build, r, [s]| build.binary(BinaryOpcode::Chain, s, r));
            parts.extend(a.pull(&given));
        }
        Ok(parts)
    }
}
