//! Slices as row-major or column-major matrices.

use crate::copy::copy_strided;
use faer::{MatMut, MatRef};

pub(super) fn by_rows<T>(data: &[T], rows: usize, columns: usize) -> MatRef<'_, T> {
    MatRef::from_row_major_slice(data, rows, columns)
}

pub(super) fn by_rows_mut<T>(data: &mut [T], rows: usize, columns: usize) -> MatMut<'_, T> {
    MatMut::from_row_major_slice_mut(data, rows, columns)
}

pub(super) fn by_columns<T>(data: &[T], rows: usize, columns: usize) -> MatRef<'_, T> {
    MatRef::from_column_major_slice(data, rows, columns)
}

pub(super) fn by_columns_mut<T>(data: &mut [T], rows: usize, columns: usize) -> MatMut<'_, T> {
    MatMut::from_column_major_slice_mut(data, rows, columns)
}

/// Copies a matrix, whose columns are `stride` elements apart, to a row-major one.
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

/// A triangle is copied in blocks of this many rows or columns.
const BLOCK: usize = 64;

/// Like [`to_columns`], for the elements of a square matrix on and below the diagonal. Some
/// elements above it are also copied.
pub(super) fn lower_to_columns<T: Copy + 'static>(from: &[T], size: usize, to: &mut [T]) {
    // Columns of the lower triangle are rows of the transpose's upper one.
    upper_to_rows(from, size, [size, size], to);
}

/// Like [`to_rows`], for the elements on and below the diagonal. Some elements above it are also
/// copied.
pub(super) fn lower_to_rows<T: Copy + 'static>(from: &[T], rows: usize, columns: usize, to: &mut [T]) {
    let rows = if columns == 0 { 0 } else { rows };
    for first in (0..rows).step_by(BLOCK) {
        let count = BLOCK.min(rows - first);
        let sizes = [count, columns.min(first + count)];
        copy_strided(&from[first..], [1, rows], &mut to[first * columns..], [columns, 1], sizes);
    }
}

/// Copies the elements on and above the diagonal, in the first `rows` rows of a matrix whose
/// columns are `stride` elements apart, to a row-major matrix. Some elements below the diagonal are
/// also copied.
pub(super) fn upper_to_rows<T: Copy + 'static>(
    from: &[T],
    stride: usize,
    [rows, columns]: [usize; 2],
    to: &mut [T],
) {
    for first in (0..rows).step_by(BLOCK) {
        let sizes = [BLOCK.min(rows - first), columns - first];
        let (own, place) = (&from[first * stride + first..], &mut to[first * columns + first..]);
        copy_strided(own, [1, stride], place, [columns, 1], sizes);
    }
}
