//! Slices as row-major or column-major matrices.

use crate::copy::copy_strided;
use faer::{MatMut, MatRef};

/// A slice as a row-major matrix.
pub(super) fn by_rows<T>(data: &[T], rows: usize, columns: usize) -> MatRef<'_, T> {
    MatRef::from_row_major_slice(data, rows, columns)
}

/// A mutable slice as a row-major matrix.
pub(super) fn by_rows_mut<T>(data: &mut [T], rows: usize, columns: usize) -> MatMut<'_, T> {
    MatMut::from_row_major_slice_mut(data, rows, columns)
}

/// A slice as a column-major matrix.
pub(super) fn by_columns<T>(data: &[T], rows: usize, columns: usize) -> MatRef<'_, T> {
    MatRef::from_column_major_slice(data, rows, columns)
}

/// A mutable slice as a column-major matrix.
pub(super) fn by_columns_mut<T>(data: &mut [T], rows: usize, columns: usize) -> MatMut<'_, T> {
    MatMut::from_column_major_slice_mut(data, rows, columns)
}

/// Copies a matrix whose columns are `stride` elements apart to a row-major one.
pub(super) fn transpose<T: Copy + 'static>(
    from: &[T],
    stride: usize,
    [rows, columns]: [usize; 2],
    to: &mut [T],
) {
    copy_strided(from, [1, stride], to, [columns, 1], [rows, columns]);
}

/// Copies a row-major matrix to a column-major one.
pub(super) fn to_columns<T: Copy + 'static>(from: &[T], rows: usize, columns: usize, to: &mut [T]) {
    transpose(from, columns, [columns, rows], to);
}

/// Copies a column-major matrix to a row-major one.
pub(super) fn to_rows<T: Copy + 'static>(from: &[T], rows: usize, columns: usize, to: &mut [T]) {
    transpose(from, rows, [rows, columns], to);
}
