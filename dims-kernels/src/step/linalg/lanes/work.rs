//! Work on tiles of matrices.

use super::lane::{Lane, count_lane, number};
use super::tile::MatrixTile;
use crate::ops::matrix::MatrixSizes;
use crate::scalar::Real;
use crate::step::linalg::results::ResultSlice;

/// The most rows and columns of matrices that are computed in lanes.
pub(super) const MOST: usize = 16;

/// The matrices of a tile.
pub(super) struct WorkTile<'r, 't, T, V> {
    /// The sizes of each matrix.
    pub(super) sizes: MatrixSizes,
    /// The elements of each operand.
    pub(super) operands: &'t [&'t [T]],
    /// The elements of each result, initially zeros.
    pub(super) results: &'t mut [ResultSlice<'r, T, T>],
    /// As many lanes as [`TileWork::lanes`] returns, with any values.
    pub(super) free: &'t mut [V],
}

/// Work on a tile.
pub(super) trait TileWork<T> {
    /// Whether there is a copy of the code in which the sizes are constants: 4 rows and columns,
    /// and at most one right-hand side.
    const HAS_FOUR: bool = true;

    /// How many lanes of memory a tile needs.
    fn lanes(&self, sizes: MatrixSizes) -> usize;

    /// Computes the results of a tile. Returns false if a matrix has no result, or might have an
    /// inaccurate one. The caller then computes all matrices of the tile one by one.
    fn run<V: Lane<Elem = T>>(&self, tile: WorkTile<'_, '_, T, V>) -> bool;
}

/// Sets each row of a column to the number of the row.
#[cfg_attr(not(unoptimized), inline(always))]
pub(super) fn count_rows<V: Lane>(order: &mut MatrixTile<'_, V>) {
    for (at, own) in order.data.iter_mut().enumerate() {
        *own = count_lane(at);
    }
}

pub(super) fn position<T: Real>(value: T) -> usize {
    num_traits::ToPrimitive::to_usize(&value).expect("the number of a row is an integer")
}

/// Stores the vectors of one matrix as the columns of `out`, in the given order. Each vector is a
/// row of the tile `vectors`.
#[cfg_attr(not(unoptimized), inline(always))]
pub(super) fn store_columns<V: Lane>(
    vectors: &MatrixTile<'_, V>,
    lane: usize,
    order: &[usize],
    out: &mut [V::Elem],
) {
    for (column, &from) in order.iter().enumerate() {
        for (own, to) in vectors.row(from).iter().zip(out[column..].iter_mut().step_by(order.len())) {
            *to = number(own, lane);
        }
    }
}
