//! Several matrices of the same size, interleaved: each [`Lane`] holds the elements of all matrices
//! at one place. A number named `lane` is the index of a matrix within a [`Lane`].

use super::lane::{Lane, number, numbers, numbers_mut, one, set_number, zero};
use crate::copy::copy_strided;

/// Matrices of at least this many elements are loaded and stored by [`copy_strided`].
const BLOCKS_FROM: usize = 32;

/// Several matrices of the same size. `data` has one lane for each place, row by row.
pub(super) struct MatrixTile<'t, V> {
    pub(super) data: &'t mut [V],
    pub(super) rows: usize,
    pub(super) columns: usize,
}

impl<'t, V: Lane> MatrixTile<'t, V> {
    /// Takes the lanes of a tile from the front of the free lanes.
    #[cfg_attr(not(unoptimized), inline(always))]
    pub(super) fn take(free: &mut &'t mut [V], rows: usize, columns: usize) -> Self {
        let (data, rest) = core::mem::take(free).split_at_mut(rows * columns);
        *free = rest;
        MatrixTile { data, rows, columns }
    }

    #[cfg_attr(not(unoptimized), inline(always))]
    pub(super) fn at(&self, row: usize, column: usize) -> V {
        self.data[row * self.columns + column]
    }

    #[cfg_attr(not(unoptimized), inline(always))]
    pub(super) fn set(&mut self, row: usize, column: usize, value: V) {
        self.data[row * self.columns + column] = value;
    }

    #[cfg_attr(not(unoptimized), inline(always))]
    pub(super) fn row(&self, row: usize) -> &[V] {
        &self.data[row * self.columns..][..self.columns]
    }

    #[cfg_attr(not(unoptimized), inline(always))]
    pub(super) fn row_mut(&mut self, row: usize) -> &mut [V] {
        &mut self.data[row * self.columns..][..self.columns]
    }

    /// Two rows, the second one below the first.
    #[cfg_attr(not(unoptimized), inline(always))]
    pub(super) fn row_pair(&mut self, upper: usize, lower: usize) -> [&mut [V]; 2] {
        let (above, below) = self.data.split_at_mut(lower * self.columns);
        [&mut above[upper * self.columns..][..self.columns], &mut below[..self.columns]]
    }

    /// Loads matrices whose elements are stored row by row, or column by column if `transposed`.
    /// If there are fewer than `V::COUNT` matrices, the last one is repeated.
    #[cfg_attr(not(unoptimized), inline(always))]
    pub(super) fn load(&mut self, data: &[V::Elem], transposed: bool) {
        let (rows, columns) = (self.rows, self.columns);
        let len = rows * columns;
        let count = data.len() / len;
        // How far apart the rows and the columns of a matrix are.
        let [down, right] = if transposed { [1, rows] } else { [columns, 1] };
        let loaded = if len < BLOCKS_FROM { 0 } else { count };
        if loaded > 0 && transposed {
            let (strides, result) = ([down, right, len], [columns * V::COUNT, V::COUNT, 1]);
            copy_strided(data, strides, numbers_mut(self.data), result, [rows, columns, count]);
        } else if loaded > 0 {
            copy_strided(data, [1, len], numbers_mut(self.data), [V::COUNT, 1], [len, count]);
        }
        if loaded == 0 && count == V::COUNT {
            for (row, to) in self.data.chunks_exact_mut(columns).enumerate() {
                for (column, to) in to.iter_mut().enumerate() {
                    for (lane, to) in numbers_mut(core::slice::from_mut(to)).iter_mut().enumerate() {
                        *to = data[lane * len + row * down + column * right];
                    }
                }
            }
            return;
        }
        for lane in loaded..V::COUNT {
            let own = &data[lane.min(count - 1) * len..][..len];
            for (row, to) in self.data.chunks_exact_mut(columns).enumerate() {
                for (column, to) in to.iter_mut().enumerate() {
                    set_number(to, lane, own[row * down + column * right]);
                }
            }
        }
    }

    /// Stores as many matrices as there is space for.
    #[cfg_attr(not(unoptimized), inline(always))]
    pub(super) fn store(&self, out: &mut [V::Elem]) {
        let len = self.rows * self.columns;
        if len >= BLOCKS_FROM {
            let count = out.len() / len;
            copy_strided(numbers(self.data), [1, V::COUNT], out, [len, 1], [count, len]);
            return;
        }
        for (lane, out) in out.chunks_exact_mut(len).enumerate() {
            for (to, own) in out.iter_mut().zip(&*self.data) {
                *to = number(own, lane);
            }
        }
    }

    #[cfg_attr(not(unoptimized), inline(always))]
    pub(super) fn fill(&mut self, value: V) {
        self.data.fill(value);
    }

    /// Sets ones on the diagonal, and zeros elsewhere.
    #[cfg_attr(not(unoptimized), inline(always))]
    pub(super) fn set_identity(&mut self) {
        self.fill(zero());
        for at in 0..self.rows.min(self.columns) {
            self.set(at, at, one());
        }
    }

    /// Exchanges two rows of one matrix.
    #[cfg_attr(not(unoptimized), inline(always))]
    pub(super) fn exchange(&mut self, lane: usize, [upper, lower]: [usize; 2]) {
        let [upper, lower] = self.row_pair(upper, lower);
        for (one, other) in upper.iter_mut().zip(lower) {
            let (x, y) = (number(one, lane), number(other, lane));
            set_number(one, lane, y);
            set_number(other, lane, x);
        }
    }
}

/// `to[j] -= sum over k of factors[k] * rows[k, j]` (`ADDS`: `+=`), where rows are `stride` apart.
#[cfg_attr(not(unoptimized), inline(always))]
pub(super) fn combine<V: Lane, const ADDS: bool>(to: &mut [V], factors: &[V], rows: &[V], stride: usize) {
    const BLOCK: usize = 4;
    let mut start = 0;
    let (blocks, rest) = to.as_chunks_mut::<BLOCK>();
    for block in blocks {
        combine_block::<V, BLOCK, ADDS>(block, factors, rows, stride, start);
        start += BLOCK;
    }
    for one in rest {
        combine_block::<V, 1, ADDS>(core::array::from_mut(one), factors, rows, stride, start);
        start += 1;
    }
}

#[cfg_attr(not(unoptimized), inline(always))]
fn combine_block<V: Lane, const B: usize, const ADDS: bool>(
    to: &mut [V; B],
    factors: &[V],
    rows: &[V],
    stride: usize,
    start: usize,
) {
    let mut sums = *to;
    for (&factor, row) in factors.iter().zip(rows.chunks(stride)) {
        let row = &row[start..start + B];
        for at in 0..B {
            sums[at] = if ADDS {
                sums[at].add_product(factor, row[at])
            } else {
                sums[at].subtract_product(factor, row[at])
            };
        }
    }
    *to = sums;
}

/// `value - sum over k of x[k] * y[k]`
#[cfg_attr(not(unoptimized), inline(always))]
pub(super) fn less_dot<V: Lane>(value: V, x: &[V], y: &[V]) -> V {
    x.iter().zip(y).fold(value, |sum, (&x, &y)| sum.subtract_product(x, y))
}

/// `sum over k of x[k] * y[k]`
#[cfg_attr(not(unoptimized), inline(always))]
pub(super) fn dot<V: Lane>(x: &[V], y: &[V]) -> V {
    // Two sums, because each addition waits for the one before.
    let (x_pairs, x_rest) = x.as_chunks::<2>();
    let (y_pairs, y_rest) = y.as_chunks::<2>();
    let mut sums: [V; 2] = [zero(); 2];
    for (x, y) in x_pairs.iter().zip(y_pairs) {
        for at in 0..2 {
            sums[at] = sums[at].add_product(x[at], y[at]);
        }
    }
    for (&x, &y) in x_rest.iter().zip(y_rest) {
        sums[0] = sums[0].add_product(x, y);
    }
    sums[0].plus(sums[1])
}
