//! Loop axes along which no operand varies, such as those that `expand` adds. They are planned as
//! axes of size 1.
//!
//! A sum along such an axis is one term times the size of the axis. If the result has the axis, one
//! element is repeated along it.

use crate::error::DimError;
use alloc::vec::Vec;
use kernels::loops::axes::{AxisSet, Order, Sizes};
use kernels::loops::rows::Rows;
use kernels::memory::allocate::reserve;

/// The loops without the axes along which no operand varies.
pub(crate) struct Still {
    /// The sizes of all loop axes, with 1 where nothing varies.
    pub(crate) sizes: Sizes,
    /// The axes of the result along which something varies, in the order of the result.
    pub(crate) kept: Order,
    /// The number of times that each element counts in the reduction, or `usize::MAX` if this
    /// overflows. Then the number of all reduced positions overflows as well.
    pub(crate) times: usize,
}

impl Still {
    /// The loops without the axes that are in none of the `supports`, which are the sets of axes
    /// along which the factors vary. `None` if this leaves out no axis, if a size is 0, or if
    /// results are hollow (have no computed elements).
    pub(crate) fn of_supports(supports: &[AxisSet], sizes: &[usize], kept: &[usize]) -> Option<Still> {
        let union = supports.iter().fold(0, |union, axes| union | axes);
        Still::of(|axis| union >> axis & 1 == 1, sizes, kept)
    }

    /// The loops without the axes along which no operand has a stride. `None` if this leaves out no
    /// axis, if a size is 0, or if results are hollow (have no computed elements).
    pub(crate) fn of_rows(rows: &Rows, sizes: &[usize], kept: &[usize]) -> Option<Still> {
        Still::of(|axis| rows.varies(axis), sizes, kept)
    }

    fn of(varies: impl Fn(usize) -> bool, sizes: &[usize], kept: &[usize]) -> Option<Still> {
        #[cfg(feature = "std")]
        if kernels::memory::hollow::is_hollow() {
            // Hollow results are not computed, so there is no work to save.
            return None;
        }
        let is_still = |axis: usize| sizes[axis] > 1 && !varies(axis);
        if !(0..sizes.len()).any(is_still) || sizes.contains(&0) {
            return None;
        }
        let still = || (0..sizes.len()).filter(|&axis| is_still(axis));
        Some(Still {
            sizes: (0..sizes.len()).map(|axis| if is_still(axis) { 1 } else { sizes[axis] }).collect(),
            kept: kept.iter().copied().filter(|&axis| !is_still(axis)).collect(),
            times: still()
                .filter(|axis| !kept.contains(axis))
                .fold(1, |times: usize, axis| times.saturating_mul(sizes[axis])),
        })
    }

    /// The number of positions along some axes of the remaining loops.
    pub(crate) fn volume(&self, axes: &[usize]) -> usize {
        axes.iter().map(|&axis| self.sizes[axis]).product()
    }

    /// Repeats elements along the axes of the result along which nothing varies.
    pub(crate) fn repeated<T: Copy>(
        &self,
        mut data: Vec<T>,
        sizes: &[usize],
        kept: &[usize],
    ) -> Result<Vec<T>, DimError> {
        // From the innermost axis outwards: the inner axes then have their full sizes.
        let mut inner = 1;
        for &axis in kept.iter().rev() {
            if self.sizes[axis] != sizes[axis] {
                let mut out = reserve(data.len() * sizes[axis])?;
                for block in data.chunks_exact(inner) {
                    (0..sizes[axis]).for_each(|_| out.extend_from_slice(block));
                }
                data = out;
            }
            inner *= sizes[axis];
        }
        Ok(data)
    }
}
