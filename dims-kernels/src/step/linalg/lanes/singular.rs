//! Singular values and vectors of a tile of matrices: rotations make the rows of each matrix
//! orthogonal. (M. Hestenes, Inversion of matrices by biorthogonalization and related results,
//! 1958.) The rotations also move longer rows to the front. (P. de Rijk, A one-sided Jacobi
//! algorithm for computing the singular value decomposition on a vector computer, 1989.)

use super::lane::{Lane, are_finite, count_lane, number, one, signed, zero};
use super::symmetric::{rotate, scales};
use super::tile::{MatrixTile, dot};

/// How many times all pairs of rows may be rotated.
const MOST_SWEEPS: usize = 40;

/// Makes the rows of `a` orthogonal, and applies the rotations to the rows of `turned`, if it has
/// any. The matrices are [scaled](scales) first, and `squares` receives the squares of their
/// singular values. Returns the factor that scales singular values back, or `None` if a matrix has
/// no result.
#[cfg_attr(not(unoptimized), inline(always))]
pub(super) fn orthogonalize<V: Lane>(
    a: &mut MatrixTile<'_, V>,
    turned: &mut MatrixTile<'_, V>,
    squares: &mut [V],
) -> Option<V> {
    let [scale, back] = scales(a.data)?;
    a.data.iter_mut().for_each(|own| *own = own.times(scale));
    let count = a.rows;
    let epsilon: V = V::all(num_traits::Float::epsilon());
    let tolerance = count_lane::<V>(a.columns).sqrt().times(epsilon);
    for _ in 0..MOST_SWEEPS {
        for (at, square) in squares.iter_mut().enumerate() {
            let row = a.row(at);
            *square = dot::<V>(row, row);
        }
        let mut was_rotated = zero::<V>();
        for first in 0..count {
            for second in first + 1..count {
                let [x, y] = a.row_pair(first, second);
                let product = dot::<V>(x, y);
                let (of_x, of_y) = (squares[first], squares[second]);
                let limit = of_x.times(of_y).sqrt().times(tolerance);
                let rotates = product.abs().greater(limit);
                let swaps = of_y.greater(of_x);
                if rotates.is_nowhere() && swaps.is_nowhere() {
                    continue;
                }
                was_rotated = was_rotated.or(rotates);
                let (turn, moved) = turn::<V>(product, [of_x, of_y], rotates);
                let (less, more) = (of_x.minus(moved), of_y.plus(moved));
                let swaps = more.greater(less);
                squares[first] = swaps.choose(more, less);
                squares[second] = swaps.choose(less, more);
                let turn = [swaps.choose(turn[1], turn[0]), swaps.choose(turn[0].negated(), turn[1])];
                rotate::<V>(x, y, turn);
                if turned.rows > 0 {
                    let [x, y] = turned.row_pair(first, second);
                    rotate::<V>(x, y, turn);
                }
            }
        }
        if was_rotated.is_nowhere() {
            for (at, square) in squares.iter_mut().enumerate() {
                let row = a.row(at);
                *square = dot::<V>(row, row);
            }
            return (are_finite(squares) && are_finite(turned.data)).then_some(back);
        }
    }
    None
}

/// The cosine and the sine of the rotation that makes two rows with this dot product and these
/// squared lengths orthogonal, and by how much it decreases the squared length of the first row.
/// Nothing is rotated where `rotates` does not hold.
#[cfg_attr(not(unoptimized), inline(always))]
fn turn<V: Lane>(product: V, [of_x, of_y]: [V; 2], rotates: V) -> ([V; 2], V) {
    let gap = of_y.minus(of_x);
    let twice = product.plus(product);
    let root = gap.times(gap).add_product(twice, twice).sqrt();
    let divisor = gap.plus(signed(root, gap));
    let tangent = rotates.choose(twice.over(divisor), zero());
    let cosine = one::<V>().over(tangent.times(tangent).plus(one()).sqrt());
    ([cosine, cosine.times(tangent)], tangent.times(product))
}

/// Sorts the numbers of the matrix `lane`, such as squares of singular values, from the greatest to
/// the least, and writes their indices to `order`.
pub(super) fn descending<V: Lane>(squares: &[V], lane: usize, order: &mut [usize]) {
    for (at, own) in order.iter_mut().enumerate() {
        *own = at;
    }
    // Insertion sort, because the numbers are few, and singular values are nearly in order.
    for at in 1..order.len() {
        let mut place = at;
        while place > 0 && number(&squares[order[place]], lane) > number(&squares[order[place - 1]], lane) {
            order.swap(place, place - 1);
            place -= 1;
        }
    }
}
