//! Copies between layouts: rows at once where both sides have them, else square blocks that fit into registers and cache.

use super::isa::{Isa, Task, dispatch};
use crate::plan::nest::{Nest, Odometer, Row};
use core::mem::MaybeUninit;
use smallvec::SmallVec;

/// Writes the elements of a strided operand, in the nest's order, into contiguous memory.
///
/// # Safety
///
/// For every position of the nest, `origin` moved as the nest's only operand says is a valid element.
pub unsafe fn copy<T: Copy>(origin: *const T, nest: &Nest, out: &mut [MaybeUninit<T>]) {
    assert_eq!(nest.positions(), out.len(), "the loop nest covers the result");
    // SAFETY: the caller's promise; the nest's own result is contiguous, and as long as `out`.
    unsafe { copy_to(origin, nest, out.as_mut_ptr().cast()) };
}

/// As [`copy`], where the result lies as the nest says: `out` has every place that it reaches.
///
/// # Safety
///
/// As for [`copy`].
#[inline]
pub unsafe fn copy_strided<T: Copy>(origin: *const T, nest: &Nest, out: &mut [T]) {
    let reach: isize =
        nest.sizes.iter().zip(&nest.result).map(|(&size, &step)| (size as isize - 1).max(0) * step).sum();
    let forwards = nest.result.iter().all(|&step| step >= 0);
    assert!(
        nest.positions() == 0 || forwards && (reach as usize) < out.len(),
        "the result has the nest's places"
    );
    // SAFETY: the caller's promise; the farthest place lies within `out`.
    unsafe { copy_to(origin, nest, out.as_mut_ptr()) };
}

/// # Safety
///
/// As for [`copy`], and each position of the nest has a place of its own at `target`.
#[inline]
unsafe fn copy_to<T: Copy>(origin: *const T, nest: &Nest, target: *mut T) {
    let row = nest.operands().next_row();
    // SAFETY: the caller's promise.
    unsafe { copy_between(origin, row, target, &nest.result, &nest.sizes) };
}

/// Writes the elements at `origin`, moved as `row` says, to those at `target`, along loops whose innermost is one of neighbours
/// in the target.
///
/// # Safety
///
/// For every position of the loops the source has a valid element, and the target one of its own that nothing else has access to.
pub unsafe fn copy_between<T: Copy>(
    origin: *const T,
    row: Row<'_>,
    target: *mut T,
    result: &[isize],
    sizes: &[usize],
) {
    if !sizes.contains(&0) {
        let source = origin.wrapping_offset(row.offset);
        dispatch(Copying { source, strides: row.strides, target, result, sizes });
    }
}

struct Copying<'n, T> {
    source: *const T,
    strides: &'n [isize],
    target: *mut T,
    result: &'n [isize],
    sizes: &'n [usize],
}

/// A matrix of elements that is copied: `rows` lines of the result, each `columns` neighbours long.
struct Block<T> {
    source: *const T,
    source_row: isize,
    source_column: isize,
    target: *mut T,
    target_row: isize,
    target_column: isize,
    rows: usize,
    columns: usize,
}

impl<T: Copy> Task for Copying<'_, T> {
    type Out = ();

    #[inline(always)]
    fn run<I: Isa>(self) {
        let Copying { source, strides, target, result, sizes: loops } = self;
        let last = loops.len() - 1;
        // Besides the innermost loop of the result, the one along which the source has neighbours.
        let near = (0..last)
            .filter(|&at| strides[at] != 0)
            .min_by_key(|&at| strides[at].unsigned_abs())
            .filter(|&at| strides[last].unsigned_abs() > strides[at].unsigned_abs());
        let row = near.unwrap_or(last.saturating_sub(1));
        let mut sizes: SmallVec<[usize; 8]> = SmallVec::from_slice(loops);
        sizes[last] = 1;
        let (rows, source_row, target_row) = if row < last {
            sizes[row] = 1;
            (loops[row], strides[row], result[row])
        } else {
            (1, 0, 0)
        };
        let mut at: SmallVec<[usize; 8]> = SmallVec::from_elem(0, sizes.len());
        let mut odometer = Odometer::new(&sizes);
        while !odometer.is_done() {
            let mut from = 0;
            let mut to = 0;
            for (loop_, &at) in at.iter().enumerate() {
                from += at as isize * strides[loop_];
                to += at as isize * result[loop_];
            }
            let block = Block {
                source: source.wrapping_offset(from),
                source_row,
                source_column: strides[last],
                target: target.wrapping_offset(to),
                target_row,
                target_column: if loops[last] == 1 { 1 } else { result[last] },
                rows,
                columns: loops[last],
            };
            // SAFETY: rows and columns are loops of the nest: the source's elements are valid, by the contract of `copy`, and
            // the target's are places of the result.
            unsafe {
                match size_of::<T>() {
                    _ if block.target_column != 1 => block.scattered(),
                    _ if block.source_column == 1 => block.by_rows(),
                    _ if block.is_interleaved(2) => block.by_planes::<2>(),
                    _ if block.is_interleaved(3) => block.by_planes::<3>(),
                    _ if block.is_interleaved(4) => block.by_planes::<4>(),
                    _ if near.is_none() || block.source_row != 1 => block.by_elements(),
                    1 | 2 => block.by_squares::<32>(),
                    4 => block.by_squares::<16>(),
                    _ => block.by_squares::<8>(),
                }
            }
            odometer.advance(&mut at);
        }
    }
}

impl<T: Copy> Block<T> {
    /// Lines that are neighbours on both sides.
    #[inline(always)]
    unsafe fn by_rows(&self) {
        for row in 0..self.rows as isize {
            // SAFETY: the line lies in both matrices, and the target is not the source: it is new memory.
            unsafe {
                let (from, to) =
                    (self.source.offset(row * self.source_row), self.target.offset(row * self.target_row));
                core::ptr::copy_nonoverlapping(from, to, self.columns);
            }
        }
    }

    /// Whether the source has the elements of so many lines side by side, as an image has its colours.
    #[inline(always)]
    fn is_interleaved(&self, lines: usize) -> bool {
        (self.rows, self.source_row, self.source_column) == (lines, 1, lines as isize)
    }

    /// Lines whose elements lie side by side in the source, `N` at each place.
    #[inline(always)]
    unsafe fn by_planes<const N: usize>(&self) {
        let lines: [*mut T; N] =
            core::array::from_fn(|line| self.target.wrapping_offset(line as isize * self.target_row));
        for at in 0..self.columns {
            // SAFETY: the `N` elements lie in the source side by side, and each of them has its place in a line of the target.
            unsafe {
                let elements = self.source.cast::<[T; N]>().add(at).read();
                for (line, element) in lines.into_iter().zip(elements) {
                    line.add(at).write(element);
                }
            }
        }
    }

    /// Elements that are not neighbours in the result.
    #[inline(always)]
    unsafe fn scattered(&self) {
        for row in 0..self.rows as isize {
            for column in 0..self.columns as isize {
                // SAFETY: the element lies in both matrices.
                unsafe {
                    *self.target.offset(row * self.target_row + column * self.target_column) =
                        *self.source.offset(row * self.source_row + column * self.source_column);
                }
            }
        }
    }

    /// One element after the other.
    #[inline(always)]
    unsafe fn by_elements(&self) {
        for row in 0..self.rows {
            // SAFETY: the elements lie in both matrices.
            unsafe { self.part(row, 1, 0, self.columns) };
        }
    }

    /// A part of the matrix, one element after the other.
    #[inline(always)]
    unsafe fn part(&self, row: usize, rows: usize, column: usize, columns: usize) {
        for row in row as isize..(row + rows) as isize {
            for column in column as isize..(column + columns) as isize {
                // SAFETY: the caller asks for elements of the matrix.
                unsafe {
                    *self.target.offset(row * self.target_row + column) =
                        *self.source.offset(row * self.source_row + column * self.source_column);
                }
            }
        }
    }

    /// A transposition: squares of `B` x `B` elements, each line of which is one or a few vectors, in squares of squares that fit
    /// into the first-level cache.
    #[inline(always)]
    unsafe fn by_squares<const B: usize>(&self) {
        let whole_rows = self.rows - self.rows % B;
        let whole_columns = self.columns - self.columns % B;
        let large = 4 * B;
        let mut row = 0;
        while row < whole_rows {
            let row_end = (row + large).min(whole_rows);
            let mut column = 0;
            while column < whole_columns {
                let column_end = (column + large).min(whole_columns);
                for row in (row..row_end).step_by(B) {
                    for column in (column..column_end).step_by(B) {
                        // SAFETY: the square lies in both matrices.
                        unsafe { self.square::<B>(row, column) };
                    }
                }
                column = column_end;
            }
            row = row_end;
        }
        // SAFETY: what is left of both matrices.
        unsafe {
            self.part(0, whole_rows, whole_columns, self.columns - whole_columns);
            self.part(whole_rows, self.rows - whole_rows, 0, self.columns);
        }
    }

    #[allow(clippy::needless_range_loop)] // a transposition reads best with both indices
    #[inline(always)]
    unsafe fn square<const B: usize>(&self, row: usize, column: usize) {
        // SAFETY: the square lies in both matrices; a row of the source's transpose is `B` neighbours (its row stride is 1).
        unsafe {
            let from = self.source.offset(row as isize + column as isize * self.source_column);
            let to = self.target.offset(row as isize * self.target_row + column as isize);
            let mut lines = [[*from; B]; B];
            for (at, line) in lines.iter_mut().enumerate() {
                *line = *from.offset(at as isize * self.source_column).cast::<[T; B]>();
            }
            for row in 0..B {
                let mut out = [*from; B];
                for column in 0..B {
                    out[column] = lines[column][row];
                }
                *to.offset(row as isize * self.target_row).cast::<[T; B]>() = out;
            }
        }
    }
}
