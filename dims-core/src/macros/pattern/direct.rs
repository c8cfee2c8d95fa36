//! Fast path for operands in memory without dims, under a pattern that names all their axes. The
//! loop of each axis is a constant, so only sizes and strides are looked up at run time.
//!
//! Unusual cases (sizes that do not match, an empty axis, a size that takes two steps to infer) are
//! left to the general path, which has the error messages.

use super::data::MOST;
use super::data::{GivenSize, Pattern, PatternLoops, Slot, Term};
use super::solve::OPEN;
use crate::execute::loops::{KeptLoops, RunLoops};
use crate::expr::evaluate::SMALL;
use crate::plan::shape::volume;
use kernels::copy::FEW;
use kernels::loops::rows::Rows;
use kernels::memory::axes::Axis;
use smallvec::SmallVec;

/// The loops of a pattern, and the strides of its operands along them.
pub struct BoundPattern {
    sizes: [usize; MOST],
    /// Which loops the result has, and which are reduced.
    pub loops: &'static PatternLoops,
    /// The strides of the operands.
    pub rows: Rows,
}

impl BoundPattern {
    /// The loops of a pattern with `axes` axes, before [`bind`](BoundPattern::bind).
    #[cfg_attr(not(unoptimized), inline(always))]
    pub fn new(loops: &'static PatternLoops, axes: usize) -> Self {
        BoundPattern { sizes: [OPEN; MOST], loops, rows: Rows::new(axes) }
    }

    /// Takes sizes and strides from operands with these axes. Returns false if the general path
    /// must handle them. (In place, because moving the sizes and strides would take as long as
    /// computing them.)
    #[inline]
    pub fn bind<'a>(
        &mut self,
        pattern: &'static Pattern,
        given: &[GivenSize],
        operands: impl Iterator<Item = &'a [Axis]> + Clone,
    ) -> bool {
        let sizes = &mut self.sizes;
        for &(axis, size) in given {
            sizes[axis] = size;
        }
        // A group can be split once the sizes of all axes outside groups are known.
        let mut grouped = false;
        for (slots, axes) in pattern.inputs.iter().zip(operands.clone()) {
            if slots.len() != axes.len() {
                return false;
            }
            let row = self.rows.push();
            for (slot, axis) in slots.iter().zip(axes) {
                let Slot::Axis(at) = *slot else {
                    grouped = true;
                    continue;
                };
                if sizes[at] != axis.size && core::mem::replace(&mut sizes[at], axis.size) != OPEN {
                    return false;
                }
                row[at] += axis.stride;
            }
        }
        if grouped && !self.split(pattern, operands) {
            return false;
        }
        !self.sizes().contains(&OPEN) && !self.sizes().contains(&0)
    }

    /// Splits groups: finds the size of a part that is not known yet, and the strides along all
    /// parts.
    fn split<'a>(&mut self, pattern: &'static Pattern, operands: impl Iterator<Item = &'a [Axis]>) -> bool {
        let sizes = &mut self.sizes;
        for (number, (slots, axes)) in pattern.inputs.iter().zip(operands).enumerate() {
            let row = self.rows.row_mut(number);
            for (slot, axis) in slots.iter().zip(axes) {
                let terms = match *slot {
                    Slot::Axis(_) => continue,
                    Slot::Group(terms) => terms,
                    Slot::Rest | Slot::Sum(_) => return false,
                };
                let (mut known, mut open) = (1_usize, None);
                for term in terms {
                    let &Term::Axis(at) = term else { return false };
                    match sizes[at] {
                        OPEN if open.is_some() => return false,
                        OPEN => open = Some(at),
                        size => known = known.saturating_mul(size),
                    }
                }
                match open {
                    None if known == axis.size => {}
                    Some(at) if known != 0 && axis.size.is_multiple_of(known) => {
                        sizes[at] = axis.size / known;
                    }
                    _ => return false,
                }
                let mut stride = axis.stride;
                for term in terms.iter().rev() {
                    let &Term::Axis(at) = term else { return false };
                    row[at] += stride;
                    stride = stride.wrapping_mul(sizes[at] as isize);
                }
            }
        }
        true
    }

    /// The length of each loop.
    #[inline]
    pub fn sizes(&self) -> &[usize] {
        &self.sizes[..self.rows.axes()]
    }

    #[inline]
    pub(crate) fn run(&self) -> RunLoops<'_> {
        RunLoops { sizes: self.sizes(), rows: &self.rows }
    }

    /// The loops of the result, which has `len` elements, each reduced from `count` positions.
    #[inline]
    pub(crate) fn result(&self, len: usize, count: Option<usize>) -> KeptLoops<'_> {
        let PatternLoops { kept, reduced } = self.loops;
        KeptLoops { kept, reduced, len, count }
    }

    /// The number of positions of these loops. `None` if it overflows, or if an array with `bytes`
    /// bytes for each position is too large.
    #[inline]
    pub fn volume(&self, loops: &[usize], bytes: usize) -> Option<usize> {
        volume(loops.iter().map(|&at| self.sizes[at]), bytes)
    }

    /// An operand's axes in the order of the result, preceded by axes of size 1, if nothing is
    /// reduced and there are few axes and few elements (`len`).
    #[cfg_attr(not(unoptimized), inline(always))]
    pub fn few(&self, operand: usize, len: usize) -> Option<[Axis; FEW]> {
        let PatternLoops { kept, reduced } = self.loops;
        if len > SMALL || kept.len() > FEW || !reduced.is_empty() {
            return None;
        }
        let row = self.rows.row(operand);
        let mut axes = [Axis::new(1, 0); FEW];
        for (axis, &at) in axes[FEW - kept.len()..].iter_mut().zip(kept.iter()) {
            *axis = Axis::new(self.sizes[at], row[at]);
        }
        Some(axes)
    }

    /// The sizes of an array with these slots. The number of its elements must not overflow.
    #[inline]
    pub fn shape(&self, slots: &[Slot]) -> SmallVec<[usize; MOST]> {
        let size = |slot: &Slot| match slot {
            Slot::Axis(at) => self.sizes[*at],
            Slot::Rest => 1,
            slot => {
                let of = |term: &Term| match term {
                    Term::Axis(at) => self.sizes[*at],
                    Term::Rest => 1,
                };
                slot.group(0).iter().map(of).product()
            }
        };
        let mut shape = [0; MOST];
        if slots.len() > MOST {
            return slots.iter().map(size).collect();
        }
        for (own, slot) in shape.iter_mut().zip(slots) {
            *own = size(slot);
        }
        SmallVec::from_buf_and_len(shape, slots.len())
    }
}
