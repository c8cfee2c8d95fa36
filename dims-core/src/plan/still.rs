//! Loop axes along which no operand varies, as those of `expand`: they are planned as axes of one element.
//!
//! A sum along such an axis is a product with its size, and a result along it is one element, repeated.

use crate::error::DimError;
use alloc::vec::Vec;
use kernels::loops::axes::{AxisSet, Order, Sizes};
use kernels::loops::rows::Rows;
use kernels::memory::allocate::reserve;
use kernels::reduce::reducers::times;
use kernels::scalar::Num;

/// The loops without the axes along which no operand varies.
pub(crate) struct Still {
    /// The sizes of all loop axes, 1 where nothing varies.
    pub(crate) sizes: Sizes,
    /// The axes of the result along which something varies, in the order of the result.
    pub(crate) kept: Order,
    /// How often each element counts in the reduction.
    times: usize,
}

impl Still {
    /// The axes along which no factor varies, where each has the axes of a set; nothing if there are none.
    pub(crate) fn of_supports(supports: &[AxisSet], sizes: &[usize], kept: &[usize]) -> Option<Still> {
        let union = supports.iter().fold(0, |union, axes| union | axes);
        Still::of(|axis| union >> axis & 1 == 1, sizes, kept)
    }

    /// The axes along which no operand has a stride.
    pub(crate) fn of_rows(rows: &Rows, sizes: &[usize], kept: &[usize]) -> Option<Still> {
        Still::of(|axis| rows.varies(axis), sizes, kept)
    }

    fn of(varies: impl Fn(usize) -> bool, sizes: &[usize], kept: &[usize]) -> Option<Still> {
        #[cfg(feature = "std")]
        if kernels::memory::hollow::is_hollow() {
            // Nothing is computed, so there is nothing to repeat.
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
            times: still().filter(|axis| !kept.contains(axis)).map(|axis| sizes[axis]).product(),
        })
    }

    /// The number of positions of some axes.
    pub(crate) fn volume(&self, axes: &[usize]) -> usize {
        axes.iter().map(|&axis| self.sizes[axis]).product()
    }

    /// How often each element counts in the reduction.
    pub(crate) fn times(&self) -> usize {
        self.times
    }

    /// Sums of elements that count once, as those of all loops, contiguous in the order `kept`.
    pub(crate) fn sums<T: Num>(
        &self,
        mut data: Vec<T>,
        sizes: &[usize],
        kept: &[usize],
    ) -> Result<Vec<T>, DimError> {
        if self.times != 1 {
            data.iter_mut().for_each(|sum| *sum = times(*sum, self.times));
        }
        self.repeated(data, sizes, kept)
    }

    /// Elements along the axes of the result that vary, repeated along the others.
    pub(crate) fn repeated<T: Copy>(
        &self,
        mut data: Vec<T>,
        sizes: &[usize],
        kept: &[usize],
    ) -> Result<Vec<T>, DimError> {
        // One axis after the other, from the innermost: the axes inside it have their sizes by then.
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
