//! Lists of loop axes that follow from the types alone: constants, so that they cost nothing at run time.

use crate::set::{Keys, MAX_DIMS};

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
    pub const fn of(keys: &Keys, all: &Keys) -> Self {
        let positions = keys.positions_in(all);
        let mut list = Self::EMPTY;
        while list.len < keys.as_slice().len() {
            list = list.with(positions[list.len]);
        }
        list
    }

    /// These axes but those of `other`.
    pub const fn without(&self, other: &AxisList) -> Self {
        let mut list = Self::EMPTY;
        let mut i = 0;
        while i < self.len {
            let mut j = 0;
            while j < other.len && other.axes[j] != self.axes[i] {
                j += 1;
            }
            if j == other.len {
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

    const fn with(mut self, axis: usize) -> Self {
        self.axes[self.len] = axis;
        self.len += 1;
        self
    }

    /// The axes in order.
    pub const fn as_slice(&self) -> &[usize] {
        self.axes.split_at(self.len).0
    }
}
