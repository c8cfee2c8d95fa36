//! Constant lists of loop axes, computed from the types alone.

use crate::error::DimError;
use crate::types::rank::Rank;
use crate::types::set::{Dims, Keys, MAX_DIMS};

/// The maximum number of loop axes: dims and positional ones.
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

    /// The positions of the dims of `keys` in `all`.
    ///
    /// Plans trust that each axis occurs only once, so this is checked, although the types
    /// guarantee it.
    ///
    /// # Panics
    ///
    /// If a dim is repeated, or is not in `all`. (In a constant, this is a compile error.)
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

    const fn has(&self, axis: usize) -> bool {
        let mut i = 0;
        while i < self.len && self.axes[i] != axis {
            i += 1;
        }
        i < self.len
    }

    /// The loop axes of a tensor with the dims of `keys` and `rank` positional axes, in the order
    /// in which results are stored: the dims of a `Rest`, the other dims, the positional axes.
    ///
    /// So a batched result is a sequence of contiguous results. (Dims of more deeply nested `Rest`s
    /// come first. Dims at the same depth keep their order.)
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

    /// [`in_memory`](AxisList::in_memory) for a tensor with the dims `S` and the positional axes
    /// `R`.
    #[cfg_attr(not(unoptimized), inline(always))]
    pub fn in_memory_of<S: Dims, R: Rank>() -> &'static AxisList {
        const { &AxisList::in_memory(S::KEYS, R::N) }
    }

    /// Uses these axes as positions in `list`, and returns the axes there.
    pub const fn among(&self, list: &AxisList) -> Self {
        let mut found = Self::EMPTY;
        while found.len < self.len {
            found = found.with(list.axes[self.axes[found.len]]);
        }
        found
    }

    /// These axes without those of `other`.
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

/// The order of an expression's elements in memory, as far as its type determines it.
#[derive(Clone, Copy, Debug)]
pub enum Layout {
    /// The operands are scalars: any order.
    Free,
    /// Each of the `operands` has all dims of the expression and is contiguous in this order.
    In {
        /// The dims, the outermost first.
        order: &'static Keys,
        /// The number of operands, not counting scalars.
        operands: usize,
    },
    /// The type does not determine the order.
    Unknown,
}

impl Layout {
    /// The layout of an expression that has the operands of both layouts.
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

    /// The position in `all`, the operand's dims, of the dim with stride 1. `None` unless there is
    /// exactly one operand of known order.
    pub const fn innermost(self, all: &Keys) -> Option<usize> {
        match self {
            Layout::In { order, operands: 1 } => match order.as_slice() {
                [.., last] => all.position(last),
                [] => None,
            },
            _ => None,
        }
    }

    /// The number of operands, if their types say that each is stored in the order `wanted` of the
    /// dims of `all`. `None` otherwise, and if there are only scalars.
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

/// Checks the sizes of a result, in memory order: dims and their primes must have the same size.
pub fn check_primes_of<S: Dims, R: Rank>(sizes: &[usize]) -> Result<(), DimError> {
    let order = AxisList::in_memory_of::<S, R>().as_slice();
    let place = |at| order.iter().position(|&axis| axis == at).expect("each axis is in the order");
    S::KEYS.check_primes(|at| (sizes[place(at)], None))
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
