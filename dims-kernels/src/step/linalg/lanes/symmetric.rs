//! Eigenvalues and eigenvectors of a tile of symmetric matrices: reflections make the matrices
//! tridiagonal, and implicit QL steps make these diagonal. (C. Reinsch and others, tred2 and tql2,
//! in J. Wilkinson and C. Reinsch, Handbook for Automatic Computation, 1971.)

use super::lane::{Lane, are_finite, count_lane};
use super::reflections::{Reflection, reflect, reflection, safe_squares};
use super::tile::{Tile, dot};
use crate::machine::isa::Isa;
use crate::scalar::Real;

/// How many QL steps one eigenvalue may take.
const MOST_STEPS: usize = 60;

/// The scale at which the greatest elements are about 1, and its reciprocal: powers of two. `None`
/// if an element is infinite or NaN.
#[cfg_attr(not(unoptimized), inline(always))]
pub(super) fn scales<T: Real, const L: usize>(all: &[Lane<T, L>]) -> Option<[Lane<T, L>; 2]> {
    if !are_finite(all) {
        return None;
    }
    let most = all.iter().fold(Lane::ZERO, |most: Lane<T, L>, own| most.greatest(own.abs()));
    let limit: T = num_traits::NumCast::from(256.0).expect("a float");
    let mut scales = [Lane::ONE, Lane::ONE];
    if most.every(|most| most == T::ZERO || (most < limit && most * limit > T::ONE)) {
        return Some(scales);
    }
    for lane in 0..L {
        if most.0[lane] != T::ZERO {
            let two = T::ONE + T::ONE;
            let exponent = num_traits::ToPrimitive::to_i32(&num_traits::Float::floor(
                num_traits::Float::log2(most.0[lane]),
            ))?;
            let scale = num_traits::Float::powi(two, -exponent);
            let back = num_traits::Float::powi(two, exponent);
            if !scale.is_normal() || !back.is_normal() {
                return None;
            }
            scales[0].0[lane] = scale;
            scales[1].0[lane] = back;
        }
    }
    Some(scales)
}

/// Memory for the eigenvalues of a tile.
pub(super) struct Spectrum<'t, T, const L: usize> {
    /// The diagonal; then the eigenvalues.
    pub(super) values: &'t mut [Lane<T, L>],
    /// The elements beside the diagonal.
    pub(super) beside: &'t mut [Lane<T, L>],
    /// Two more vectors.
    pub(super) others: [&'t mut [Lane<T, L>]; 2],
}

/// The eigenvalues of matrices, of which the lower triangle is read, in no particular order, and
/// the eigenvectors as rows of `vectors`. Returns whether all matrices have a result.
#[cfg_attr(not(unoptimized), inline(always))]
pub(super) fn eigh<I: Isa, T: Real, const L: usize>(
    a: &mut Tile<'_, T, L>,
    vectors: &mut Tile<'_, T, L>,
    reflections: &mut [Lane<T, L>],
    spectrum: &mut Spectrum<'_, T, L>,
) -> bool {
    let Some([scale, back]) = scales(a.data) else { return false };
    a.data.iter_mut().for_each(|own| *own = own.times(scale));
    if !tridiagonal::<I, T, L>(a, vectors, reflections, spectrum) {
        return false;
    }
    if !diagonal::<I, T, L>(vectors, spectrum.values, spectrum.beside) {
        return false;
    }
    spectrum.values.iter_mut().for_each(|own| *own = own.times(back));
    are_finite(spectrum.values) && are_finite(vectors.data)
}

/// Makes matrices tridiagonal. The rows of `vectors` become the columns of the orthogonal factor.
#[cfg_attr(not(unoptimized), inline(always))]
fn tridiagonal<I: Isa, T: Real, const L: usize>(
    a: &mut Tile<'_, T, L>,
    vectors: &mut Tile<'_, T, L>,
    reflections: &mut [Lane<T, L>],
    Spectrum { values, beside, others: [taus, products] }: &mut Spectrum<'_, T, L>,
) -> bool {
    let size = a.rows;
    let half = Lane::all(T::ONE / (T::ONE + T::ONE));
    for (k, vector) in reflections.chunks_exact_mut(size).enumerate().take(size.saturating_sub(2)) {
        let v = &mut vector[k + 1..];
        for (row, own) in (k + 1..size).zip(&mut *v) {
            *own = a.at(row, k);
        }
        let (head, tail) = v.split_first_mut().expect("there are rows below");
        let Some(Reflection { tau, head: next }) = reflection::<I, T, L>(*head, tail) else { return false };
        *head = Lane::ONE;
        (beside[k], taus[k]) = (next, tau);
        // `w = tau a v - (tau^2 v^T a v / 2) v`; the matrix becomes `a - v w^T - w v^T`.
        let w = &mut products[k + 1..];
        w.fill(Lane::ZERO);
        for at in 0..v.len() {
            let row = &a.row(k + 1 + at)[k + 1..][..=at];
            let mut sum = row[at].times(v[at]);
            for (other, &element) in row[..at].iter().enumerate() {
                sum = sum.add_product::<I>(element, v[other]);
                w[other] = w[other].add_product::<I>(element, v[at]);
            }
            w[at] = w[at].plus(sum);
        }
        w.iter_mut().for_each(|own| *own = own.times(tau));
        let share = dot::<I, T, L>(w, v).times(tau).times(half);
        for (own, &v) in w.iter_mut().zip(&*v) {
            *own = own.subtract_product::<I>(share, v);
        }
        for at in 0..v.len() {
            let (own_v, own_w) = (v[at], w[at]);
            let row = &mut a.row_mut(k + 1 + at)[k + 1..][..=at];
            for (element, (&v, &w)) in row.iter_mut().zip(v.iter().zip(&*w)) {
                *element = element.subtract_product::<I>(own_v, w).subtract_product::<I>(own_w, v);
            }
        }
    }
    for at in 0..size {
        values[at] = a.at(at, at);
    }
    beside[size - 1] = Lane::ZERO;
    if size > 1 {
        beside[size - 2] = a.at(size - 1, size - 2);
    }
    vectors.set_identity();
    for (k, vector) in reflections.chunks_exact(size).enumerate().take(size.saturating_sub(2)).rev() {
        reflect::<I, T, L>(vectors, taus[k], &vector[k + 2..], [k + 1, k + 1], products);
    }
    for row in 1..size {
        for column in 0..row {
            let (own, other) = (vectors.at(row, column), vectors.at(column, row));
            vectors.set(row, column, other);
            vectors.set(column, row, own);
        }
    }
    true
}

/// `x = c x - s y` and `y = s x + c y`
#[cfg_attr(not(unoptimized), inline(always))]
pub(super) fn rotate<I: Isa, T: Real, const L: usize>(
    x: &mut [Lane<T, L>],
    y: &mut [Lane<T, L>],
    [c, s]: [Lane<T, L>; 2],
) {
    for (x, y) in x.iter_mut().zip(y) {
        let (own_x, own_y) = (*x, *y);
        *x = c.times(own_x).subtract_product::<I>(s, own_y);
        *y = c.times(own_y).add_product::<I>(s, own_x);
    }
}

/// Makes tridiagonal matrices diagonal, and applies the rotations to the rows of `vectors`. Returns
/// whether that took few steps.
#[cfg_attr(not(unoptimized), inline(always))]
fn diagonal<I: Isa, T: Real, const L: usize>(
    vectors: &mut Tile<'_, T, L>,
    d: &mut [Lane<T, L>],
    e: &mut [Lane<T, L>],
) -> bool {
    let size = d.len();
    let epsilon = Lane::all(<T as num_traits::Float>::epsilon());
    let [least_square, _] = safe_squares::<T>();
    let least = Lane::all(least_square).sqrt();
    for first in 0..size {
        for step in 0.. {
            // Where each block ends: at the first element beside the diagonal that is negligible.
            let mut end = count_lane(size - 1);
            for at in (first..size - 1).rev() {
                let limit = d[at].abs().plus(d[at + 1].abs()).times(epsilon).greatest(least);
                end = e[at].abs().greater(limit).choose(end, count_lane(at));
            }
            let start = count_lane(first);
            let is_active = end.greater(start);
            if is_active.is_zero() {
                break;
            }
            if step == MOST_STEPS {
                return false;
            }
            let last = (0..L)
                .map(|lane| num_traits::ToPrimitive::to_usize(&end.0[lane]).unwrap_or(0))
                .max()
                .unwrap_or(0);
            let mut at_end = d[first];
            for at in first + 1..=last {
                at_end = end.equal(count_lane(at)).choose(d[at], at_end);
            }
            // The shift of Wilkinson.
            let two = Lane::all(T::ONE + T::ONE);
            let gap = d[first + 1].minus(d[first]).over(e[first].times(two));
            let root = gap.times(gap).plus(Lane::ONE).sqrt();
            let divisor = gap.plus(gap.zip(root, |gap, root| if gap < T::ZERO { -root } else { root }));
            let mut g = at_end.minus(d[first]).plus(e[first].over(divisor));
            let (mut s, mut c, mut p) = (Lane::ONE, Lane::ONE, Lane::<T, L>::ZERO);
            // 1 in blocks where a rotation would have been by 0: the step ends there.
            let mut has_split = Lane::<T, L>::ZERO;
            for at in (first..last).rev() {
                let mut takes_part = is_active.times(end.greater(count_lane(at)));
                takes_part = has_split.choose(Lane::ZERO, takes_part);
                let (f, b) = (s.times(e[at]), c.times(e[at]));
                let squares = f.times(f).add_product::<I>(g, g);
                let is_small = squares.map(|own| if own > least_square { T::ZERO } else { T::ONE });
                let is_small = is_small.times(takes_part);
                let r = squares.sqrt();
                e[at + 1] = takes_part.choose(is_small.choose(Lane::ZERO, r), e[at + 1]);
                d[at + 1] = is_small.choose(d[at + 1].minus(p), d[at + 1]);
                has_split = is_small.choose(Lane::ONE, has_split);
                takes_part = is_small.choose(Lane::ZERO, takes_part);
                let share = Lane::ONE.over(r);
                s = takes_part.choose(f.times(share), s);
                c = takes_part.choose(g.times(share), c);
                let rest = d[at + 1].minus(p);
                let q = d[at].minus(rest).times(s).add_product::<I>(c.times(two), b);
                let moved = s.times(q);
                d[at + 1] = takes_part.choose(rest.plus(moved), d[at + 1]);
                p = takes_part.choose(moved, p);
                g = takes_part.choose(c.times(q).minus(b), g);
                let [x, y] = vectors.row_pair(at, at + 1);
                rotate::<I, T, L>(x, y, [takes_part.choose(c, Lane::ONE), takes_part.choose(s, Lane::ZERO)]);
            }
            let is_done = has_split.choose(Lane::ZERO, is_active);
            d[first] = is_done.choose(d[first].minus(p), d[first]);
            e[first] = is_done.choose(g, e[first]);
            // The end of each block is cut off.
            for at in first..=last {
                let is_end = end.equal(count_lane(at));
                e[at] = is_end.times(is_active).choose(Lane::ZERO, e[at]);
            }
        }
    }
    true
}
