//! Elements that several streams share, each with its own axes: slicing and broadcasting copy
//! nothing.

use crate::storage::View;
use crate::storage::axes::AxisBlock;
use crate::storage::source::Axes;
use crate::types::set::Dims;
use alloc::sync::Arc;
use alloc::vec::Vec;
use kernels::memory::axes::{Axis, is_within, row_major};
use kernels::memory::buffer::Buffer;

/// Elements in shared memory, with a size and a stride for each axis.
///
/// Invariant: if no axis is empty, then every position of the axes, offset from `start` by the
/// strides, is an element of `data`.
#[derive(Clone)]
pub(crate) struct SharedElements<T> {
    data: Arc<Buffer<T>>,
    /// The index of the element at position 0 of every axis.
    start: usize,
    axes: Axes,
}

impl<T> SharedElements<T> {
    /// Contiguous elements in the order of their axes.
    ///
    /// # Panics
    ///
    /// If the product of `sizes` is not the length of `data`.
    pub(crate) fn contiguous(data: Vec<T>, sizes: &[usize]) -> Self {
        let axes = contiguous(sizes);
        let volume = sizes.iter().product::<usize>();
        assert_eq!(volume, data.len(), "the sizes are the shape of the data");
        SharedElements { data: Arc::new(data.into()), start: 0, axes }
    }

    pub(crate) fn axes(&self) -> &[Axis] {
        &self.axes
    }

    pub(crate) fn sizes(&self) -> impl ExactSizeIterator<Item = usize> + '_ {
        self.axes.iter().map(|axis| axis.size)
    }

    /// The same elements with other axes, and with `start` increased by `offset`.
    ///
    /// # Panics
    ///
    /// If the axes reach beyond the elements.
    pub(crate) fn with_axes(&self, offset: usize, axes: Axes) -> Self {
        let start = self.start + offset;
        let within = is_within(self.data.len(), start as i128, axes.iter().map(Axis::parts));
        assert!(within, "the axes do not reach beyond the elements");
        SharedElements { data: Arc::clone(&self.data), start, axes }
    }

    /// Whether the elements are contiguous in the order of their axes.
    pub(crate) fn is_contiguous(&self) -> bool {
        let mut step: usize = 1;
        self.axes.iter().rev().all(|axis| {
            let fits = axis.size == 1 || axis.stride == step as isize;
            step = step.saturating_mul(axis.size);
            fits
        })
    }

    /// A view whose dim `at` is the axis `from[at]`.
    ///
    /// # Panics
    ///
    /// If `from` does not name each axis once, or there is not one axis for each dim.
    pub(crate) fn view<S: Dims>(&self, from: &[usize]) -> View<'_, T, S> {
        let mut named = S::Axes::filled(Axis::default());
        assert_eq!(from.len(), S::Axes::LEN, "an axis for each dim");
        for (axis, &from) in named.as_mut_slice().iter_mut().zip(from) {
            *axis = self.axes[from];
        }
        let named_once = (0..self.axes.len()).all(|axis| from.contains(&axis));
        assert!(named_once && from.len() == self.axes.len(), "each axis once");
        // SAFETY: these are all of our axes in another order, so every position is one of ours: an
        // element of the data, which `self` keeps alive. There are no indices.
        unsafe { View::new(self.data.as_ptr().wrapping_add(self.start), named, [], (), None) }
    }
}

/// The axes of contiguous elements, the last one innermost.
pub(crate) fn contiguous(sizes: &[usize]) -> Axes {
    sizes.iter().zip(row_major(sizes)).map(|(&size, stride)| Axis::new(size, stride)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn axes_that_reach_too_far_are_refused() {
        let shared = SharedElements::contiguous(vec![0; 6], &[2, 3]);
        assert!(shared.is_contiguous());
        let axes =
            |sizes: &[(usize, isize)]| sizes.iter().map(|&(size, stride)| Axis::new(size, stride)).collect();
        let columns = shared.with_axes(1, axes(&[(2, 3), (2, 1)]));
        assert!(!columns.is_contiguous() && columns.sizes().eq([2, 2]));
        shared.with_axes(5, axes(&[(9, 0), (2, -1)]));
        shared.with_axes(6, axes(&[(0, 1), (9, 9)]));
        for (offset, wrong) in [
            (2, &[(2, 3), (2, 1)][..]),
            (0, &[(2, -1)]),
            (0, &[(usize::MAX, 1)]),
            (6, &[]),
            (0, &[(3, isize::MAX)]),
        ] {
            let refused = std::panic::catch_unwind(|| shared.with_axes(offset, axes(wrong)));
            assert!(refused.is_err(), "{offset} {wrong:?}");
        }
    }
}
