//! Eigenvalues and eigenvectors of a tile of symmetric matrices: reflections make the matrices
//! tridiagonal, and implicit QL steps then make them diagonal. (R. Martin and others, tred2 and
//! imtql2, in J. Wilkinson and C. Reinsch, Handbook for Automatic Computation, 1971.)

use super::lane::{
    Lane, are_finite, count_lane, greatest, holds_everywhere, number, numbers, one, set_number, signed, zero,
};
use super::reflections::{Reflection, reflect, reflection, safe_squares};
use super::tile::{MatrixTile, dot};
use crate::scalar::Num;

/// How many QL steps one eigenvalue may take.
const MOST_STEPS: usize = 60;

/// The factor that scales the greatest magnitude in each matrix to about 1, and the reciprocal of
/// this factor. Both are powers of two. They are 1 if the greatest magnitudes in all matrices are 0
/// or between 1/256 and 256. `None` if an element is infinite or NaN, or if a factor or its
/// reciprocal would not be a normal number.
#[cfg_attr(not(unoptimized), inline(always))]
pub(super) fn scales<V: Lane>(all: &[V]) -> Option<[V; 2]> {
    if !are_finite(all) {
        return None;
    }
    let most = all.iter().fold(zero::<V>(), |most, own| greatest(most, own.abs()));
    let limit = count_lane::<V>(256);
    let is_near = limit.greater(most).and(most.times(limit).greater(one()));
    let mut scales = [one::<V>(), one::<V>()];
    if holds_everywhere(is_near.or(most.equal(zero()))) {
        return Some(scales);
    }
    for matrix in 0..V::COUNT {
        let most = number(&most, matrix);
        if most > <V::Elem as Num>::ZERO {
            let exponent = num_traits::Float::floor(num_traits::Float::log2(most));
            let (down, up) = (num_traits::Float::exp2(-exponent), num_traits::Float::exp2(exponent));
            if !num_traits::Float::is_normal(down) || !num_traits::Float::is_normal(up) {
                return None;
            }
            set_number(&mut scales[0], matrix, down);
            set_number(&mut scales[1], matrix, up);
        }
    }
    Some(scales)
}

/// Memory for the eigenvalues of a tile.
pub(super) struct Spectrum<'t, V> {
    /// The diagonal, and later the eigenvalues.
    pub(super) values: &'t mut [V],
    /// The elements beside the diagonal.
    pub(super) beside: &'t mut [V],
    /// Scratch memory for two more vectors.
    pub(super) others: [&'t mut [V]; 2],
}

/// Writes the eigenvalues of symmetric matrices to `spectrum`, in no particular order, and the
/// eigenvectors to the rows of `vectors`. Returns whether all matrices have a result.
#[cfg_attr(not(unoptimized), inline(always))]
pub(super) fn eigh<V: Lane>(
    a: &mut MatrixTile<'_, V>,
    vectors: &mut MatrixTile<'_, V>,
    reflections: &mut [V],
    spectrum: &mut Spectrum<'_, V>,
) -> bool {
    let Some([scale, back]) = scales(a.data) else { return false };
    a.data.iter_mut().for_each(|own| *own = own.times(scale));
    if !tridiagonal::<V>(a, vectors, reflections, spectrum) {
        return false;
    }
    if !diagonal::<V>(vectors, spectrum.values, spectrum.beside) {
        return false;
    }
    spectrum.values.iter_mut().for_each(|own| *own = own.times(back));
    are_finite(spectrum.values) && are_finite(vectors.data)
}

/// Makes matrices tridiagonal. The rows of `vectors` become the columns of the orthogonal factor.
/// Returns whether all matrices have a result.
#[cfg_attr(not(unoptimized), inline(always))]
fn tridiagonal<V: Lane>(
    a: &mut MatrixTile<'_, V>,
    vectors: &mut MatrixTile<'_, V>,
    reflections: &mut [V],
    Spectrum { values, beside, others: [taus, products] }: &mut Spectrum<'_, V>,
) -> bool {
    let size = a.rows;
    let half = one::<V>().over(one::<V>().plus(one()));
    for (k, vector) in reflections.chunks_exact_mut(size).enumerate().take(size.saturating_sub(2)) {
        let v = &mut vector[k + 1..];
        for (row, own) in (k + 1..size).zip(&mut *v) {
            *own = a.at(row, k);
        }
        let (head, tail) = v.split_first_mut().expect("there are rows below");
        let Some(Reflection { tau, head: next }) = reflection::<V>(*head, tail) else { return false };
        *head = one();
        (beside[k], taus[k]) = (next, tau);
        // `w = tau a v - (tau^2 v^T a v / 2) v`. The matrix becomes `a - v w^T - w v^T`.
        let w = &mut products[k + 1..];
        w.fill(zero());
        for at in 0..v.len() {
            let row = &a.row(k + 1 + at)[k + 1..][..=at];
            let mut sum = row[at].times(v[at]);
            for (other, &element) in row[..at].iter().enumerate() {
                sum = sum.add_product(element, v[other]);
                w[other] = w[other].add_product(element, v[at]);
            }
            w[at] = w[at].plus(sum);
        }
        w.iter_mut().for_each(|own| *own = own.times(tau));
        let share = dot::<V>(w, v).times(tau).times(half);
        for (own, &v) in w.iter_mut().zip(&*v) {
            *own = own.subtract_product(share, v);
        }
        for at in 0..v.len() {
            let (own_v, own_w) = (v[at], w[at]);
            let row = &mut a.row_mut(k + 1 + at)[k + 1..][..=at];
            for (element, (&v, &w)) in row.iter_mut().zip(v.iter().zip(&*w)) {
                *element = element.subtract_product(own_v, w).subtract_product(own_w, v);
            }
        }
    }
    for at in 0..size {
        values[at] = a.at(at, at);
    }
    beside[size - 1] = zero();
    if size > 1 {
        beside[size - 2] = a.at(size - 1, size - 2);
    }
    vectors.set_identity();
    for (k, vector) in reflections.chunks_exact(size).enumerate().take(size.saturating_sub(2)).rev() {
        reflect::<V>(vectors, taus[k], &vector[k + 2..], [k + 1, k + 1], products);
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

/// Replaces `x` by `c x - s y`, and `y` by `s x + c y` with the previous `x`.
#[cfg_attr(not(unoptimized), inline(always))]
pub(super) fn rotate<V: Lane>(x: &mut [V], y: &mut [V], [c, s]: [V; 2]) {
    for (x, y) in x.iter_mut().zip(y) {
        let (own_x, own_y) = (*x, *y);
        *x = c.times(own_x).subtract_product(s, own_y);
        *y = c.times(own_y).add_product(s, own_x);
    }
}

/// Makes tridiagonal matrices diagonal, and applies the rotations to the rows of `vectors`. Returns
/// whether no eigenvalue took too many steps.
#[cfg_attr(not(unoptimized), inline(always))]
fn diagonal<V: Lane>(vectors: &mut MatrixTile<'_, V>, d: &mut [V], e: &mut [V]) -> bool {
    let size = d.len();
    let epsilon = V::all(<V::Elem as num_traits::Float>::epsilon());
    let [least_square, _] = safe_squares::<V::Elem>();
    let least = V::all(least_square).sqrt();
    for first in 0..size {
        for step in 0.. {
            // Each matrix has a block that begins at `first`, and ends at the first element beside
            // the diagonal that is negligible.
            let mut end: V = count_lane(size - 1);
            for at in (first..size - 1).rev() {
                let limit = greatest(d[at].abs().plus(d[at + 1].abs()).times(epsilon), least);
                end = e[at].abs().greater(limit).choose(end, count_lane(at));
            }
            let start = count_lane(first);
            let is_active = end.greater(start);
            if is_active.is_nowhere() {
                break;
            }
            if step == MOST_STEPS {
                return false;
            }
            let ends = numbers(core::slice::from_ref(&end)).iter();
            let last = ends.filter_map(num_traits::ToPrimitive::to_usize).max().unwrap_or(0);
            let mut at_end = d[first];
            for at in first + 1..=last {
                at_end = end.equal(count_lane(at)).choose(d[at], at_end);
            }
            // Wilkinson's shift.
            let two = count_lane::<V>(2);
            let gap = d[first + 1].minus(d[first]).over(e[first].times(two));
            let root = gap.times(gap).plus(one()).sqrt();
            let divisor = gap.plus(signed(root, gap));
            let mut g = at_end.minus(d[first]).plus(e[first].over(divisor));
            let (mut s, mut c, mut p) = (one::<V>(), one::<V>(), zero::<V>());
            // The blocks whose step ended early, because both elements that determine a rotation
            // were about 0.
            let mut has_split = zero::<V>();
            for at in (first..last).rev() {
                let mut takes_part = is_active.and(end.greater(count_lane(at))).but_not(has_split);
                let (f, b) = (s.times(e[at]), c.times(e[at]));
                let squares = f.times(f).add_product(g, g);
                let is_small = takes_part.but_not(squares.greater(V::all(least_square)));
                let r = squares.sqrt();
                e[at + 1] = takes_part.choose(is_small.choose(zero(), r), e[at + 1]);
                d[at + 1] = is_small.choose(d[at + 1].minus(p), d[at + 1]);
                has_split = has_split.or(is_small);
                takes_part = takes_part.but_not(is_small);
                let share = one::<V>().over(r);
                s = takes_part.choose(f.times(share), s);
                c = takes_part.choose(g.times(share), c);
                let rest = d[at + 1].minus(p);
                let q = d[at].minus(rest).times(s).add_product(c.times(two), b);
                let moved = s.times(q);
                d[at + 1] = takes_part.choose(rest.plus(moved), d[at + 1]);
                p = takes_part.choose(moved, p);
                g = takes_part.choose(c.times(q).minus(b), g);
                let [x, y] = vectors.row_pair(at, at + 1);
                rotate::<V>(x, y, [takes_part.choose(c, one()), takes_part.choose(s, zero())]);
            }
            let is_done = is_active.but_not(has_split);
            d[first] = is_done.choose(d[first].minus(p), d[first]);
            e[first] = is_done.choose(g, e[first]);
            // The negligible element at the end of each block becomes 0.
            for at in first..=last {
                let is_end = end.equal(count_lane(at)).and(is_active);
                e[at] = is_end.choose(zero(), e[at]);
            }
        }
    }
    true
}
