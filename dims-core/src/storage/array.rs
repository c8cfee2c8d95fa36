//! Results as ndarray's arrays.

use alloc::vec::Vec;
use ndarray::{Array, Dimension};

/// The array of these elements in the standard layout.
///
/// It is `Array::from_shape_vec` for what is known to fit, without what that costs: about as much as a product of two 4 x 4 matrices.
///
/// # Panics
///
/// If the elements are not as many as the shape has.
#[inline]
pub(crate) fn array<T, D: Dimension>(shape: D, data: Vec<T>) -> Array<T, D> {
    let wanted = shape.slice().iter().try_fold(1usize, |len, &size| len.checked_mul(size));
    if wanted != Some(data.len()) || data.is_empty() {
        // (Sizes beside a zero may be any; ndarray has a limit for them.)
        return Array::from_shape_vec(shape, data).expect("the sizes are the shape of the data");
    }
    // SAFETY: there are as many elements as the shape has, and no overflow in counting them.
    unsafe { Array::from_shape_vec_unchecked(shape, data) }
}
