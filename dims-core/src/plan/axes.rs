//! Lists of loop axes that follow from the types alone: constants, so that they cost nothing at run time.

use crate::types::rank::Rank;
use crate::types::set::{Dims, Keys, MAX_DIMS};

/// The most loop axes: dims and positional ones.
const MOST: usize = MAX_DIMS + 26;

/// Some of the loop axes, in some order.
#[derive(Clone, Copy, Debug)]
pub struct AxisList {
    len: usize,
    axes: [usize; MOST],
}

impl AxisList {
    const EMPTY: AxisList = AxisList { len: 0, axes: [0; MOST] };

    /// The axes `from` to `to`, exclusive.
    pub const fn range(from: usize, to: usize) -> Self {
        let mut list = Self::EMPTY;
        let mut axis = from;
        while axis < to {
            list = list.with(axis);
            axis += 1;
        }
        list
    }

    /// Where the dims of `keys` stand among those of `all`.
    ///
    /// Plans read elements along these axes, so each may be there once. The types say so, too; here it is checked where it is trusted.
    ///
    /// # Panics
    ///
    /// If a dim is named twice, or is not among `all`. (In a constant: rustc reports an error.)
    pub const fn of(keys: &Keys, all: &Keys) -> Self {
        let positions = keys.positions_in(all);
        let mut list = Self::EMPTY;
        while list.len < keys.as_slice().len() {
            let axis = positions[list.len];
            assert!(!list.has(axis), "each dim is named once");
            list = list.with(axis);
        }
        list
    }

    /// Whether `axis` is one of these.
    const fn has(&self, axis: usize) -> bool {
        let mut i = 0;
        while i < self.len && self.axes[i] != axis {
            i += 1;
        }
        i < self.len
    }

    /// The loop axes of a tensor with the dims of `keys` and `rank` positional axes, as results lie in memory: the dims in the order of
    /// the set, then the positional axes; but a rest comes first.
    ///
    /// What a function does for one example so lies together, and a batch is many of these, one behind the other. (What is behind
    /// several rests is the batch of a batch.)
    pub const fn in_memory(keys: &Keys, rank: usize) -> Self {
        let keys = keys.as_slice();
        let mut list = Self::EMPTY;
        let mut deepest = 0;
        let mut i = 0;
        while i < keys.len() {
            if keys[i].depth > deepest {
                deepest = keys[i].depth;
            }
            i += 1;
        }
        let mut left = deepest + 1;
        while left > 0 {
            left -= 1;
            i = 0;
            while i < keys.len() {
                if keys[i].depth == left {
                    list = list.with(i);
                }
                i += 1;
            }
        }
        list.join(&Self::range(keys.len(), keys.len() + rank))
    }

    /// [`in_memory`](AxisList::in_memory) for a tensor with the dims `S` and the positional axes `R`.
    #[cfg_attr(not(unoptimized), inline(always))]
    pub fn in_memory_of<S: Dims, R: Rank>() -> &'static AxisList {
        const { &AxisList::in_memory(S::KEYS, R::N) }
    }

    /// What stands at these positions of `list`.
    pub const fn among(&self, list: &AxisList) -> Self {
        let mut found = Self::EMPTY;
        while found.len < self.len {
            found = found.with(list.axes[self.axes[found.len]]);
        }
        found
    }

    /// These axes but those of `other`.
    pub const fn without(&self, other: &AxisList) -> Self {
        let mut list = Self::EMPTY;
        let mut i = 0;
        while i < self.len {
            if !other.has(self.axes[i]) {
                list = list.with(self.axes[i]);
            }
            i += 1;
        }
        list
    }

    /// These axes, then those of `other`.
    pub const fn join(mut self, other: &AxisList) -> Self {
        let mut i = 0;
        while i < other.len {
            self = self.with(other.axes[i]);
            i += 1;
        }
        self
    }

    /// Whether these are the same axes in the same order.
    pub const fn is_same(&self, other: &AxisList) -> bool {
        let mut same = self.len == other.len;
        let mut i = 0;
        while same && i < self.len {
            same = self.axes[i] == other.axes[i];
            i += 1;
        }
        same
    }

    const fn with(mut self, axis: usize) -> Self {
        self.axes[self.len] = axis;
        self.len += 1;
        self
    }

    /// The axes in order.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub const fn as_slice(&self) -> &[usize] {
        self.axes.split_at(self.len).0
    }
}

/// In which order the elements of an expression lie in memory, as far as its type says.
#[derive(Clone, Copy, Debug)]
pub enum Layout {
    /// It has none: its values are scalars, which are the same everywhere.
    Free,
    /// Each of its `operands` has all its dims, and elements that lie contiguously in this order of them.
    In {
        /// The dims, the outermost first.
        order: &'static Keys,
        /// How many operands there are, scalars aside.
        operands: usize,
    },
    /// Its type does not say.
    Unknown,
}

impl Layout {
    /// That of an expression whose operands are those of two.
    pub const fn and(self, other: Layout) -> Layout {
        match (self, other) {
            (Layout::Free, known) | (known, Layout::Free) => known,
            (Layout::In { order, operands: a }, Layout::In { order: same, operands: b })
                if order.is_same(same) =>
            {
                Layout::In { order, operands: a + b }
            }
            _ => Layout::Unknown,
        }
    }

    /// Where the dim along which elements are neighbours stands among those of `all`, which are all that the one operand has.
    pub const fn innermost(self, all: &Keys) -> Option<usize> {
        match self {
            Layout::In { order, operands: 1 } => match order.as_slice() {
                [.., last] => all.position(last),
                [] => None,
            },
            _ => None,
        }
    }

    /// How many operands lie in the order `wanted` of the dims of `all`; nothing if rustc does not know that all of them do.
    pub const fn operands_in(self, wanted: &AxisList, all: &Keys) -> Option<usize> {
        match self {
            Layout::In { order, operands } if order.as_slice().len() == all.as_slice().len() => {
                if AxisList::of(order, all).is_same(wanted) {
                    Some(operands)
                } else {
                    None
                }
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::set::DimKey;
    use std::panic::catch_unwind;

    const fn key(id: u64) -> Keys {
        Keys::one(DimKey { depth: 0, id, name: "dim", fixed: None, roles: &[] })
    }

    #[test]
    fn an_axis_is_listed_once() {
        let (a, b) = (key(1), key(2));
        let both = a.join(&b);
        assert_eq!(AxisList::of(&b.join(&a), &both).as_slice(), [1, 0]);
        let refused = catch_unwind(|| AxisList::of(&a.join(&a), &both)).expect_err("`a` is named twice");
        assert_eq!(refused.downcast_ref::<&str>(), Some(&"each dim is named once"));
    }
}
