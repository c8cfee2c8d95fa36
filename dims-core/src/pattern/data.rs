//! Patterns as plain data: what the macros read at compile time, and what runs.

use crate::plan::direct::Roles;

/// Which axes each operand of a pattern has, and which the result.
#[derive(Clone, Copy, Debug)]
pub struct Pattern {
    /// The pattern as it was written, for messages.
    pub text: &'static str,
    /// The names of the axes. An axis without a name is called by its number, `3`.
    pub axes: &'static [&'static str],
    /// The axes of each operand.
    pub inputs: &'static [&'static [Slot]],
    /// The axes of the result.
    pub output: &'static [Slot],
    /// Which part of which operand each part of the result is, where some axes are put together of several (`w1 + w2`).
    pub pieces: &'static [Piece],
    /// Which axes are loops of the result, and which are not; none if that depends on the operands (`...`), on the part of the result
    /// (`w1 + w2`), or if they are many.
    pub loops: Option<Loops>,
    /// What each axis is in a matrix product, if the pattern is one of two operands.
    pub roles: Option<Roles>,
}

/// The axes of a pattern as loops.
#[derive(Clone, Copy, Debug)]
pub struct Loops {
    /// The axes of the result, in its order, each part of a group on its own.
    pub kept: &'static [usize],
    /// The others, in the order in which they stand in the pattern.
    pub reduced: &'static [usize],
}

/// One axis of an array, in the words of a pattern.
#[derive(Clone, Copy, Debug)]
pub enum Slot {
    /// `...`: as many axes as are left.
    Rest,
    /// `i`: the axis is the one of this number in [`Pattern::axes`].
    Axis(usize),
    /// `(h w)`: the axis is made of these, the last one fastest; `()` and `1` are of none.
    Group(&'static [Term]),
    /// `(w1 + w2)`: the axis is made of these groups, one behind the other.
    Sum(&'static [&'static [Term]]),
}

/// A part of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Term {
    /// `...`
    Rest,
    /// The axis of this number.
    Axis(usize),
}

/// A part of the result, and the part of an operand that it is.
#[derive(Clone, Copy, Debug)]
pub struct Piece {
    /// The number of the operand.
    pub input: usize,
    /// For each [`Slot::Sum`] of the operand, which of its groups it is.
    pub from: &'static [usize],
    /// For each [`Slot::Sum`] of the result, which of its groups it is.
    pub to: &'static [usize],
}

/// The size of an axis that the caller gives: the axis's number, and the size.
pub type Given = (usize, usize);

impl Slot {
    /// The groups of which the axis is made; one, unless it is a sum.
    pub fn group(&self, choice: usize) -> &[Term] {
        match self {
            Slot::Rest | Slot::Axis(_) => &[],
            Slot::Group(terms) => terms,
            Slot::Sum(groups) => groups[choice],
        }
    }
}
