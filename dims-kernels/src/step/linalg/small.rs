//! Small matrices, several at once, each in one lane of the SIMD vectors.
//!
//! A tile stores the same element of [`LANES`] matrices next to each other, so each operation on it
//! is a vector operation. Rows are exchanged per lane, by selection. If a lane has no result, the
//! caller computes the matrices one by one to report the cause.

// With indexed loops of constant length, the compiler vectorizes over lanes.
#![allow(clippy::needless_range_loop)]

use super::{MatrixSizes, MatrixWork};
use crate::machine::isa::{Isa, Task, dispatch};
use crate::scalar::Real;

/// The number of matrices computed at once.
pub(super) const LANES: usize = 8;

/// The maximum number of rows of a small matrix.
const MOST_ROWS: usize = 8;

/// The most right-hand sides of a small system.
const MOST_RIGHT: usize = 4;

/// The same element of each matrix.
type Lane<T> = [T; LANES];

/// Matrices of `R` rows and `C` columns.
type LaneTile<T, const R: usize, const C: usize> = [[Lane<T>; C]; R];

/// Whether this work supports these sizes.
pub(super) fn is_small(work: MatrixWork, sizes: MatrixSizes) -> bool {
    let has_lanes = match work {
        MatrixWork::Cholesky | MatrixWork::Inverse | MatrixWork::Det => true,
        MatrixWork::Solve { .. } => (1..=MOST_RIGHT).contains(&sizes.right),
        _ => false,
    };
    has_lanes && (1..=MOST_ROWS).contains(&sizes.rows)
}

/// Computes up to [`LANES`] matrices. Returns whether each has a result; if not, `out` is invalid.
pub(super) fn run<T: Real>(work: MatrixWork, sizes: MatrixSizes, operands: &[&[T]], out: &mut [T]) -> bool {
    let count = operands[0].len() / (sizes.rows * sizes.rows);
    let (a, b) = (operands[0], operands.get(1).copied().unwrap_or_default());
    macro_rules! by_rows {
        ($($n:literal)*) => {
            match sizes.rows {
                $($n => dispatch(SmallMatrices::<'_, T, $n> { work, right: sizes.right, a, b, out, count }),)*
                _ => false,
            }
        };
    }
    by_rows!(1 2 3 4 5 6 7 8)
}

struct SmallMatrices<'t, T, const N: usize> {
    work: MatrixWork,
    right: usize,
    a: &'t [T],
    b: &'t [T],
    out: &'t mut [T],
    count: usize,
}

impl<T: Real, const N: usize> Task for SmallMatrices<'_, T, N> {
    type Out = bool;
    const WIDE: bool = true;

    #[cfg_attr(not(unoptimized), inline(always))]
    fn run<I: Isa>(self) -> bool {
        let SmallMatrices { work, right, a, b, out, count } = self;
        let mut tile = loaded::<T, N, N>(a, N, count);
        match work {
            MatrixWork::Cholesky => {
                let is_right = cholesky::<I, T, N>(&mut tile);
                store(&tile, N, out, count);
                is_right
            }
            MatrixWork::Det => {
                let mut none: LaneTile<T, N, 0> = [[]; N];
                let Eliminated { det, is_in_range, .. } = eliminate::<I, T, N, 0>(&mut tile, &mut none);
                out.copy_from_slice(&det[..count]);
                is_in_range
            }
            MatrixWork::Inverse => {
                // The result is the inverse of the transpose.
                let mut tile = transposed(&tile);
                let mut inverse = identity::<T, N>();
                let Eliminated { is_regular, .. } = eliminate::<I, T, N, N>(&mut tile, &mut inverse);
                substitute::<I, T, N, N>(&tile, &mut inverse);
                store(&inverse, N, out, count);
                is_regular && is_finite(&inverse)
            }
            MatrixWork::Solve { transposed: is_transposed } => {
                if is_transposed {
                    tile = transposed(&tile);
                }
                match right {
                    1 => solve::<I, T, N, 1>(tile, right, b, out, count),
                    _ => solve::<I, T, N, MOST_RIGHT>(tile, right, b, out, count),
                }
            }
            _ => false,
        }
    }
}

#[cfg_attr(not(unoptimized), inline(always))]
fn solve<I: Isa, T: Real, const N: usize, const C: usize>(
    mut tile: LaneTile<T, N, N>,
    right: usize,
    b: &[T],
    out: &mut [T],
    count: usize,
) -> bool {
    let mut x = loaded::<T, N, C>(b, right, count);
    let Eliminated { is_regular, .. } = eliminate::<I, T, N, C>(&mut tile, &mut x);
    substitute::<I, T, N, C>(&tile, &mut x);
    store(&x, right, out, count);
    is_regular && is_finite(&x)
}

/// Loads up to [`LANES`] matrices of up to `C` columns. Lanes without a matrix repeat the last one.
#[cfg_attr(not(unoptimized), inline(always))]
fn loaded<T: Real, const R: usize, const C: usize>(
    data: &[T],
    columns: usize,
    count: usize,
) -> LaneTile<T, R, C> {
    let mut tile = [[[T::ZERO; LANES]; C]; R];
    for lane in 0..LANES {
        let own = &data[lane.min(count - 1) * R * columns..][..R * columns];
        for row in 0..R {
            for column in 0..C.min(columns) {
                tile[row][column][lane] = own[row * columns + column];
            }
        }
    }
    tile
}

#[cfg_attr(not(unoptimized), inline(always))]
fn store<T: Real, const R: usize, const C: usize>(
    tile: &LaneTile<T, R, C>,
    columns: usize,
    out: &mut [T],
    count: usize,
) {
    for (lane, own) in out.chunks_exact_mut(R * columns).take(count).enumerate() {
        for row in 0..R {
            for column in 0..C.min(columns) {
                own[row * columns + column] = tile[row][column][lane];
            }
        }
    }
}

#[cfg_attr(not(unoptimized), inline(always))]
fn transposed<T: Real, const N: usize>(tile: &LaneTile<T, N, N>) -> LaneTile<T, N, N> {
    core::array::from_fn(|row| core::array::from_fn(|column| tile[column][row]))
}

#[cfg_attr(not(unoptimized), inline(always))]
fn identity<T: Real, const N: usize>() -> LaneTile<T, N, N> {
    core::array::from_fn(|row| {
        core::array::from_fn(|column| [if row == column { T::ONE } else { T::ZERO }; LANES])
    })
}

#[cfg_attr(not(unoptimized), inline(always))]
fn is_finite<T: Real, const R: usize, const C: usize>(tile: &LaneTile<T, R, C>) -> bool {
    tile.iter().flatten().flatten().fold(true, |all, value| all & value.is_finite())
}

/// `value - x * y`
#[cfg_attr(not(unoptimized), inline(always))]
fn less<I: Isa, T: Real>(value: T, x: T, y: T) -> T {
    value.add_product::<I>(-x, y)
}

/// Replaces matrices with the Cholesky factors of their symmetric parts. Returns whether all are
/// positive definite.
#[cfg_attr(not(unoptimized), inline(always))]
fn cholesky<I: Isa, T: Real, const N: usize>(a: &mut LaneTile<T, N, N>) -> bool {
    let half = T::ONE / (T::ONE + T::ONE);
    let mut is_right = true;
    for column in 0..N {
        for row in column..N {
            let mut rest = [T::ZERO; LANES];
            for lane in 0..LANES {
                rest[lane] = (a[row][column][lane] + a[column][row][lane]) * half;
            }
            for k in 0..column {
                for lane in 0..LANES {
                    rest[lane] = less::<I, T>(rest[lane], a[row][k][lane], a[column][k][lane]);
                }
            }
            if row == column {
                for value in &mut rest {
                    is_right &= *value > T::ZERO && *value < num_traits::Float::infinity();
                    *value = num_traits::Float::sqrt(*value);
                }
            } else {
                for lane in 0..LANES {
                    rest[lane] = rest[lane] / a[column][column][lane];
                }
            }
            a[row][column] = rest;
        }
        for above in &mut a[..column] {
            above[column] = [T::ZERO; LANES];
        }
    }
    is_right
}

/// What elimination finds out.
struct Eliminated<T> {
    det: Lane<T>,
    /// Whether all matrices have an inverse.
    is_regular: bool,
    /// Whether all determinants, and all products of some pivots, are in the range of floats.
    is_in_range: bool,
}

/// Makes matrices upper triangular by row operations, which it also applies to the right-hand
/// sides, and stores reciprocals on the diagonals.
#[cfg_attr(not(unoptimized), inline(always))]
fn eliminate<I: Isa, T: Real, const N: usize, const C: usize>(
    a: &mut LaneTile<T, N, N>,
    b: &mut LaneTile<T, N, C>,
) -> Eliminated<T> {
    let (mut det, mut is_regular, mut is_in_range) = ([T::ONE; LANES], true, true);
    let least: T = num_traits::Float::min_positive_value();
    for k in 0..N {
        for row in k + 1..N {
            exchange(a, b, &mut det, [k, row]);
        }
        let mut share = [T::ZERO; LANES];
        for lane in 0..LANES {
            let pivot = a[k][k][lane];
            det[lane] = det[lane] * pivot;
            is_in_range &= det[lane].is_finite() && num_traits::Float::abs(det[lane]) >= least;
            is_regular &= pivot != T::ZERO && pivot.is_finite();
            share[lane] = T::ONE / pivot;
        }
        a[k][k] = share;
        for row in k + 1..N {
            let mut factor = [T::ZERO; LANES];
            for lane in 0..LANES {
                factor[lane] = a[row][k][lane] * share[lane];
            }
            for column in k + 1..N {
                for lane in 0..LANES {
                    a[row][column][lane] =
                        less::<I, T>(a[row][column][lane], factor[lane], a[k][column][lane]);
                }
            }
            for column in 0..C {
                for lane in 0..LANES {
                    b[row][column][lane] =
                        less::<I, T>(b[row][column][lane], factor[lane], b[k][column][lane]);
                }
            }
        }
    }
    Eliminated { det, is_regular, is_in_range }
}

/// Exchanges two rows in the lanes where the second has the greater pivot.
#[cfg_attr(not(unoptimized), inline(always))]
fn exchange<T: Real, const N: usize, const C: usize>(
    a: &mut LaneTile<T, N, N>,
    b: &mut LaneTile<T, N, C>,
    det: &mut Lane<T>,
    [k, row]: [usize; 2],
) {
    let mut is_greater = [false; LANES];
    for lane in 0..LANES {
        is_greater[lane] = num_traits::Float::abs(a[row][k][lane]) > num_traits::Float::abs(a[k][k][lane]);
        det[lane] = if is_greater[lane] { -det[lane] } else { det[lane] };
    }
    let exchanged = |one: &mut Lane<T>, other: &mut Lane<T>| {
        for lane in 0..LANES {
            let (x, y) = (one[lane], other[lane]);
            one[lane] = if is_greater[lane] { y } else { x };
            other[lane] = if is_greater[lane] { x } else { y };
        }
    };
    let (upper, lower) = a.split_at_mut(row);
    for column in k..N {
        exchanged(&mut upper[k][column], &mut lower[0][column]);
    }
    let (upper, lower) = b.split_at_mut(row);
    for column in 0..C {
        exchanged(&mut upper[k][column], &mut lower[0][column]);
    }
}

/// Solves triangular systems whose diagonal holds reciprocals.
#[cfg_attr(not(unoptimized), inline(always))]
fn substitute<I: Isa, T: Real, const N: usize, const C: usize>(
    a: &LaneTile<T, N, N>,
    b: &mut LaneTile<T, N, C>,
) {
    for k in (0..N).rev() {
        for column in 0..C {
            let mut rest = b[k][column];
            for below in k + 1..N {
                for lane in 0..LANES {
                    rest[lane] = less::<I, T>(rest[lane], a[k][below][lane], b[below][column][lane]);
                }
            }
            for lane in 0..LANES {
                b[k][column][lane] = rest[lane] * a[k][k][lane];
            }
        }
    }
}
