//! Transposes squares of numbers of 4 or 8 bytes in AVX2 registers.

use crate::machine::level::{Level, level};
use crate::machine::vector::Vector;
use core::arch::x86_64::{__m256, __m256d};

/// Writes the columns of a square of numbers to lines that are `step` apart, if the machine, the
/// size of the numbers and the step allow it. Returns whether it did.
///
/// # Safety
///
/// All lines are valid for writes; all bytes of the elements are initialized.
#[cfg_attr(not(unoptimized), inline(always))]
pub(super) unsafe fn transpose<T, const B: usize>(square: &[[T; B]; B], to: *mut T, step: isize) -> bool {
    if !matches!(size_of::<T>(), 4 | 8) || step <= 0 || level() == Level::Baseline {
        return false;
    }
    let square = square.as_ptr();
    // SAFETY: the machine has AVX2; the elements have the size of the vectors' elements; the rest
    // is the caller's promise.
    unsafe {
        if size_of::<T>() == 4 {
            singles::<B>(square.cast(), to.cast(), step as usize);
        } else {
            doubles::<B>(square.cast(), to.cast(), step as usize);
        }
    }
    true
}

#[target_feature(enable = "avx2")]
unsafe fn singles<const B: usize>(square: *const f32, to: *mut f32, step: usize) {
    // SAFETY: the caller's promise.
    unsafe { each::<__m256, B>(square, to, step) }
}

#[target_feature(enable = "avx2")]
unsafe fn doubles<const B: usize>(square: *const f64, to: *mut f64, step: usize) {
    // SAFETY: the caller's promise.
    unsafe { each::<__m256d, B>(square, to, step) }
}

/// # Safety
///
/// The square has `B` lines of `B` elements, and `B` lines are valid for writes; the machine has
/// AVX2.
#[cfg_attr(not(unoptimized), inline(always))]
unsafe fn each<V: Vector, const B: usize>(square: *const V::Elem, to: *mut V::Elem, step: usize) {
    let columns: [isize; B] = core::array::from_fn(|at| (at * B) as isize);
    for row in (0..B).step_by(V::TRANSPOSE_SIZE) {
        for column in (0..B).step_by(V::TRANSPOSE_SIZE) {
            // SAFETY: `B` is a multiple of `TRANSPOSE_SIZE`; the rest is the caller's promise.
            unsafe {
                let from = square.add(column * B + row);
                V::transpose(from, &columns[..V::TRANSPOSE_SIZE], to.add(row * step + column), step);
            }
        }
    }
}
