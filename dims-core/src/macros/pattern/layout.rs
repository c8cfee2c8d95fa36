//! The loops of a pattern (the dims of its operands, the axes of `...`, and its other axes), and
//! the strides of operands and results along these loops.

use super::data::{Pattern, Slot, Term};
use super::solve::{Solved, rest_of};
use crate::error::DimError;
use kernels::loops::axes::{Order, Sizes};

/// The loops of a pattern, with their sizes.
pub struct PatternLayout {
    /// The pattern.
    pub pattern: &'static Pattern,
    /// The sizes of the pattern's axes.
    pub solved: Solved,
    /// The number of loops that are dims. These come first.
    pub named: usize,
    /// The length of each loop.
    pub sizes: Sizes,
}

impl PatternLayout {
    /// The loops over dims of these sizes and the axes of a pattern.
    pub fn new(pattern: &'static Pattern, solved: Solved, named: &[usize]) -> Self {
        let mut sizes = Sizes::from_slice(named);
        sizes.extend_from_slice(&solved.rest);
        sizes.extend_from_slice(&solved.axes);
        PatternLayout { pattern, solved, named: named.len(), sizes }
    }

    /// The loops of a part of a group, the last one fastest.
    #[inline]
    fn loops(&self, term: Term) -> core::ops::Range<usize> {
        let rest = self.named + self.solved.rest.len();
        match term {
            Term::Rest => self.named..rest,
            Term::Axis(axis) => rest + axis..rest + axis + 1,
        }
    }

    /// The loop of an axis.
    #[inline]
    pub fn axis(&self, axis: usize) -> usize {
        self.named + self.solved.rest.len() + axis
    }

    /// The loops along an axis of an array. `choice` selects the group of a sum.
    pub fn loops_of(&self, slot: &Slot, choice: usize) -> Order {
        match slot {
            Slot::Rest => self.loops(Term::Rest).collect(),
            Slot::Axis(axis) => Order::from_elem(self.axis(*axis), 1),
            slot => slot.group(choice).iter().flat_map(|&term| self.loops(term)).collect(),
        }
    }

    /// The loops along all axes of an array in its order, dims first.
    pub fn order(&self, slots: &[Slot]) -> Order {
        self.order_of(slots, &[])
    }

    /// Like [`order`](Self::order), with these groups chosen for sums.
    ///
    /// No axis may occur twice. (Macros reject this in results.)
    pub fn order_of(&self, slots: &[Slot], choices: &[usize]) -> Order {
        let mut choices = choices.iter().copied();
        let mut order: Order = (0..self.named).collect();
        for slot in slots {
            let choice = if matches!(slot, Slot::Sum(_)) { choices.next().unwrap_or(0) } else { 0 };
            order.extend(self.loops_of(slot, choice));
        }
        let twice = || (1..order.len()).any(|at| order[..at].contains(&order[at]));
        debug_assert!(!twice(), "an axis of the result stands in it once");
        order
    }

    /// The sizes of an array with these slots, dims first.
    pub fn shape(&self, slots: &[Slot]) -> Result<Sizes, DimError> {
        let mut sizes = Sizes::from_slice(&self.sizes[..self.named]);
        sizes.extend(self.solved.sizes(self.pattern, slots)?);
        Ok(sizes)
    }

    /// Writes to `row` the strides of an array along the loops, given its strides along dims and
    /// axes. `row` must be all 0 before. Returns the offset of the chosen groups of sums.
    pub fn spread(
        &self,
        slots: &[Slot],
        choices: &[usize],
        sizes: &[usize],
        strides: &[isize],
        row: &mut [isize],
    ) -> Result<isize, DimError> {
        let (named, strides) = strides.split_at(self.named);
        row[..self.named].copy_from_slice(named);
        let rest = rest_of(slots, sizes.len())?;
        let mut choices = choices.iter();
        let (mut at, mut offset) = (0, 0);
        for slot in slots {
            let stride = strides.get(at).copied().unwrap_or(0);
            match slot {
                Slot::Axis(axis) => row[self.axis(*axis)] += stride,
                Slot::Rest => {
                    let loops = self.loops(Term::Rest);
                    for (axis, own) in loops.rev().zip((at..at + rest).rev()) {
                        row[axis] += if sizes[own] == 1 { 0 } else { strides[own] };
                    }
                    at += rest;
                    continue;
                }
                Slot::Group(terms) => self.split(terms, stride, row),
                Slot::Sum(groups) => {
                    let choice = choices.next().copied().unwrap_or(0);
                    let before: usize =
                        groups[..choice].iter().filter_map(|terms| self.solved.group(terms)).sum();
                    offset += before as isize * stride;
                    self.split(groups[choice], stride, row);
                }
            }
            at += 1;
        }
        Ok(offset)
    }

    /// The strides along the parts of a group.
    fn split(&self, terms: &[Term], stride: isize, row: &mut [isize]) {
        let mut stride = stride;
        for &term in terms.iter().rev() {
            for axis in self.loops(term).rev() {
                row[axis] += stride;
                stride = stride.wrapping_mul(self.sizes[axis] as isize);
            }
        }
    }
}
