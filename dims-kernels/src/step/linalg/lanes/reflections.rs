//! Householder reflections of a tile of matrices, `I - tau v v^T`.

use super::lane::Lane;
use super::tile::{Tile, combine};
use crate::machine::isa::Isa;
use crate::scalar::Real;

/// The range in which squares are exact to the precision of the type.
pub(super) fn safe_squares<T: Real>() -> [T; 2] {
    let least: T = <T as num_traits::Float>::min_positive_value() / <T as num_traits::Float>::epsilon();
    [least, T::ONE / least]
}

/// A reflection of column vectors to multiples of the first unit vector.
pub(super) struct Reflection<T, const L: usize> {
    pub(super) tau: Lane<T, L>,
    /// What the first element becomes.
    pub(super) head: Lane<T, L>,
}

/// The reflection for a vector, whose `tail` becomes that of `v`; the first element of `v` is 1.
/// `None` if squares leave the range of the type.
#[cfg_attr(not(unoptimized), inline(always))]
pub(super) fn reflection<I: Isa, T: Real, const L: usize>(
    head: Lane<T, L>,
    tail: &mut [Lane<T, L>],
) -> Option<Reflection<T, L>> {
    let (mut squares, mut most) = (Lane::ZERO, Lane::ZERO);
    for &own in &*tail {
        squares = squares.add_product::<I>(own, own);
        most = most.greatest(own.abs());
    }
    let [least_square, most_square] = safe_squares::<T>();
    let total = squares.add_product::<I>(head, head);
    let in_range = squares.zip(
        most,
        |square, most| {
            if square > least_square || most == T::ZERO { T::ZERO } else { T::ONE }
        },
    );
    if !in_range.is_zero() || !total.every(|total| total < most_square) {
        return None;
    }
    let norm = total.sqrt();
    let signed = head.zip(norm, |head, norm| if head < T::ZERO { -norm } else { norm });
    // Where the tail is 0, there is nothing to reflect.
    let share = most.choose(Lane::ONE.over(head.plus(signed)), Lane::ZERO);
    tail.iter_mut().for_each(|own| *own = own.times(share));
    let tau = most.choose(head.plus(signed).over(signed), Lane::ZERO);
    Some(Reflection { tau, head: most.choose(signed.negated(), head) })
}

/// Applies a reflection to the rows from `first` on, in the columns from `column` on. `tail` is the
/// tail of `v`, and `sums` has space for a row.
#[cfg_attr(not(unoptimized), inline(always))]
pub(super) fn reflect<I: Isa, T: Real, const L: usize>(
    a: &mut Tile<'_, T, L>,
    tau: Lane<T, L>,
    tail: &[Lane<T, L>],
    [first, column]: [usize; 2],
    sums: &mut [Lane<T, L>],
) {
    let columns = a.columns;
    if column >= columns {
        return;
    }
    let (own, below) = a.data[first * columns..].split_at_mut(columns);
    let (own, sums) = (&mut own[column..], &mut sums[..columns - column]);
    sums.copy_from_slice(own);
    if !tail.is_empty() {
        combine::<I, T, L, true>(sums, tail, &below[column..], columns);
    }
    for (own, sum) in own.iter_mut().zip(&mut *sums) {
        *sum = sum.times(tau);
        *own = own.minus(*sum);
    }
    for (&factor, row) in tail.iter().zip(below.chunks_exact_mut(columns)) {
        for (own, &sum) in row[column..].iter_mut().zip(&*sums) {
            *own = own.subtract_product::<I>(factor, sum);
        }
    }
}

/// The orthogonal factor, and the upper one in place of the matrices. `columns` has space for a
/// vector for each column, and `sums` for one. Returns whether all matrices have a result.
#[cfg_attr(not(unoptimized), inline(always))]
pub(super) fn qr<I: Isa, T: Real, const L: usize>(
    a: &mut Tile<'_, T, L>,
    q: &mut Tile<'_, T, L>,
    vectors: &mut [Lane<T, L>],
    taus: &mut [Lane<T, L>],
    sums: &mut [Lane<T, L>],
) -> bool {
    let (rows, least) = (a.rows, a.rows.min(a.columns));
    for (k, vector) in vectors.chunks_exact_mut(rows).enumerate().take(least) {
        let tail = &mut vector[k + 1..];
        for (row, own) in (k + 1..rows).zip(&mut *tail) {
            *own = a.at(row, k);
            a.set(row, k, Lane::ZERO);
        }
        let Some(Reflection { tau, head }) = reflection::<I, T, L>(a.at(k, k), tail) else { return false };
        a.set(k, k, head);
        taus[k] = tau;
        reflect::<I, T, L>(a, tau, tail, [k, k + 1], sums);
    }
    q.set_identity();
    for (k, vector) in vectors.chunks_exact(rows).enumerate().take(least).rev() {
        reflect::<I, T, L>(q, taus[k], &vector[k + 1..], [k, k], sums);
    }
    true
}
