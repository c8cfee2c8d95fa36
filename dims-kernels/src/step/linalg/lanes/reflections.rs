//! Householder reflections of a tile of matrices, `I - tau v v^T`.

use super::lane::{Lane, greatest, holds_everywhere, one, signed, zero};
use super::tile::{MatrixTile, combine};
use crate::scalar::Real;

/// A range in which sums of squares have the full precision of the type.
pub(super) fn safe_squares<T: Real>() -> [T; 2] {
    let least: T = <T as num_traits::Float>::min_positive_value() / <T as num_traits::Float>::epsilon();
    [least, T::ONE / least]
}

/// A reflection of column vectors to multiples of the first unit vector.
pub(super) struct Reflection<V> {
    pub(super) tau: V,
    /// The new first element.
    pub(super) head: V,
}

/// The reflection for a vector with this head and tail. `tail` becomes the tail of `v`, whose first
/// element is 1. `None` if, for any matrix, the sum of squares of a tail that is not 0 is below the
/// range [`safe_squares`], or the sum of squares of the whole vector is above it or NaN.
#[cfg_attr(not(unoptimized), inline(always))]
pub(super) fn reflection<V: Lane>(head: V, tail: &mut [V]) -> Option<Reflection<V>> {
    let (mut squares, mut most) = (zero::<V>(), zero::<V>());
    for &own in &*tail {
        squares = squares.add_product(own, own);
        most = greatest(most, own.abs());
    }
    let [least_square, most_square] = safe_squares::<V::Elem>();
    let total = squares.add_product(head, head);
    let has_tail = most.greater(zero());
    let is_small = has_tail.but_not(squares.greater(V::all(least_square)));
    if !is_small.is_nowhere() || !holds_everywhere(V::all(most_square).greater(total)) {
        return None;
    }
    let norm = total.sqrt();
    let signed = signed(norm, head);
    // Where the tail is 0, there is nothing to reflect.
    let share = has_tail.choose(one::<V>().over(head.plus(signed)), zero());
    tail.iter_mut().for_each(|own| *own = own.times(share));
    let tau = has_tail.choose(head.plus(signed).over(signed), zero());
    Some(Reflection { tau, head: has_tail.choose(signed.negated(), head) })
}

/// Applies a reflection to the rows from `first` on, in the columns from `column` on. `tail` is the
/// tail of `v`, and `sums` has space for a row.
#[cfg_attr(not(unoptimized), inline(always))]
pub(super) fn reflect<V: Lane>(
    a: &mut MatrixTile<'_, V>,
    tau: V,
    tail: &[V],
    [first, column]: [usize; 2],
    sums: &mut [V],
) {
    let columns = a.columns;
    if column >= columns {
        return;
    }
    let (own, below) = a.data[first * columns..].split_at_mut(columns);
    let (own, sums) = (&mut own[column..], &mut sums[..columns - column]);
    sums.copy_from_slice(own);
    if !tail.is_empty() {
        combine::<V, true>(sums, tail, &below[column..], columns);
    }
    for (own, sum) in own.iter_mut().zip(&mut *sums) {
        *sum = sum.times(tau);
        *own = own.minus(*sum);
    }
    for (&factor, row) in tail.iter().zip(below.chunks_exact_mut(columns)) {
        for (own, &sum) in row[column..].iter_mut().zip(&*sums) {
            *own = own.subtract_product(factor, sum);
        }
    }
}

/// Writes the orthogonal factors to `q`, and replaces the matrices by their upper triangular
/// factors. For each reflection, `vectors` has space for a vector, and `taus` for a lane. `sums`
/// has space for a row. Returns whether all matrices have a result.
#[cfg_attr(not(unoptimized), inline(always))]
pub(super) fn qr<V: Lane>(
    a: &mut MatrixTile<'_, V>,
    q: &mut MatrixTile<'_, V>,
    vectors: &mut [V],
    taus: &mut [V],
    sums: &mut [V],
) -> bool {
    let (rows, least) = (a.rows, a.rows.min(a.columns));
    for (k, vector) in vectors.chunks_exact_mut(rows).enumerate().take(least) {
        let tail = &mut vector[k + 1..];
        for (row, own) in (k + 1..rows).zip(&mut *tail) {
            *own = a.at(row, k);
            a.set(row, k, zero());
        }
        let Some(Reflection { tau, head }) = reflection::<V>(a.at(k, k), tail) else { return false };
        a.set(k, k, head);
        taus[k] = tau;
        reflect::<V>(a, tau, tail, [k, k + 1], sums);
    }
    q.set_identity();
    for (k, vector) in vectors.chunks_exact(rows).enumerate().take(least).rev() {
        reflect::<V>(q, taus[k], &vector[k + 1..], [k, k], sums);
    }
    true
}
