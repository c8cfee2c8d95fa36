//! LU and QR factors of tiles.

use super::elimination::eliminate;
use super::lane::{Lane, are_finite, number};
use super::reflections::qr;
use super::tile::MatrixTile;
use super::work::{TileWork, WorkTile, count_rows, position};
use crate::ops::matrix::MatrixSizes;
use crate::scalar::Real;

pub(super) struct Lu;

impl<T: Real> TileWork<T> for Lu {
    fn lanes(&self, sizes: MatrixSizes) -> usize {
        sizes.rows * (sizes.columns + 1) + sizes.least()
    }

    #[cfg_attr(not(unoptimized), inline(always))]
    fn run<V: Lane<Elem = T>>(&self, tile: WorkTile<'_, '_, T, V>) -> bool {
        let WorkTile { sizes, operands, results, mut free } = tile;
        let (rows, columns, least) = (sizes.rows, sizes.columns, sizes.least());
        let mut a = MatrixTile::take(&mut free, rows, columns);
        let mut order = MatrixTile::take(&mut free, rows, 1);
        a.load(operands[0], false);
        if !are_finite(a.data) {
            return false;
        }
        count_rows(&mut order);
        eliminate::<V>(&mut a, &mut order, free);
        let [positions, lower, upper] = results else { unreachable!("there are three results") };
        let positions = positions.as_mut().positions().chunks_exact_mut(rows);
        let lower = lower.as_mut().values().chunks_exact_mut(rows * least);
        let upper = upper.as_mut().values().chunks_exact_mut(least * columns);
        for (lane, ((positions, lower), upper)) in positions.zip(lower).zip(upper).enumerate() {
            for (to, own) in positions.iter_mut().zip(&*order.data) {
                *to = position(number(own, lane));
            }
            for (row, to) in lower.chunks_exact_mut(least).enumerate() {
                let own = &a.row(row)[..least];
                for (column, (to, own)) in to.iter_mut().zip(own).enumerate() {
                    *to = match row.cmp(&column) {
                        core::cmp::Ordering::Less => T::ZERO,
                        core::cmp::Ordering::Equal => T::ONE,
                        core::cmp::Ordering::Greater => number(own, lane),
                    };
                }
            }
            for (row, to) in upper.chunks_exact_mut(columns).enumerate() {
                for (column, (to, own)) in to.iter_mut().zip(a.row(row)).enumerate() {
                    *to = if column < row { T::ZERO } else { number(own, lane) };
                }
            }
        }
        are_finite(a.data)
    }
}

pub(super) struct Qr;

impl<T: Real> TileWork<T> for Qr {
    fn lanes(&self, sizes: MatrixSizes) -> usize {
        let least = sizes.least();
        sizes.rows * (sizes.columns + 2 * least) + least + sizes.columns
    }

    #[cfg_attr(not(unoptimized), inline(always))]
    fn run<V: Lane<Elem = T>>(&self, tile: WorkTile<'_, '_, T, V>) -> bool {
        let WorkTile { sizes, operands, results, mut free } = tile;
        let (rows, columns, least) = (sizes.rows, sizes.columns, sizes.least());
        let mut a = MatrixTile::take(&mut free, rows, columns);
        let mut q = MatrixTile::take(&mut free, rows, least);
        let (vectors, free) = free.split_at_mut(rows * least);
        let (taus, sums) = free.split_at_mut(least);
        a.load(operands[0], false);
        let is_right = are_finite(a.data) && qr::<V>(&mut a, &mut q, vectors, taus, sums);
        let [of_q, of_r] = results else { unreachable!("there are two results") };
        q.store(of_q.as_mut().values());
        MatrixTile { data: &mut a.data[..least * columns], rows: least, columns }
            .store(of_r.as_mut().values());
        is_right && are_finite(q.data) && are_finite(a.data)
    }
}
