//! The memory layout of the arrays of all examples, and pull-backs for one example.

use alloc::sync::Arc;
use alloc::vec::Vec;
use kernels::loops::axes::Sizes;
use kernels::loops::nest::Odometer;
use kernels::step::StepOperands;
use ndarray::{ArrayViewD, IxDyn};
use smallvec::SmallVec;

pub(super) fn view<'a, T>(shape: &[usize], data: &'a [T]) -> ArrayViewD<'a, T> {
    ArrayViewD::from_shape(IxDyn(shape), data).expect("the sizes are the shape of the data")
}

/// Calls `f` with each position of axes of these sizes, until it fails.
pub(super) fn each<F>(counts: &[usize], mut f: impl FnMut(&[usize]) -> Result<(), F>) -> Result<(), F> {
    let mut at: Sizes = counts.iter().map(|_| 0).collect();
    let mut odometer = Odometer::new(counts);
    while !odometer.is_done() {
        f(&at)?;
        odometer.advance(&mut at);
    }
    Ok(())
}

/// The stride of a tensor along a dim that it lacks.
pub(super) const ABSENT: usize = 0;

/// The memory layout of a tensor: one array for each position of its dims, the positional axes
/// innermost.
#[derive(Clone)]
pub struct ArrayLayout {
    /// For each dim of all tensors, the distance between neighboring arrays, counted in arrays:
    /// at least 1, or [`ABSENT`].
    pub(super) strides: Sizes,
    /// The sizes of the positional axes.
    pub(super) axes: Sizes,
}

impl ArrayLayout {
    /// The elements of the array at one position of all dims.
    pub(super) fn one<'a, T>(&self, data: &'a [T], at: &[usize]) -> &'a [T] {
        let len: usize = self.axes.iter().product();
        let first: usize = at.iter().zip(&self.strides).map(|(at, stride)| at * stride).sum();
        &data[first * len..(first + 1) * len]
    }
}

/// The layouts of all tensors.
pub(super) type Layouts = SmallVec<[ArrayLayout; 6]>;

/// A pull-back for arrays of dynamic rank. The arguments are all tensors and their layouts, the
/// position of an example, its result, the cotangent, and the gradients of earlier examples, to
/// which the gradients of this example are appended. The gradient with respect to an array must
/// have the shape of the array.
pub(super) type Pull<Flat, E> = Arc<
    dyn Fn(
            &StepOperands<'_, '_>,
            &[ArrayLayout],
            &[usize],
            ArrayViewD<'_, E>,
            ArrayViewD<'_, E>,
            &mut Flat,
        ) -> Result<(), WrongShape>
        + Send
        + Sync,
>;

/// The error for a gradient whose shape differs from that of its array.
pub struct WrongShape {
    #[cfg_attr(not(feature = "std"), allow(dead_code))]
    pub(super) found: Vec<usize>,
    #[cfg_attr(not(feature = "std"), allow(dead_code))]
    pub(super) expected: Vec<usize>,
}
