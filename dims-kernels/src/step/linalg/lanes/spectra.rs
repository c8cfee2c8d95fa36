//! Eigenvalues, singular values and exponentials of tiles.

use super::elimination::symmetric_part;
use super::exponential::expm;
use super::lane::{Lane, are_finite, count_lane, greatest, holds_everywhere, number, one, zero};
use super::reflections::safe_squares;
use super::singular::{descending, orthogonalize};
use super::symmetric::{Spectrum, eigh};
use super::tile::{MatrixTile, combine};
use super::work::{MOST, TileWork, WorkTile, store_columns};
use crate::ops::matrix::{MatrixSizes, MatrixWork};
use crate::scalar::Real;

pub(super) struct Eigh;

impl<T: Real> TileWork<T> for Eigh {
    const HAS_FOUR: bool = false;

    fn lanes(&self, sizes: MatrixSizes) -> usize {
        sizes.rows * (3 * sizes.rows + 4)
    }

    #[cfg_attr(not(unoptimized), inline(always))]
    fn run<V: Lane<Elem = T>>(&self, tile: WorkTile<'_, '_, T, V>) -> bool {
        let WorkTile { sizes, operands, results, mut free } = tile;
        let size = sizes.rows;
        let mut a = MatrixTile::take(&mut free, size, size);
        let mut vectors = MatrixTile::take(&mut free, size, size);
        let (reflections, free) = free.split_at_mut(size * size);
        let (values, free) = free.split_at_mut(size);
        let (beside, free) = free.split_at_mut(size);
        let (one, other) = free.split_at_mut(size);
        let mut spectrum = Spectrum { values, beside, others: [one, other] };
        a.load(operands[0], false);
        symmetric_part(&mut a);
        let is_right = eigh::<V>(&mut a, &mut vectors, reflections, &mut spectrum);
        if !is_right {
            return false;
        }
        let [of_values, of_vectors] = results else { unreachable!("there are two results") };
        let values = of_values.as_mut().parts().chunks_exact_mut(size);
        let columns = of_vectors.as_mut().values().chunks_exact_mut(size * size);
        let mut order = [0; MOST];
        let order = &mut order[..size];
        for (lane, (values, columns)) in values.zip(columns).enumerate() {
            descending(spectrum.values, lane, order);
            order.reverse();
            for (to, &from) in values.iter_mut().zip(&*order) {
                *to = number(&spectrum.values[from], lane);
            }
            store_columns(&vectors, lane, order, columns);
        }
        true
    }
}

/// Singular values, and results that are computed from them.
pub(super) struct Singular(pub(super) MatrixWork);

impl<T: Real> TileWork<T> for Singular {
    const HAS_FOUR: bool = false;

    fn lanes(&self, sizes: MatrixSizes) -> usize {
        let (least, most) = (sizes.least(), sizes.rows.max(sizes.columns));
        let others = match self.0 {
            MatrixWork::Pinv => sizes.rows * sizes.columns,
            MatrixWork::Lstsq => sizes.right * (sizes.rows + sizes.columns + least),
            _ => 0,
        };
        least * (most + least + 2) + others
    }

    #[cfg_attr(not(unoptimized), inline(always))]
    fn run<V: Lane<Elem = T>>(&self, tile: WorkTile<'_, '_, T, V>) -> bool {
        let WorkTile { sizes, operands, results, mut free } = tile;
        let (least, most) = (sizes.least(), sizes.rows.max(sizes.columns));
        let has_vectors = matches!(self.0, MatrixWork::Svd | MatrixWork::Pinv | MatrixWork::Lstsq);
        // The rows of `a` are the columns of tall or square matrices, and the rows of wide ones.
        let is_tall = sizes.rows >= sizes.columns;
        let mut a = MatrixTile::take(&mut free, least, most);
        a.load(operands[0], is_tall);
        let mut turned = MatrixTile::take(&mut free, if has_vectors { least } else { 0 }, least);
        turned.set_identity();
        let (squares, free) = free.split_at_mut(least);
        let (values, mut free) = free.split_at_mut(least);
        let Some(back) = orthogonalize::<V>(&mut a, &mut turned, squares) else { return false };
        let mut most_value = zero::<V>();
        for (to, &square) in values.iter_mut().zip(&*squares) {
            *to = square.sqrt();
            most_value = greatest(most_value, *to);
        }
        let epsilon = V::all(num_traits::Float::epsilon());
        let least_value = most_value.times(count_lane::<V>(most).times(epsilon));
        // `Pinv`, `Lstsq` and `Rank` count singular values up to `least_value` as 0, so the squares
        // of tiny singular values need not be precise.
        let is_cut = matches!(self.0, MatrixWork::Pinv | MatrixWork::Lstsq | MatrixWork::Rank);
        let [least_square, _] = safe_squares::<T>();
        if !is_cut && !squares.iter().all(|own| holds_everywhere(own.greater(V::all(least_square)))) {
            return false;
        }
        match self.0 {
            MatrixWork::Svd => {
                for (at, &value) in values.iter().enumerate() {
                    let share = one::<V>().over(value);
                    a.row_mut(at).iter_mut().for_each(|own| *own = own.times(share));
                }
                let [of_u, of_s, of_v] = results else { unreachable!("there are three results") };
                let u = of_u.as_mut().values().chunks_exact_mut(sizes.rows * least);
                let s = of_s.as_mut().parts().chunks_exact_mut(least);
                let v = of_v.as_mut().values().chunks_exact_mut(sizes.columns * least);
                let (left, right) = if is_tall { (&a, &turned) } else { (&turned, &a) };
                let mut order = [0; MOST];
                let order = &mut order[..least];
                for (lane, ((u, s), v)) in u.zip(s).zip(v).enumerate() {
                    descending(squares, lane, order);
                    for (to, &from) in s.iter_mut().zip(&*order) {
                        *to = number(&values[from], lane) * number(&back, lane);
                    }
                    store_columns(left, lane, order, u);
                    store_columns(right, lane, order, v);
                }
            }
            MatrixWork::SingularValues => {
                let mut order = [0; MOST];
                let order = &mut order[..least];
                for (lane, to) in results[0].as_mut().parts().chunks_exact_mut(least).enumerate() {
                    descending(squares, lane, order);
                    for (to, &from) in to.iter_mut().zip(&*order) {
                        *to = number(&values[from], lane) * number(&back, lane);
                    }
                }
            }
            MatrixWork::Pinv => {
                invert_squares(squares, values, least_value, back);
                let mut out = MatrixTile { data: free, rows: sizes.rows, columns: sizes.columns };
                out.fill(zero());
                let (left, right) = if is_tall { (&a, &turned) } else { (&turned, &a) };
                for row in 0..sizes.rows {
                    for at in 0..least {
                        values[at] = left.at(at, row).times(squares[at]);
                    }
                    combine::<V, true>(out.row_mut(row), values, right.data, right.columns);
                }
                out.store(results[0].as_mut().values());
                return are_finite(out.data);
            }
            MatrixWork::Lstsq => {
                invert_squares(squares, values, least_value, back);
                let mut b = MatrixTile::take(&mut free, sizes.rows, sizes.right);
                let mut shares = MatrixTile::take(&mut free, least, sizes.right);
                let mut out = MatrixTile::take(&mut free, sizes.columns, sizes.right);
                b.load(operands[1], false);
                shares.fill(zero());
                out.fill(zero());
                let (left, right) = if is_tall { (&a, &turned) } else { (&turned, &a) };
                for (at, &square) in squares.iter().enumerate() {
                    combine::<V, true>(shares.row_mut(at), left.row(at), b.data, sizes.right);
                    shares.row_mut(at).iter_mut().for_each(|own| *own = own.times(square));
                }
                for column in 0..sizes.columns {
                    for (at, to) in values.iter_mut().enumerate() {
                        *to = right.at(at, column);
                    }
                    combine::<V, true>(out.row_mut(column), values, shares.data, sizes.right);
                }
                out.store(results[0].as_mut().values());
                return are_finite(out.data);
            }
            MatrixWork::Rank => {
                for (lane, to) in results[0].as_mut().positions().iter_mut().enumerate() {
                    *to = values.iter().filter(|own| number(*own, lane) > number(&least_value, lane)).count();
                }
            }
            _ => {
                let mut lowest = most_value;
                for own in &*values {
                    lowest = lowest.greater(*own).choose(*own, lowest);
                }
                for (lane, to) in results[0].as_mut().parts().iter_mut().enumerate() {
                    let (greatest, lowest) = (number(&most_value, lane), number(&lowest, lane));
                    *to = if lowest > T::ZERO { greatest / lowest } else { num_traits::Float::infinity() };
                }
            }
        }
        true
    }
}

/// Replaces each square of a singular value by its reciprocal divided by `back`. Where the singular
/// value is at most `least_value`, the result is 0. `back` is the factor that scales singular
/// values back.
#[cfg_attr(not(unoptimized), inline(always))]
fn invert_squares<V: Lane>(squares: &mut [V], values: &[V], least_value: V, back: V) {
    let scale = one::<V>().over(back);
    for (own, value) in squares.iter_mut().zip(values) {
        *own = value.greater(least_value).choose(scale.over(*own), zero());
    }
}

pub(super) struct Expm;

impl<T: Real> TileWork<T> for Expm {
    const HAS_FOUR: bool = false;

    fn lanes(&self, sizes: MatrixSizes) -> usize {
        sizes.rows * (8 * sizes.rows + 1)
    }

    #[cfg_attr(not(unoptimized), inline(always))]
    fn run<V: Lane<Elem = T>>(&self, tile: WorkTile<'_, '_, T, V>) -> bool {
        let WorkTile { sizes, operands, results, mut free } = tile;
        let size = sizes.rows;
        let mut tile = || MatrixTile::take(&mut free, size, size);
        let (mut a, mut out) = (tile(), tile());
        let mut others = [tile(), tile(), tile(), tile(), tile(), tile()];
        a.load(operands[0], false);
        let is_right = expm::<V>(&mut a, &mut out, &mut others, free);
        out.store(results[0].as_mut().values());
        is_right
    }
}
