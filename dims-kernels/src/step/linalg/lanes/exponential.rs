//! The exponential of a tile of matrices, by scaling and squaring. (N. J. Higham, The scaling and
//! squaring method for the matrix exponential revisited, 2005.)

use super::elimination::{eliminate, substitute};
use super::lane::{Lane, are_finite, count_lane, greatest, number, one, set_number, zero};
use super::tile::{MatrixTile, combine};
use crate::step::linalg::pade::{PADE, PADE_NORM};

/// Each squaring can double the rounding errors. If the norm of a matrix asks for more halvings
/// than this, the matrices of the tile are computed one by one, with other bounds that may ask for
/// fewer.
const MOST_HALVINGS: f64 = 5.0;

#[cfg_attr(not(unoptimized), inline(always))]
fn product<V: Lane>(a: &MatrixTile<'_, V>, b: &MatrixTile<'_, V>, to: &mut MatrixTile<'_, V>) {
    to.fill(zero());
    for row in 0..a.rows {
        combine::<V, true>(to.row_mut(row), a.row(row), b.data, b.columns);
    }
}

/// The sum of tiles, each times a coefficient of the approximant, plus one coefficient on the
/// diagonal if `constant` is given.
#[cfg_attr(not(unoptimized), inline(always))]
fn sum<V: Lane>(
    terms: [&MatrixTile<'_, V>; 3],
    coefficients: [usize; 3],
    constant: Option<usize>,
    to: &mut MatrixTile<'_, V>,
) {
    let coefficient = |at: usize| -> V {
        V::all(num_traits::NumCast::from(PADE[at]).expect("any float type has this number, rounded"))
    };
    let [a, b, c] = coefficients.map(coefficient);
    for (at, to) in to.data.iter_mut().enumerate() {
        let own = terms[0].data[at].times(a);
        let own = own.add_product(terms[1].data[at], b);
        *to = own.add_product(terms[2].data[at], c);
    }
    if let Some(constant) = constant {
        for at in 0..to.rows {
            to.set(at, at, to.at(at, at).plus(coefficient(constant)));
        }
    }
}

/// Writes `e^a` to `out`. Returns whether all matrices have a precise result.
#[cfg_attr(not(unoptimized), inline(always))]
pub(super) fn expm<V: Lane>(
    a: &mut MatrixTile<'_, V>,
    out: &mut MatrixTile<'_, V>,
    others: &mut [MatrixTile<'_, V>; 6],
    shares: &mut [V],
) -> bool {
    if !are_finite(a.data) {
        return false;
    }
    let size = a.rows;
    let mut norm = zero::<V>();
    for column in 0..size {
        let of_column = (0..size).fold(zero(), |sum: V, row| sum.plus(a.at(row, column).abs()));
        norm = greatest(norm, of_column);
    }
    let (mut halvings, mut scale, mut most) = (zero::<V>(), one::<V>(), 0);
    for matrix in 0..V::COUNT {
        let norm = num_traits::ToPrimitive::to_f64(&number(&norm, matrix)).unwrap_or(f64::INFINITY);
        if norm > PADE_NORM {
            let count = libm::ceil(libm::log2(norm / PADE_NORM));
            if count > MOST_HALVINGS {
                return false;
            }
            most = most.max(count as usize);
            let as_number = |value: f64| {
                num_traits::NumCast::from(value).expect("any float type has this number, rounded")
            };
            set_number(&mut halvings, matrix, as_number(count));
            set_number(&mut scale, matrix, as_number(libm::exp2(-count)));
        }
    }
    if most > 0 {
        // If a triangular matrix needs halvings, the matrices of the tile are computed one by one,
        // which is more precise for this matrix.
        let (mut below, mut above) = (zero::<V>(), zero::<V>());
        for (row, column) in (0..size).flat_map(|row| (0..row).map(move |column| (row, column))) {
            below = greatest(below, a.at(row, column).abs());
            above = greatest(above, a.at(column, row).abs());
        }
        let is_triangular = below.equal(zero()).or(above.equal(zero()));
        if !halvings.greater(zero()).and(is_triangular).is_nowhere() {
            return false;
        }
        a.data.iter_mut().for_each(|own| *own = own.times(scale));
    }
    let [a2, a4, a6, other, odd, even] = others;
    product::<V>(a, a, a2);
    product::<V>(a2, a2, a4);
    product::<V>(a4, a2, a6);
    for (to, high, low, constant) in
        [(&mut *odd, [13, 11, 9], [7, 5, 3], 1), (&mut *even, [12, 10, 8], [6, 4, 2], 0)]
    {
        sum::<V>([a6, a4, a2], high, None, other);
        sum::<V>([a6, a4, a2], low, Some(constant), to);
        for row in 0..size {
            combine::<V, true>(to.row_mut(row), a6.row(row), other.data, size);
        }
    }
    product::<V>(a, odd, other);
    // `(v - u) e^a = v + u`
    for at in 0..size * size {
        let (u, v) = (other.data[at], even.data[at]);
        even.data[at] = v.minus(u);
        out.data[at] = v.plus(u);
    }
    let found = eliminate::<V>(even, out, shares);
    substitute::<V>(even, shares, out);
    for step in 0..most {
        product::<V>(out, out, other);
        let is_squared = halvings.greater(count_lane(step));
        for (to, &own) in out.data.iter_mut().zip(&*other.data) {
            *to = is_squared.choose(own, *to);
        }
    }
    found.is_regular && are_finite(out.data)
}
