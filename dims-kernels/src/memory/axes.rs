//! Axes: sizes and strides.

use smallvec::SmallVec;

/// The size of one axis, and the distance in elements between neighbors along it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Axis {
    /// The number of elements along the axis.
    pub size: usize,
    /// The distance to the next element, in elements.
    pub stride: isize,
}

impl Axis {
    /// The size and the stride.
    #[cfg_attr(not(unoptimized), inline(always))]
    pub fn parts(&self) -> (usize, isize) {
        (self.size, self.stride)
    }

    /// An axis of `size` elements, `stride` apart.
    pub const fn new(size: usize, stride: isize) -> Self {
        Axis { size, stride }
    }
}

/// The strides of memory that is contiguous along the axes `order`, the last one fastest. All other
/// axes have stride 0.
pub fn contiguous(order: &[usize], sizes: &[usize]) -> SmallVec<[isize; 8]> {
    let mut strides = SmallVec::from_elem(0, sizes.len());
    let mut step: isize = 1;
    for &axis in order.iter().rev() {
        strides[axis] = step;
        step = step.wrapping_mul(sizes[axis] as isize);
    }
    strides
}

/// The strides of memory that is contiguous along all axes, the last one fastest.
pub fn row_major(sizes: &[usize]) -> SmallVec<[isize; 8]> {
    let mut strides = SmallVec::from_elem(1, sizes.len());
    for at in (1..sizes.len()).rev() {
        strides[at - 1] = isize::wrapping_mul(strides[at], sizes[at] as isize);
    }
    strides
}

/// Whether all elements that the axes (sizes and strides) reach from the index `start` are within a
/// slice of length `len`. If an axis is empty, they reach no element.
pub fn is_within(len: usize, start: i128, axes: impl IntoIterator<Item = (usize, isize)>) -> bool {
    let (mut least, mut most) = (start, start);
    for (size, stride) in axes {
        if size == 0 {
            return true;
        }
        let reach = (size as i128 - 1).saturating_mul(stride as i128);
        least = least.saturating_add(reach.min(0));
        most = most.saturating_add(reach.max(0));
    }
    least >= 0 && most < len as i128
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn axes_that_reach_others_are_noticed() {
        assert!(is_within(6, 0, [(2, 3), (3, 1)]) && is_within(6, 5, [(2, -3), (3, -1)]));
        assert!(
            is_within(6, 1, [(2, 3), (2, 1)]) && is_within(0, 9, [(0, 1), (9, 9)]) && is_within(1, 0, [])
        );
        assert!(!is_within(6, 1, [(2, 3), (3, 1)]) && !is_within(6, 4, [(2, -3), (3, -1)]));
        assert!(!is_within(0, 0, []) && !is_within(6, 0, [(2, -1)]) && !is_within(6, -1, [(2, 1)]));
        assert!(!is_within(9, 0, [(usize::MAX, isize::MAX), (usize::MAX, isize::MAX)]));
    }
}
