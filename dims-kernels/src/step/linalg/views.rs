//! Matrices in slices, row by row or column by column.

use crate::copy::copy_strided;
use faer::{MatMut, MatRef};

/// Elements row by row, as a matrix.
pub(super) fn by_rows<T>(data: &[T], rows: usize, columns: usize) -> MatRef<'_, T> {
    MatRef::from_row_major_slice(data, rows, columns)
}

/// The same, for writing.
pub(super) fn by_rows_mut<T>(data: &mut [T], rows: usize, columns: usize) -> MatMut<'_, T> {
    MatMut::from_row_major_slice_mut(data, rows, columns)
}

/// Elements column by column, as a matrix.
pub(super) fn by_columns<T>(data: &[T], rows: usize, columns: usize) -> MatRef<'_, T> {
    MatRef::from_column_major_slice(data, rows, columns)
}

/// The same, for writing.
pub(super) fn by_columns_mut<T>(data: &mut [T], rows: usize, columns: usize) -> MatMut<'_, T> {
    MatMut::from_column_major_slice_mut(data, rows, columns)
}

/// Copies a matrix whose columns are `stride` apart to one that is stored row by row.
pub(super) fn transpose<T: Copy + 'static>(
    from: &[T],
    stride: usize,
    [rows, columns]: [usize; 2],
    to: &mut [T],
) {
    copy_strided(from, [1, stride], to, [columns, 1], [rows, columns]);
}

/// Copies a matrix that is stored row by row to one that is stored column by column.
pub(super) fn to_columns<T: Copy + 'static>(from: &[T], rows: usize, columns: usize, to: &mut [T]) {
    transpose(from, columns, [columns, rows], to);
}

/// The reverse.
pub(super) fn to_rows<T: Copy + 'static>(from: &[T], rows: usize, columns: usize, to: &mut [T]) {
    transpose(from, rows, [rows, columns], to);
}
