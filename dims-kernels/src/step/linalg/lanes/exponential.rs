//! The exponential of a tile of matrices, by scaling and squaring. (N. J. Higham, The scaling and
//! squaring method for the matrix exponential revisited, 2005.)

use super::elimination::{eliminate, substitute};
use super::lane::{Lane, are_finite};
use super::tile::{Tile, combine};
use crate::machine::isa::Isa;
use crate::scalar::Real;
use crate::step::linalg::functions::{PADE, PADE_NORM};

#[cfg_attr(not(unoptimized), inline(always))]
fn product<I: Isa, T: Real, const L: usize>(a: &Tile<'_, T, L>, b: &Tile<'_, T, L>, to: &mut Tile<'_, T, L>) {
    to.fill(Lane::ZERO);
    for row in 0..a.rows {
        combine::<I, T, L, true>(to.row_mut(row), a.row(row), b.data, b.columns);
    }
}

/// The sum of tiles, each times a coefficient of the approximant.
#[cfg_attr(not(unoptimized), inline(always))]
fn sum<I: Isa, T: Real, const L: usize>(
    terms: [&Tile<'_, T, L>; 3],
    coefficients: [usize; 3],
    constant: Option<usize>,
    to: &mut Tile<'_, T, L>,
) {
    let number = |at: usize| Lane::<T, L>::all(num_traits::NumCast::from(PADE[at]).expect("a float"));
    let [a, b, c] = coefficients.map(number);
    for (at, to) in to.data.iter_mut().enumerate() {
        let own = terms[0].data[at].times(a);
        let own = own.add_product::<I>(terms[1].data[at], b);
        *to = own.add_product::<I>(terms[2].data[at], c);
    }
    if let Some(constant) = constant {
        for at in 0..to.rows {
            to.set(at, at, to.at(at, at).plus(number(constant)));
        }
    }
}

/// `e^a` in `out`. Returns whether all matrices have a result.
#[cfg_attr(not(unoptimized), inline(always))]
pub(super) fn expm<I: Isa, T: Real, const L: usize>(
    a: &mut Tile<'_, T, L>,
    out: &mut Tile<'_, T, L>,
    others: &mut [Tile<'_, T, L>; 6],
    shares: &mut [Lane<T, L>],
) -> bool {
    if !are_finite(a.data) {
        return false;
    }
    let size = a.rows;
    let mut norm = Lane::<T, L>::ZERO;
    for column in 0..size {
        let of_column = (0..size).fold(Lane::ZERO, |sum: Lane<T, L>, row| sum.plus(a.at(row, column).abs()));
        norm = norm.greatest(of_column);
    }
    let mut halvings = [0; L];
    let mut most = 0;
    for lane in 0..L {
        let norm = num_traits::ToPrimitive::to_f64(&norm.0[lane]).unwrap_or(f64::INFINITY);
        if norm > PADE_NORM {
            let count = libm::ceil(libm::log2(norm / PADE_NORM));
            if count > 100.0 {
                return false;
            }
            halvings[lane] = count as usize;
            most = most.max(halvings[lane]);
        }
    }
    if most > 0 {
        let mut scale = Lane::<T, L>::ONE;
        for lane in 0..L {
            scale.0[lane] = num_traits::NumCast::from(libm::exp2(-(halvings[lane] as f64))).expect("a float");
        }
        a.data.iter_mut().for_each(|own| *own = own.times(scale));
    }
    let [a2, a4, a6, other, odd, even] = others;
    product::<I, T, L>(a, a, a2);
    product::<I, T, L>(a2, a2, a4);
    product::<I, T, L>(a4, a2, a6);
    for (to, high, low, constant) in
        [(&mut *odd, [13, 11, 9], [7, 5, 3], 1), (&mut *even, [12, 10, 8], [6, 4, 2], 0)]
    {
        sum::<I, T, L>([a6, a4, a2], high, None, other);
        sum::<I, T, L>([a6, a4, a2], low, Some(constant), to);
        for row in 0..size {
            combine::<I, T, L, true>(to.row_mut(row), a6.row(row), other.data, size);
        }
    }
    product::<I, T, L>(a, odd, other);
    // `(v - u) e^a = v + u`
    for at in 0..size * size {
        let (u, v) = (other.data[at], even.data[at]);
        even.data[at] = v.minus(u);
        out.data[at] = v.plus(u);
    }
    let found = eliminate::<I, T, L>(even, out, shares);
    substitute::<I, T, L>(even, shares, out);
    for step in 0..most {
        product::<I, T, L>(out, out, other);
        let mut is_squared = Lane::<T, L>::ZERO;
        for lane in 0..L {
            is_squared.0[lane] = if step < halvings[lane] { T::ONE } else { T::ZERO };
        }
        for (to, &own) in out.data.iter_mut().zip(&*other.data) {
            *to = is_squared.choose(own, *to);
        }
    }
    found.is_regular && are_finite(out.data)
}
