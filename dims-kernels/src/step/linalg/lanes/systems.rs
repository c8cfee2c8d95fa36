//! Cholesky factors, systems of equations, inverses and determinants, for tiles of matrices.

use super::elimination::{cholesky, eliminate, invert, solve_triangular, substitute};
use super::lane::{Lane, are_finite, number, numbers, numbers_mut, one, signed, zero};
use super::tile::MatrixTile;
use super::work::{TileWork, WorkTile, count_rows, position};
use crate::ops::matrix::{MatrixSizes, ReadTriangle};
use crate::scalar::Real;
use crate::step::linalg::accuracy::are_accurate;

pub(super) struct Cholesky;

impl<T: Real> TileWork<T> for Cholesky {
    fn lanes(&self, sizes: MatrixSizes) -> usize {
        sizes.rows * sizes.rows
    }

    #[cfg_attr(not(unoptimized), inline(always))]
    fn run<V: Lane<Elem = T>>(&self, tile: WorkTile<'_, '_, T, V>) -> bool {
        let WorkTile { sizes, operands, results, mut free } = tile;
        let mut a = MatrixTile::take(&mut free, sizes.rows, sizes.rows);
        a.load(operands[0], false);
        let is_right = cholesky::<V>(&mut a);
        a.store(results[0].as_mut().values());
        is_right
    }
}

pub(super) struct SolveTriangular(pub(super) ReadTriangle);

impl<T: Real> TileWork<T> for SolveTriangular {
    fn lanes(&self, sizes: MatrixSizes) -> usize {
        sizes.rows * (sizes.rows + sizes.right)
    }

    #[cfg_attr(not(unoptimized), inline(always))]
    fn run<V: Lane<Elem = T>>(&self, tile: WorkTile<'_, '_, T, V>) -> bool {
        let WorkTile { sizes, operands, results, mut free } = tile;
        let ReadTriangle { lower, transposed, unit } = self.0;
        let mut a = MatrixTile::take(&mut free, sizes.rows, sizes.rows);
        let mut b = MatrixTile::take(&mut free, sizes.rows, sizes.right);
        a.load(operands[0], transposed);
        b.load(operands[1], false);
        let is_right = solve_triangular::<V>(&a, &mut b, [lower != transposed, unit]);
        b.store(results[0].as_mut().values());
        is_right
    }
}

pub(super) struct Solve {
    pub(super) transposed: bool,
}

impl<T: Real> TileWork<T> for Solve {
    fn lanes(&self, sizes: MatrixSizes) -> usize {
        sizes.rows * (sizes.rows + sizes.right + 1)
    }

    #[cfg_attr(not(unoptimized), inline(always))]
    fn run<V: Lane<Elem = T>>(&self, tile: WorkTile<'_, '_, T, V>) -> bool {
        let WorkTile { sizes, operands, results, mut free } = tile;
        let mut a = MatrixTile::take(&mut free, sizes.rows, sizes.rows);
        let mut b = MatrixTile::take(&mut free, sizes.rows, sizes.right);
        a.load(operands[0], self.transposed);
        b.load(operands[1], false);
        let found = eliminate::<V>(&mut a, &mut b, free);
        substitute::<V>(&a, free, &mut b);
        b.store(results[0].as_mut().values());
        found.is_regular && are_finite(b.data)
    }
}

/// The transposed inverses, or the cofactors: these inverses times the determinants.
pub(super) struct Inverse {
    pub(super) cofactors: bool,
}

impl<T: Real> TileWork<T> for Inverse {
    fn lanes(&self, sizes: MatrixSizes) -> usize {
        2 * sizes.rows * (sizes.rows + 1)
    }

    #[cfg_attr(not(unoptimized), inline(always))]
    fn run<V: Lane<Elem = T>>(&self, tile: WorkTile<'_, '_, T, V>) -> bool {
        let WorkTile { sizes, operands, results, mut free } = tile;
        let size = sizes.rows;
        let mut a = MatrixTile::take(&mut free, size, size);
        let mut out = MatrixTile::take(&mut free, size, size);
        let mut order = MatrixTile::take(&mut free, size, 1);
        a.load(operands[0], false);
        count_rows(&mut order);
        let found = eliminate::<V>(&mut a, &mut order, free);
        invert::<V>(&a, free, &mut out);
        if self.cofactors {
            out.data.iter_mut().for_each(|own| *own = own.times(found.det));
        }
        // Rows were exchanged before the inversion, so the inverse has exchanged columns.
        for (lane, to) in results[0].as_mut().values().chunks_exact_mut(size * size).enumerate() {
            for column in 0..size {
                let place = position(number(&order.data[column], lane)) * size;
                for (row, to) in to[place..place + size].iter_mut().enumerate() {
                    *to = number(&out.data[row * size + column], lane);
                }
            }
        }
        let is_accurate = |(matrix, (a, cofactors)): (usize, (&[T], &[T]))| {
            let sizes =
                a.iter().zip(cofactors).map(|(&a, &cofactor)| [a, cofactor].map(num_traits::Float::abs));
            are_accurate(sizes, num_traits::Float::abs(number(&found.det, matrix)))
        };
        let is_accurate = !self.cofactors
            || found.is_in_range && {
                let all: &[T] = results[0].as_mut().values();
                let pairs = operands[0].chunks_exact(size * size).zip(all.chunks_exact(size * size));
                pairs.enumerate().all(is_accurate)
            };
        found.is_regular && is_accurate && are_finite(out.data)
    }
}

pub(super) struct Det {
    pub(super) logarithm: bool,
}

impl<T: Real> TileWork<T> for Det {
    fn lanes(&self, sizes: MatrixSizes) -> usize {
        sizes.rows * (sizes.rows + 1)
    }

    #[cfg_attr(not(unoptimized), inline(always))]
    fn run<V: Lane<Elem = T>>(&self, tile: WorkTile<'_, '_, T, V>) -> bool {
        let WorkTile { sizes, operands, results, mut free } = tile;
        let mut a = MatrixTile::take(&mut free, sizes.rows, sizes.rows);
        let mut none = MatrixTile::take(&mut free, sizes.rows, 0);
        a.load(operands[0], false);
        let found = eliminate::<V>(&mut a, &mut none, free);
        if !self.logarithm {
            let out = results[0].as_mut().values();
            out.copy_from_slice(&numbers(&[found.det])[..out.len()]);
            return found.is_in_range;
        }
        let (mut sign, mut log) = (found.sign, zero::<V>());
        for at in 0..sizes.rows {
            let pivot = a.at(at, at);
            sign = sign.times(signed(one(), pivot));
            let mut logarithm = pivot.abs();
            for own in numbers_mut(core::slice::from_mut(&mut logarithm)) {
                *own = num_traits::Float::ln(*own);
            }
            log = log.plus(logarithm);
        }
        let [signs, logs] = results else { unreachable!("there are two results") };
        let (signs, logs) = (signs.as_mut().values(), logs.as_mut().parts());
        signs.copy_from_slice(&numbers(&[sign])[..signs.len()]);
        logs.copy_from_slice(&numbers(&[log])[..logs.len()]);
        found.is_regular && are_finite(&[log])
    }
}
