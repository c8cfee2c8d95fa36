//! Patterns as plain data. The macros parse them at compile time.

use crate::plan::direct::Roles;

/// The maximum number of axes of a pattern with [`PatternLoops`].
pub const MOST: usize = 12;

/// The axes of each operand and of the result of a pattern.
///
/// Kernels rely on the validity of a pattern, so it can only be constructed by
/// [`new`](Pattern::new), which checks its arguments.
#[derive(Clone, Copy, Debug)]
pub struct Pattern {
    /// The pattern as it was written, for messages.
    pub(crate) text: &'static str,
    /// The axes as written: a name, a number such as `3`, or `_`.
    pub(crate) axes: &'static [&'static str],
    /// The axes of each operand.
    pub(crate) inputs: &'static [&'static [Slot]],
    /// The axes of the result.
    pub(crate) output: &'static [Slot],
    /// The part of an operand that each part of the result is copied from, if the call joins or
    /// splits arrays (`w1 + w2`).
    pub(crate) pieces: &'static [Piece],
    /// Which axes are loops of the result, and which are reduced. `None` if this depends on the
    /// operands (`...`) or on the part of the result (`w1 + w2`), or if there are too many axes.
    pub(crate) loops: Option<PatternLoops>,
    /// The role of each axis in a matrix product. `None` unless there are two operands, and the
    /// pattern has no groups, no `...`, and no axis twice in one array.
    pub(crate) roles: Option<Roles>,
}

/// The axes of a pattern as loops.
#[derive(Clone, Copy, Debug)]
pub struct PatternLoops {
    /// The axes of the result, in its order. Groups are split into their parts.
    pub kept: &'static [usize],
    /// The other axes, in the order of the pattern.
    pub reduced: &'static [usize],
}

impl Pattern {
    /// A pattern whose axes are numbered by their position in `axes`.
    ///
    /// # Panics
    ///
    /// If an operand or the result has an axis that is not in `axes`, or has `...` twice; if the
    /// result has an axis twice; if a piece is of an operand that does not exist; or if `loops` are
    /// not the axes of the result in its order and all other axes, or are given for a pattern with
    /// `...`, sums, or more than [`MOST`] axes. (In a constant, these are compile errors.)
    pub const fn new(
        text: &'static str,
        axes: &'static [&'static str],
        inputs: &'static [&'static [Slot]],
        output: &'static [Slot],
        pieces: &'static [Piece],
        loops: Option<PatternLoops>,
    ) -> Self {
        let mut at = 0;
        while at < inputs.len() {
            assert!(are_named(inputs[at], axes.len(), false), "an axis of an operand has a name");
            at += 1;
        }
        assert!(are_named(output, axes.len(), true), "an axis stands in the result once");
        at = 0;
        while at < pieces.len() {
            assert!(pieces[at].input < inputs.len(), "a piece is of one of the operands");
            at += 1;
        }
        if let Some(loops) = &loops {
            assert!(axes.len() <= MOST, "a pattern of many axes has no list of loops");
            assert!(are_loops(loops, output, axes.len()), "loops are the axes of the result and all others");
            at = 0;
            while at < inputs.len() {
                assert!(names_all(inputs[at]), "the number of loops is known");
                at += 1;
            }
        }
        let roles = match inputs {
            [a, b] => match (numbers(a), numbers(b), numbers(output)) {
                (Some(a), Some(b), Some(result)) => {
                    Roles::of_axes(a.as_slice(), b.as_slice(), result.as_slice())
                }
                _ => None,
            },
            _ => None,
        };
        Pattern { text, axes, inputs, output, pieces, loops, roles }
    }
}

/// Whether the axes of an array are all below `axes`, `...` occurs at most once, and, if `once` is
/// set, no axis occurs twice. (Groups of one sum may share axes, because each part of the result
/// uses only one of these groups.)
const fn are_named(slots: &[Slot], axes: usize, once: bool) -> bool {
    let mut at = 0;
    while at < slots.len() {
        let mut group = 0;
        while group < slots[at].groups() {
            let mut part = 0;
            while let Some(term) = slots[at].term(group, part) {
                if matches!(term, Term::Axis(axis) if axis >= axes) {
                    return false;
                }
                let twice = slots[at].has(group, term, part) || stands_before(slots, at, term);
                if twice && (once || matches!(term, Term::Rest)) {
                    return false;
                }
                part += 1;
            }
            group += 1;
        }
        at += 1;
    }
    true
}

/// Whether one of the slots before `end` has this term.
const fn stands_before(slots: &[Slot], end: usize, term: Term) -> bool {
    let mut at = 0;
    while at < end {
        let mut group = 0;
        while group < slots[at].groups() {
            if slots[at].has(group, term, usize::MAX) {
                return true;
            }
            group += 1;
        }
        at += 1;
    }
    false
}

/// Whether the slots determine the number of axes, and are not sums.
const fn names_all(slots: &[Slot]) -> bool {
    let mut at = 0;
    while at < slots.len() {
        if matches!(slots[at], Slot::Sum(_)) || slots[at].has(0, Term::Rest, usize::MAX) {
            return false;
        }
        at += 1;
    }
    true
}

/// Whether `kept` are the axes of the result in its order, and `reduced` the other axes below
/// `axes`, each once.
const fn are_loops(loops: &PatternLoops, output: &[Slot], axes: usize) -> bool {
    let PatternLoops { kept, reduced } = loops;
    if !names_all(output) || kept.len() + reduced.len() != axes {
        return false;
    }
    let (mut at, mut found) = (0, 0);
    while at < output.len() {
        let mut part = 0;
        while let Some(Term::Axis(axis)) = output[at].term(0, part) {
            if found == kept.len() || kept[found] != axis {
                return false;
            }
            found += 1;
            part += 1;
        }
        at += 1;
    }
    let mut seen: u64 = 0;
    at = 0;
    while at < axes {
        let axis = if at < kept.len() { kept[at] } else { reduced[at - kept.len()] };
        if axis >= axes || seen >> axis & 1 == 1 {
            return false;
        }
        seen |= 1 << axis;
        at += 1;
    }
    found == kept.len()
}

/// The axes of an array. `None` if it has groups, sums, `...`, a repeated axis, or more than
/// [`MOST`] axes.
const fn numbers(slots: &[Slot]) -> Option<Numbers> {
    let mut list = Numbers { len: 0, axes: [0; MOST] };
    if slots.len() > MOST {
        return None;
    }
    while list.len < slots.len() {
        let Slot::Axis(axis) = slots[list.len] else { return None };
        if stands_before(slots, list.len, Term::Axis(axis)) {
            return None;
        }
        list.axes[list.len] = axis;
        list.len += 1;
    }
    Some(list)
}

struct Numbers {
    len: usize,
    axes: [usize; MOST],
}

impl Numbers {
    const fn as_slice(&self) -> &[usize] {
        self.axes.split_at(self.len).0
    }
}

/// One axis of an array in a pattern, or the axes of `...`.
#[derive(Clone, Copy, Debug)]
pub enum Slot {
    /// `...`: all axes that the pattern does not name.
    Rest,
    /// `i`: the axis of the pattern with this number.
    Axis(usize),
    /// `(h w)`: an axis merged from these parts, the last one fastest. `()` and `1` have no parts.
    Group(&'static [Term]),
    /// `(w1 + w2)`: the concatenation of these groups.
    Sum(&'static [&'static [Term]]),
}

/// A part of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Term {
    /// `...`
    Rest,
    /// The axis with this number.
    Axis(usize),
}

/// A part of the result, and the part of an operand that it is copied from.
#[derive(Clone, Copy, Debug)]
pub struct Piece {
    /// The number of the operand.
    pub input: usize,
    /// The number of the chosen group in each [`Slot::Sum`] of the operand.
    pub from: &'static [usize],
    /// The number of the chosen group in each [`Slot::Sum`] of the result.
    pub to: &'static [usize],
}

/// A size given by the caller: the number of the axis, and its size.
pub type GivenSize = (usize, usize);

impl Slot {
    /// The number of groups to choose from. (`Axis` and `Rest` count as one group with one part.)
    const fn groups(&self) -> usize {
        match self {
            Slot::Sum(groups) => groups.len(),
            _ => 1,
        }
    }

    const fn term(&self, group: usize, part: usize) -> Option<Term> {
        let terms: &[Term] = match self {
            Slot::Rest if part == 0 => return Some(Term::Rest),
            Slot::Axis(axis) if part == 0 => return Some(Term::Axis(*axis)),
            Slot::Rest | Slot::Axis(_) => return None,
            Slot::Group(terms) => terms,
            Slot::Sum(groups) => groups[group],
        };
        if part < terms.len() { Some(terms[part]) } else { None }
    }

    /// Whether this group has this term among its parts before `end`.
    const fn has(&self, group: usize, term: Term, end: usize) -> bool {
        let mut part = 0;
        while part < end
            && let Some(own) = self.term(group, part)
        {
            match (own, term) {
                (Term::Rest, Term::Rest) => return true,
                (Term::Axis(own), Term::Axis(other)) if own == other => return true,
                _ => part += 1,
            }
        }
        false
    }

    /// The terms of the group chosen by `choice`, which only matters for sums. Empty for `Axis` and
    /// `Rest`.
    pub fn group(&self, choice: usize) -> &[Term] {
        match self {
            Slot::Rest | Slot::Axis(_) => &[],
            Slot::Group(terms) => terms,
            Slot::Sum(groups) => groups[choice],
        }
    }
}
