//! Factorizations by elimination, and solutions of systems of equations, for a tile of matrices.
//!
//! Some functions return whether all matrices have a result. If not, the caller works on the
//! matrices of the tile one by one.

use super::lane::{Lane, are_finite, count_lane, holds_everywhere, number, one, zero};
use super::tile::{MatrixTile, combine, less_dot};

/// Updates a column from row `first` down:
/// `a[row, column] -= sum over k < column of a[row, k] * factor(k)`.
#[cfg_attr(not(unoptimized), inline(always))]
fn update_column<V: Lane>(
    a: &mut MatrixTile<'_, V>,
    column: usize,
    first: usize,
    factor: impl Fn(&MatrixTile<'_, V>, usize) -> V,
) {
    const BLOCK: usize = 4;
    let mut row = first;
    while row + BLOCK <= a.rows {
        let mut sums: [V; BLOCK] = [zero(); BLOCK];
        for at in 0..BLOCK {
            sums[at] = a.at(row + at, column);
        }
        for k in 0..column {
            let factor = factor(a, k);
            for at in 0..BLOCK {
                sums[at] = sums[at].subtract_product(a.at(row + at, k), factor);
            }
        }
        for at in 0..BLOCK {
            a.set(row + at, column, sums[at]);
        }
        row += BLOCK;
    }
    for row in row..a.rows {
        let mut sum = a.at(row, column);
        for k in 0..column {
            sum = sum.subtract_product(a.at(row, k), factor(a, k));
        }
        a.set(row, column, sum);
    }
}

/// Replaces matrices by the Cholesky factors of their symmetric parts, with zeros above the
/// diagonal. Returns whether all pivots are positive and finite.
#[cfg_attr(not(unoptimized), inline(always))]
pub(super) fn cholesky<V: Lane>(a: &mut MatrixTile<'_, V>) -> bool {
    symmetric_part(a);
    let size = a.rows;
    let mut is_right = true;
    for column in 0..size {
        update_column::<V>(a, column, column, |a, k| a.at(column, k));
        let pivot = a.at(column, column);
        is_right &= holds_everywhere(pivot.greater(zero()).and(infinity::<V>().greater(pivot)));
        let root = pivot.sqrt();
        a.set(column, column, root);
        for row in column + 1..size {
            a.set(row, column, a.at(row, column).over(root));
        }
        a.row_mut(column)[column + 1..].fill(zero());
    }
    is_right
}

/// Replaces matrices by their symmetric parts.
#[cfg_attr(not(unoptimized), inline(always))]
pub(super) fn symmetric_part<V: Lane>(a: &mut MatrixTile<'_, V>) {
    let half = one::<V>().over(one::<V>().plus(one()));
    for row in 0..a.rows {
        for column in 0..=row {
            let own = a.at(row, column).plus(a.at(column, row)).times(half);
            a.set(row, column, own);
            a.set(column, row, own);
        }
    }
}

/// The results of elimination, except for the factors.
pub(super) struct Eliminated<V> {
    /// The products of the pivots, times `sign`.
    pub(super) det: V,
    /// -1 where the number of exchanges is odd, otherwise 1.
    pub(super) sign: V,
    /// Whether all pivots are finite and not 0.
    pub(super) is_regular: bool,
    /// True only if the product of the first `k` pivots is a normal number, for each `k`.
    pub(super) is_in_range: bool,
}

/// Exchanges rows, and replaces matrices by their LU factors. The diagonal of the lower factor,
/// which is all ones, is not stored. `shares` receives the reciprocals of the pivots, or 0 for a
/// pivot of 0. The rows of `other` are exchanged in the same way.
#[cfg_attr(not(unoptimized), inline(always))]
pub(super) fn eliminate<V: Lane>(
    a: &mut MatrixTile<'_, V>,
    other: &mut MatrixTile<'_, V>,
    shares: &mut [V],
) -> Eliminated<V> {
    let (rows, columns) = (a.rows, a.columns);
    let mut found = Eliminated { det: one(), sign: one(), is_regular: true, is_in_range: true };
    let least = V::all(num_traits::Float::min_positive_value());
    for k in 0..rows.min(columns) {
        update_column::<V>(a, k, k, |a, at| a.at(at, k));
        pivot(a, other, k, &mut found);
        let pivot = a.at(k, k);
        found.det = found.det.times(pivot);
        found.is_regular &= holds_everywhere(is_regular(pivot));
        let size = found.det.abs();
        found.is_in_range &= holds_everywhere(size.greater(least).and(infinity::<V>().greater(size)));
        let share = pivot.equal(zero()).choose(zero(), one::<V>().over(pivot));
        shares[k] = share;
        for row in k + 1..rows {
            a.set(row, k, a.at(row, k).times(share));
        }
        let (above, row) = a.data[..(k + 1) * columns].split_at_mut(k * columns);
        let (factors, rest) = row.split_at_mut(k);
        if columns > k + 1 && k > 0 {
            combine::<V, false>(&mut rest[1..], factors, &above[k + 1..], columns);
        }
    }
    found.det = found.det.times(found.sign);
    // The extra columns of wide matrices and the extra rows of tall ones are complete, too.
    found
}

#[cfg_attr(not(unoptimized), inline(always))]
fn infinity<V: Lane>() -> V {
    V::all(num_traits::Float::infinity())
}

/// Where a pivot is finite and not 0.
#[cfg_attr(not(unoptimized), inline(always))]
fn is_regular<V: Lane>(pivot: V) -> V {
    let size = pivot.abs();
    size.greater(zero()).and(infinity::<V>().greater(size))
}

/// Up to this many rows, [`exchange_selected`] exchanges the rows of all matrices at once.
const SELECTED_ROWS: usize = 8;

/// Exchanges row `k` of each matrix with the row at or below it whose element in column `k` has the
/// greatest magnitude.
#[cfg_attr(not(unoptimized), inline(always))]
fn pivot<V: Lane>(
    a: &mut MatrixTile<'_, V>,
    other: &mut MatrixTile<'_, V>,
    k: usize,
    found: &mut Eliminated<V>,
) {
    let mut best = a.at(k, k).abs();
    let mut from = count_lane(k);
    for row in k + 1..a.rows {
        let size = a.at(row, k).abs();
        let is_better = size.greater(best);
        best = is_better.choose(size, best);
        from = is_better.choose(count_lane(row), from);
    }
    let stays = from.equal(count_lane(k));
    found.sign = stays.choose(found.sign, found.sign.negated());
    if a.rows <= SELECTED_ROWS {
        exchange_selected(a, k, from);
        exchange_selected(other, k, from);
        return;
    }
    for lane in 0..V::COUNT {
        let row = num_traits::ToPrimitive::to_usize(&number(&from, lane)).unwrap_or(k);
        if row != k {
            a.exchange(lane, [k, row]);
            other.exchange(lane, [k, row]);
        }
    }
}

/// Exchanges row `k` of each matrix with row `from`, which may differ from matrix to matrix.
#[cfg_attr(not(unoptimized), inline(always))]
fn exchange_selected<V: Lane>(a: &mut MatrixTile<'_, V>, k: usize, from: V) {
    for column in 0..a.columns {
        let upper = a.at(k, column);
        let mut own = upper;
        for row in k + 1..a.rows {
            let (is_from, lower) = (from.equal(count_lane(row)), a.at(row, column));
            own = is_from.choose(lower, own);
            a.set(row, column, is_from.choose(upper, lower));
        }
        a.set(k, column, own);
    }
}

/// Solves systems with the factors of [`eliminate`], which has exchanged the rows of `b`.
#[cfg_attr(not(unoptimized), inline(always))]
pub(super) fn substitute<V: Lane>(factors: &MatrixTile<'_, V>, shares: &[V], b: &mut MatrixTile<'_, V>) {
    for row in 0..factors.rows {
        subtract_above::<V>(&factors.row(row)[..row], b, row, b.columns);
    }
    for row in (0..factors.rows).rev() {
        subtract_below::<V>(&factors.row(row)[row + 1..], b, row);
        b.row_mut(row).iter_mut().for_each(|own| *own = own.times(shares[row]));
    }
}

/// Subtracts the rows above from a row, each times its factor, in the first `columns` columns.
#[cfg_attr(not(unoptimized), inline(always))]
fn subtract_above<V: Lane>(factors: &[V], b: &mut MatrixTile<'_, V>, row: usize, columns: usize) {
    let stride = b.columns;
    let (above, own) = b.data[..(row + 1) * stride].split_at_mut(row * stride);
    combine::<V, false>(&mut own[..columns], factors, above, stride);
}

/// Subtracts the rows below from a row, each times its factor.
#[cfg_attr(not(unoptimized), inline(always))]
fn subtract_below<V: Lane>(factors: &[V], b: &mut MatrixTile<'_, V>, row: usize) {
    let stride = b.columns;
    let (own, below) = b.data[row * stride..].split_at_mut(stride);
    combine::<V, false>(own, factors, below, stride);
}

/// The inverses of the matrices whose rows [`eliminate`] exchanged, from its factors. The columns
/// of the inverses are in the order of the exchanged rows.
#[cfg_attr(not(unoptimized), inline(always))]
pub(super) fn invert<V: Lane>(factors: &MatrixTile<'_, V>, shares: &[V], out: &mut MatrixTile<'_, V>) {
    out.set_identity();
    for row in 0..factors.rows {
        // The inverse of the lower factor is lower triangular.
        subtract_above::<V>(&factors.row(row)[..row], out, row, row);
    }
    for row in (0..factors.rows).rev() {
        subtract_below::<V>(&factors.row(row)[row + 1..], out, row);
        out.row_mut(row).iter_mut().for_each(|own| *own = own.times(shares[row]));
    }
}

/// Solves triangular systems. Returns whether all systems have a finite solution.
#[cfg_attr(not(unoptimized), inline(always))]
pub(super) fn solve_triangular<V: Lane>(
    a: &MatrixTile<'_, V>,
    b: &mut MatrixTile<'_, V>,
    [is_lower, is_unit]: [bool; 2],
) -> bool {
    let size = a.rows;
    if !is_unit && !(0..size).all(|at| holds_everywhere(is_regular(a.at(at, at)))) {
        return false;
    }
    for step in 0..size {
        let row = if is_lower { step } else { size - 1 - step };
        if b.columns == 1 {
            let own = if is_lower {
                less_dot::<V>(b.data[row], &a.row(row)[..row], &b.data[..row])
            } else {
                less_dot::<V>(b.data[row], &a.row(row)[row + 1..], &b.data[row + 1..])
            };
            b.data[row] = own;
        } else if is_lower {
            subtract_above::<V>(&a.row(row)[..row], b, row, b.columns);
        } else {
            subtract_below::<V>(&a.row(row)[row + 1..], b, row);
        }
        if !is_unit {
            let pivot = a.at(row, row);
            b.row_mut(row).iter_mut().for_each(|own| *own = own.over(pivot));
        }
    }
    are_finite(b.data)
}
