//! Solving for the sizes of a pattern's axes, from the sizes of the operands and the given sizes.

use super::data::{GivenSize, Pattern, Slot, Term};
use crate::error::DimError;
use crate::types::dim::DimRef;
use alloc::borrow::ToOwned;
use alloc::string::String;
use alloc::vec::Vec;
use smallvec::SmallVec;

/// A size that is not known yet. No array has this size. A given size that wrapped around, such as
/// `n - 2` for `n = 1`, does not equal it either.
pub(super) const OPEN: usize = 1 << (usize::BITS - 1);

/// The size that a dim of the surrounding scope gives to an axis, or `OPEN` if it has none yet.
#[inline]
pub fn dim_size<D: DimRef>(dim: D) -> usize {
    dim.known_size().unwrap_or(OPEN)
}

/// The sizes of all axes of a pattern.
pub struct Solved {
    /// The size of each axis.
    pub axes: SmallVec<[usize; 8]>,
    /// The sizes of the axes of `...` after broadcasting, which aligns the last axes.
    pub rest: SmallVec<[usize; 4]>,
}

impl Solved {
    /// The size of a group, or `None` if it overflows.
    #[inline]
    pub fn group(&self, terms: &[Term]) -> Option<usize> {
        let size = |total: usize, term: &Term| match term {
            Term::Axis(axis) => total.checked_mul(self.axes[*axis]),
            Term::Rest => self.rest.iter().try_fold(total, |total, &size| total.checked_mul(size)),
        };
        terms.iter().try_fold(1, size)
    }

    /// The sizes of the axes of an array with these slots.
    pub fn sizes(&self, pattern: &Pattern, slots: &[Slot]) -> Result<SmallVec<[usize; 8]>, DimError> {
        let mut sizes = SmallVec::new();
        for slot in slots {
            let size = match slot {
                Slot::Rest => {
                    sizes.extend_from_slice(&self.rest);
                    continue;
                }
                Slot::Axis(axis) => Some(self.axes[*axis]),
                Slot::Group(terms) => self.group(terms),
                Slot::Sum(groups) => groups
                    .iter()
                    .try_fold(0, |total: usize, terms| self.group(terms).and_then(|n| total.checked_add(n))),
            };
            sizes.push(size.ok_or_else(|| DimError::TooLarge { dims: format!("`{}`", pattern.text) })?);
        }
        Ok(sizes)
    }
}

/// The number of axes of `...` for an operand of this rank.
pub fn rest_of(slots: &[Slot], rank: usize) -> Result<usize, DimError> {
    let spread = slots.iter().any(|slot| matches!(slot, Slot::Rest));
    let named = slots.len() - usize::from(spread);
    match rank.checked_sub(named) {
        Some(rest) if spread || rest == 0 => Ok(rest),
        _ => Err(DimError::PatternRank { found: rank, named, spread }),
    }
}

/// Finds the sizes of all axes. `shapes` are the sizes of each operand's axes.
pub fn solve(pattern: &Pattern, given: &[GivenSize], shapes: &[&[usize]]) -> Result<Solved, DimError> {
    let mut solver = Solver {
        pattern,
        solved: Solved { axes: SmallVec::from_elem(OPEN, pattern.axes.len()), rest: SmallVec::new() },
        from: SmallVec::from_elem(usize::MAX, pattern.axes.len()),
    };
    for &(axis, size) in given {
        solver.solved.axes[axis] = size;
    }
    let mut open: SmallVec<[(usize, &Slot, usize); 4]> = SmallVec::new();
    for (operand, (slots, sizes)) in pattern.inputs.iter().zip(shapes).enumerate() {
        let rest = rest_of(slots, sizes.len())?;
        let mut at = 0;
        for slot in *slots {
            match slot {
                Slot::Rest => {
                    solver.broadcast(operand, &sizes[at..at + rest])?;
                    at += rest;
                    continue;
                }
                Slot::Axis(axis) => solver.unify(*axis, sizes[at], operand)?,
                Slot::Group(_) | Slot::Sum(_) => open.push((operand, slot, sizes[at])),
            }
            at += 1;
        }
    }
    // Each pass infers sizes from the known ones. A group whose sizes are all known is checked and
    // removed.
    while !open.is_empty() {
        let before = open.len();
        let mut left = SmallVec::new();
        for &(operand, slot, size) in &open {
            if !solver.group(slot, size, operand)? {
                left.push((operand, slot, size));
            }
        }
        if left.len() == before {
            let &(_, slot, size) = &left[0];
            return Err(solver.split(slot, size, "only one size can be inferred, but more are unknown"));
        }
        open = left;
    }
    match solver.solved.axes.iter().position(|&size| size == OPEN) {
        None => Ok(solver.solved),
        Some(axis) => Err(DimError::Unsized { dim: pattern.axes[axis] }),
    }
}

/// Whether an axis is a number in the pattern. `()` is another way to write `1`.
fn is_number(axis: &str) -> bool {
    axis == "()" || axis.starts_with(|first: char| first.is_ascii_digit())
}

struct Solver<'p> {
    pattern: &'p Pattern,
    solved: Solved,
    /// The operand that each size comes from. `usize::MAX` if the size was given.
    from: SmallVec<[usize; 8]>,
}

impl Solver<'_> {
    /// Records that an operand has `size` elements along an axis.
    #[inline]
    fn unify(&mut self, axis: usize, size: usize, operand: usize) -> Result<(), DimError> {
        let own = &mut self.solved.axes[axis];
        if *own == OPEN {
            *own = size;
            self.from[axis] = operand;
        } else if *own != size {
            return Err(self.conflict(axis, size, operand));
        }
        Ok(())
    }

    /// The error for an axis whose size is not 1, where the pattern has `1` or `()`.
    #[cold]
    fn not_one(&self, size: usize, operand: usize) -> DimError {
        let axis = if self.pattern.text.contains("()") { "()" } else { "1" };
        DimError::AxisConflict {
            axis,
            first: 1,
            first_place: self.place(axis, usize::MAX),
            second: size,
            second_place: self.place(axis, operand),
            pattern: self.pattern.text,
        }
    }

    /// The source of the size of an axis: an operand, or `usize::MAX` for a size that is given.
    fn place(&self, axis: &str, operand: usize) -> String {
        let inputs = self.pattern.inputs.len();
        match operand {
            usize::MAX if is_number(axis) => "as written".to_owned(),
            usize::MAX => "as given".to_owned(),
            operand if inputs > 1 => format!("in operand {}", operand + 1),
            _ => "in the operand".to_owned(),
        }
    }

    #[cold]
    fn conflict(&self, axis: usize, size: usize, operand: usize) -> DimError {
        let name = self.pattern.axes[axis];
        DimError::AxisConflict {
            axis: name,
            first: self.solved.axes[axis],
            first_place: self.place(name, self.from[axis]),
            second: size,
            second_place: self.place(name, operand),
            pattern: self.pattern.text,
        }
    }

    /// Broadcasts the axes of `...` in one operand with those of earlier operands, aligned at the
    /// right. Axes of size 1 are broadcast.
    fn broadcast(&mut self, operand: usize, sizes: &[usize]) -> Result<(), DimError> {
        let rest = &mut self.solved.rest;
        while rest.len() < sizes.len() {
            rest.insert(0, 1);
        }
        for (from_right, (own, &size)) in rest.iter_mut().rev().zip(sizes.iter().rev()).enumerate() {
            if *own == 1 {
                *own = size;
            } else if size != 1 && *own != size {
                return Err(DimError::AxisConflict {
                    axis: "...",
                    first: *own,
                    first_place: format!("in an earlier operand, along axis {from_right} from the right"),
                    second: size,
                    second_place: format!("in operand {}", operand + 1),
                    pattern: self.pattern.text,
                });
            }
        }
        Ok(())
    }

    /// Infers the size of one part of an axis from the size of the axis. Returns false if several
    /// sizes are unknown. It is an error if the sizes do not fit.
    fn group(&mut self, slot: &Slot, size: usize, operand: usize) -> Result<bool, DimError> {
        let groups: &[&[Term]] = match slot {
            Slot::Group(terms) => &[terms],
            Slot::Sum(groups) => groups,
            Slot::Rest | Slot::Axis(_) => &[],
        };
        let mut left = Some(size);
        let mut unknown = None;
        for &terms in groups {
            let mut known = 1_usize;
            let mut axis = None;
            for term in terms {
                let Term::Axis(own) = *term else { continue };
                match self.solved.axes[own] {
                    OPEN if axis.is_some() || unknown.is_some() => return Ok(false),
                    OPEN => axis = Some(own),
                    size => known = known.saturating_mul(size),
                }
            }
            match axis {
                Some(axis) => unknown = Some((axis, known)),
                None => left = left.and_then(|left| left.checked_sub(known)),
            }
        }
        let sum = groups.len() > 1;
        let Some(left) = left.or_else(|| (!sum).then_some(1)) else {
            return Err(self.split(slot, size, "the known sizes exceed it"));
        };
        match unknown {
            None if left == 0 => Ok(true),
            None if sum => Err(self.split(slot, size, "the sum of the sizes differs")),
            None if matches!(groups, [[]]) => Err(self.not_one(size, operand)),
            None => Err(self.split(slot, size, "the product of the sizes differs")),
            Some((_, 0)) => {
                let why = "the other sizes multiply to 0, so the unknown one cannot be found";
                Err(self.split(slot, size, why))
            }
            Some((_, known)) if !left.is_multiple_of(known) => {
                let why = if sum {
                    "the size that is left for the unknown part is not a multiple of its known sizes"
                } else {
                    "the product of the known sizes does not divide it"
                };
                Err(self.split(slot, size, why))
            }
            Some((axis, known)) => self.unify(axis, left / known, operand).map(|()| true),
        }
    }

    #[cold]
    fn split(&self, slot: &Slot, size: usize, why: &'static str) -> DimError {
        let term = |term: &Term| match *term {
            Term::Rest => "...".to_owned(),
            Term::Axis(axis) => match self.solved.axes[axis] {
                OPEN => self.pattern.axes[axis].to_owned(),
                _ if is_number(self.pattern.axes[axis]) => self.pattern.axes[axis].to_owned(),
                size => format!("{} = {size}", self.pattern.axes[axis]),
            },
        };
        let terms = |terms: &&[Term]| match terms {
            [] => "1".to_owned(),
            terms => terms.iter().map(term).collect::<Vec<_>>().join(", "),
        };
        let group = match slot {
            Slot::Sum(groups) => groups.iter().map(terms).collect::<Vec<_>>().join(" + "),
            slot => terms(&slot.group(0)),
        };
        DimError::Split { dim: None, group: format!("`({group})`"), size, why, origin: None }
    }
}
