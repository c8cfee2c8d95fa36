//! Copies between layouts. Lines that are contiguous on both sides are copied whole. Two to four
//! lines that one side interleaves are copied at once. Transpositions go block by block, in small
//! squares. All other copies go element by element.

mod blocks;
#[cfg(x86_vectors)]
mod vectors;

use crate::copy::blocks::{BlockedCopy, is_number};
use crate::error::Error;
use crate::loops::nest::{Nest, Row};
use crate::machine::isa::dispatch;
use crate::memory::axes::Axis;
use crate::memory::destination::Destination;
use crate::memory::elements::{Elements, ElementsMut, OutputSlots};
use alloc::vec::Vec;
use core::mem::MaybeUninit;

/// Fills contiguous memory with the elements of the nest's first operand, in the nest's order.
///
/// # Safety
///
/// The row of the first operand maps each position of the nest to a position of the elements' axes.
pub unsafe fn copy<T: Copy + 'static>(elements: Elements<'_, T>, nest: &Nest, out: &mut [MaybeUninit<T>]) {
    assert_eq!(nest.positions(), out.len(), "the loop nest covers the result");
    let row = nest.operands().next_row();
    row.assert_within(&elements);
    // SAFETY: each position is an element, as the caller promises; the nest's result is contiguous
    // and as long as `out`.
    unsafe { copy_between(elements.as_ptr(), row, out.as_mut_ptr().cast(), &nest.result, &nest.sizes) };
}

/// The number of axes that `copy_few` takes.
pub const FEW: usize = 4;

/// Writes the elements along all of these axes, the last one fastest. For few elements, this takes
/// less time than planning a copy.
///
/// # Panics
///
/// If there are not as many slots as elements, or the memory is reused.
///
/// # Safety
///
/// Each position of `axes` is a position of the elements' axes.
#[cfg_attr(not(unoptimized), inline(always))]
pub unsafe fn copy_few<T: Copy + 'static>(
    elements: Elements<'_, T>,
    axes: &[Axis; FEW],
    to: Destination<'_, T>,
) -> Result<Vec<T>, Error> {
    let [a, b, c, d] = *axes;
    let count = [a, b, c, d].iter().map(|axis| axis.size).product::<usize>();
    assert_eq!(count, to.len(), "each place gets an element");
    let fill = |out: &mut [MaybeUninit<T>]| {
        let mut places = out.iter_mut();
        for i in 0..a.size as isize {
            for j in 0..b.size as isize {
                for k in 0..c.size as isize {
                    let row = i * a.stride + j * b.stride + k * c.stride;
                    for (l, place) in (0..d.size as isize).zip(&mut places) {
                        // SAFETY: this is the offset of a position of the axes, and the caller
                        // promises that each position is an element.
                        place.write(unsafe { elements.nth(row + l * d.stride) });
                    }
                }
            }
        }
        Ok(())
    };
    // SAFETY: there are as many slots as positions of the axes, and each position writes one slot.
    unsafe { to.fill(fill) }
}

/// Writes the elements along a row to slots. The element at a position of the loops goes to the
/// slot at `offset` plus the position's offset by the strides `result`. `sizes` are those of the
/// loops.
///
/// # Panics
///
/// If `out` does not have all of these slots.
///
/// # Safety
///
/// The row maps each position of the loops to a position of the elements' axes.
#[inline]
pub unsafe fn copy_row<T: Copy + 'static>(
    elements: Elements<'_, T>,
    row: Row<'_>,
    out: OutputSlots<'_, T>,
    offset: usize,
    (result, sizes): (&[isize], &[usize]),
) {
    row.assert_within(&elements);
    let target = out.reached(offset, sizes, result);
    // SAFETY: each position is an element, as the caller promises; `reached` has found its slot in
    // `out`, which is borrowed exclusively.
    unsafe { copy_between(elements.as_ptr(), row, target.cast(), result, sizes) };
}

/// Copies the elements along `row` to `target`, along the row `result`.
///
/// # Safety
///
/// Each row maps each position of the loops to a position of the axes of that row's elements.
#[inline]
pub unsafe fn copy_onto<T: Copy + 'static>(
    elements: Elements<'_, T>,
    row: Row<'_>,
    mut target: ElementsMut<'_, T>,
    result: Row<'_>,
    sizes: &[usize],
) {
    row.assert_within(&elements);
    result.assert_within(&target);
    let start = target.as_mut_ptr().wrapping_offset(result.offset);
    // SAFETY: each position is an element on both sides, as the caller promises. The target is
    // borrowed exclusively, so the elements are disjoint.
    unsafe { copy_between(elements.as_ptr(), row, start, result.strides, sizes) };
}

/// Copies the elements at the positions of some loops. `strides` are the strides of `from`, and
/// `result` those of `to`.
///
/// # Panics
///
/// If a slice does not have all of these elements.
#[cfg(feature = "linalg")]
pub(crate) fn copy_strided<T: Copy + 'static, const N: usize>(
    from: &[T],
    strides: [usize; N],
    to: &mut [T],
    result: [usize; N],
    sizes: [usize; N],
) {
    if sizes.contains(&0) {
        return;
    }
    let last = |strides: [usize; N]| -> usize {
        strides.iter().zip(sizes).map(|(&stride, size)| stride * (size - 1)).sum()
    };
    assert!(last(strides) < from.len() && last(result) < to.len(), "the loops stay within the slices");
    let [strides, result] = [strides, result].map(|own| own.map(|stride| stride as isize));
    // SAFETY: strides are not negative, so each position is between the first one and the last one,
    // and the last one is an element of both slices. `to` is borrowed exclusively.
    unsafe { copy_between(from.as_ptr(), Row::new(&strides), to.as_mut_ptr(), &result, &sizes) };
}

/// Copies elements from `origin`, along `row`, to `target`, along the strides `result`. This is
/// fastest if the innermost loop is contiguous in the target.
///
/// # Safety
///
/// For every position of the loops, the source has a valid element, and the target has a separate
/// element that nothing else accesses.
pub unsafe fn copy_between<T: Copy + 'static>(
    origin: *const T,
    row: Row<'_>,
    target: *mut T,
    result: &[isize],
    sizes: &[usize],
) {
    if sizes.contains(&0) {
        return;
    }
    let source = origin.wrapping_offset(row.offset);
    let (strides, are_numbers) = (row.strides, is_number::<T>());
    macro_rules! as_words {
        ($($word:ty, $copy:ident;)*) => {$(
            if const { is_like::<T, $word>() } {
                // SAFETY: the words have the size of the elements and at most their alignment, and
                // may be uninitialized where the elements have padding, which numbers do not have.
                // No loop is empty. The rest is the caller's promise.
                return unsafe { $copy(source.cast(), strides, target.cast(), result, sizes, are_numbers) };
            }
        )*};
    }
    as_words! {
        u8, copy_1;
        u16, copy_2;
        u32, copy_4;
        u64, copy_8;
        [u32; 2], copy_2x4;
        [u64; 2], copy_2x8;
    }
    dispatch(BlockedCopy { source, strides, target, result, sizes, are_numbers });
}

/// Whether elements can be copied as words of the type `W`.
const fn is_like<T, W>() -> bool {
    size_of::<T>() == size_of::<W>() && align_of::<T>() >= align_of::<W>()
}

/// Copies of words of one size. A copy only moves bytes, so each function serves all element types
/// that are [like](is_like) its words, and other crates need not compile it again.
macro_rules! word_copies {
    ($($copy:ident $word:ty;)*) => {$(
        /// # Safety
        ///
        /// As for [`copy_between`]; no loop is empty, and if `are_numbers`, all bytes of the
        /// source's words are initialized.
        unsafe fn $copy(
            source: *const MaybeUninit<$word>,
            strides: &[isize],
            target: *mut MaybeUninit<$word>,
            result: &[isize],
            sizes: &[usize],
            are_numbers: bool,
        ) {
            dispatch(BlockedCopy { source, strides, target, result, sizes, are_numbers });
        }
    )*};
}

word_copies! {
    copy_1 u8;
    copy_2 u16;
    copy_4 u32;
    copy_8 u64;
    copy_2x4 [u32; 2];
    copy_2x8 [u64; 2];
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::{vec, vec::Vec};
    use core::fmt::Debug;

    /// Transposes matrices about as large as the squares, between memory with gaps.
    fn check<T: Copy + PartialEq + Debug + 'static>(element: fn(usize) -> T) {
        for (rows, columns) in [(8, 8), (16, 16), (17, 40), (33, 8), (7, 100), (64, 79)] {
            let (source_column, target_row) = (rows + 3, columns + 5);
            let source: Vec<T> = (1..=columns * source_column).map(element).collect();
            let mut expected = vec![element(0); rows * target_row];
            for row in 0..rows {
                for column in 0..columns {
                    expected[row * target_row + column] = source[row + column * source_column];
                }
            }
            let mut out = vec![element(0); rows * target_row];
            let (strides, result) = ([1, source_column as isize], [target_row as isize, 1]);
            // SAFETY: the strides reach elements of the two vectors.
            unsafe {
                let row = Row::new(&strides);
                copy_between(source.as_ptr(), row, out.as_mut_ptr(), &result, &[rows, columns]);
            }
            assert_eq!(out, expected, "{rows} x {columns}");
        }
    }

    #[test]
    fn transpositions_move_every_element() {
        check(|at| at as u32);
        check(|at| at as f32);
        check(|at| at as f64);
        check(|at| at);
        check(|at| char::from_u32(at as u32 + 32).expect("a character"));
        check(|at| at as u8);
        check(|at| (at as u16, at as u8));
        check(|at| [at, 2 * at]);
    }
}
