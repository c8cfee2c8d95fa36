//! Copies between layouts: rows at once where both sides have them, else square blocks that fit into registers and cache.

use super::isa::{Isa, Task, dispatch};
use crate::plan::nest::{Nest, Odometer};
use smallvec::SmallVec;
use std::mem::MaybeUninit;

/// Writes the elements of a strided operand, in the nest's order, into contiguous memory.
///
/// # Safety
///
/// For every position of the nest, `origin` moved as the nest's only operand says is a valid element.
#[inline]
pub unsafe fn copy<T: Copy>(origin: *const T, nest: &Nest, out: &mut [MaybeUninit<T>]) {
    let row = nest.operands().next_row();
    let source = origin.wrapping_offset(row.offset);
    let count: usize = nest.sizes.iter().product();
    assert_eq!(count, out.len(), "the loop nest covers the result");
    if count == 0 {
        return;
    }
    dispatch(Copying { source, strides: row.strides, nest, out });
}

struct Copying<'n, T> {
    source: *const T,
    strides: &'n [isize],
    nest: &'n Nest,
    out: &'n mut [MaybeUninit<T>],
}

/// A matrix of elements that is copied: `rows` lines of the result, each `columns` neighbours long.
struct Block<T> {
    source: *const T,
    source_row: isize,
    source_column: isize,
    target: *mut T,
    target_row: isize,
    rows: usize,
    columns: usize,
}

impl<T: Copy> Task for Copying<'_, T> {
    type Out = ();

    #[inline(always)]
    fn run<I: Isa>(self) {
        let Copying { source, strides, nest, out } = self;
        let last = nest.depth() - 1;
        // Besides the innermost loop of the result, the one along which the source has neighbours.
        let near = (0..last)
            .filter(|&at| strides[at] != 0)
            .min_by_key(|&at| strides[at].unsigned_abs())
            .filter(|&at| strides[last].unsigned_abs() > strides[at].unsigned_abs());
        let row = near.unwrap_or(last.saturating_sub(1));
        let mut sizes = nest.sizes.clone();
        sizes[last] = 1;
        let (rows, source_row, target_row) = if row < last {
            sizes[row] = 1;
            (nest.sizes[row], strides[row], nest.result[row])
        } else {
            (1, 0, 0)
        };
        let target = out.as_mut_ptr().cast::<T>();
        let mut at: SmallVec<[usize; 8]> = SmallVec::from_elem(0, sizes.len());
        let mut odometer = Odometer::new(&sizes);
        while !odometer.is_done() {
            let mut from = 0;
            let mut to = 0;
            for (loop_, &at) in at.iter().enumerate() {
                from += at as isize * strides[loop_];
                to += at as isize * nest.result[loop_];
            }
            let block = Block {
                source: source.wrapping_offset(from),
                source_row,
                source_column: strides[last],
                target: target.wrapping_offset(to),
                target_row,
                rows,
                columns: nest.sizes[last],
            };
            // SAFETY: rows and columns are loops of the nest: the source's elements are valid, by the contract of `copy`, and
            // the target's are places of `out`, which has as many as the nest has positions.
            unsafe {
                match size_of::<T>() {
                    _ if block.source_column == 1 => block.by_rows(),
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
                std::ptr::copy_nonoverlapping(from, to, self.columns);
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
