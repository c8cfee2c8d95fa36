//! Slices as row-major or column-major matrices.

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

/// Calls a function for each element of a matrix with its positions in row-major and in
/// column-major order. Visits the elements block by block.
pub(super) fn each_place(rows: usize, columns: usize, mut f: impl FnMut(usize, usize)) {
    const BLOCK: usize = 16;
    for top in (0..rows).step_by(BLOCK) {
        for left in (0..columns).step_by(BLOCK) {
            for row in top..rows.min(top + BLOCK) {
                for column in left..columns.min(left + BLOCK) {
                    f(row * columns + column, column * rows + row);
                }
            }
        }
    }
}

/// Copies a row-major matrix to a column-major one.
pub(super) fn to_columns<T: Copy>(from: &[T], rows: usize, columns: usize, to: &mut [T]) {
    each_place(rows, columns, |by_row, by_column| to[by_column] = from[by_row]);
}

/// Copies a column-major matrix to a row-major one.
pub(super) fn to_rows<T: Copy>(from: &[T], rows: usize, columns: usize, to: &mut [T]) {
    each_place(rows, columns, |by_row, by_column| to[by_row] = from[by_column]);
}
