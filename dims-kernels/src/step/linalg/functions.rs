//! Functions of one square matrix: powers and the exponential.

use super::pade::{PADE, PADE_NORM};
use super::stack::Failure;
use super::views::{by_rows, by_rows_mut};
use super::workspace::{Workspace, check_finite};
use super::{MatrixElement, MatrixSizes, solving};
use crate::scalar::Num;
use alloc::vec::Vec;
use faer::linalg::matmul::matmul;
use faer::{Accum, Par};

fn number<T: MatrixElement>(value: f64) -> T {
    T::of_part(num_traits::NumCast::from(value).expect("a float can be any float, rounded"))
}

fn identity<T: MatrixElement>(size: usize, to: &mut [T]) {
    to.fill(T::ZERO);
    (0..size).for_each(|at| to[at * size + at] = T::ONE);
}

fn product<T: MatrixElement>(a: &[T], b: &[T], size: usize, to: &mut [T], par: Par) {
    let [a, b] = [a, b].map(|own| by_rows(own, size, size));
    matmul(by_rows_mut(to, size, size), Accum::Replace, a, b, T::ONE, par);
}

/// The power with an integer exponent, by repeated squaring.
pub(super) fn power<T: MatrixElement>(
    a: &[T],
    size: usize,
    exponent: i64,
    out: &mut [T],
    workspace: &mut Workspace<T>,
) -> Result<(), Failure> {
    check_finite(a)?;
    let par = workspace.par;
    let mut base: Vec<T> = a.to_vec();
    if exponent < 0 {
        let mut transposed = base.clone();
        solving::inverse(a, size, &mut transposed, workspace)?;
        for (row, column) in (0..size).flat_map(|row| (0..size).map(move |column| (row, column))) {
            base[row * size + column] = transposed[column * size + row];
        }
    }
    identity(size, out);
    let (mut rest, mut other) = (exponent.unsigned_abs(), base.clone());
    while rest > 0 {
        if rest & 1 == 1 {
            product(out, &base, size, &mut other, par);
            out.copy_from_slice(&other);
        }
        rest >>= 1;
        if rest > 0 {
            product(&base, &base, size, &mut other, par);
            core::mem::swap(&mut base, &mut other);
        }
    }
    Ok(())
}

/// `e^a` by scaling and squaring.
pub(super) fn expm<T: MatrixElement>(
    a: &[T],
    size: usize,
    out: &mut [T],
    workspace: &mut Workspace<T>,
) -> Result<(), Failure> {
    check_finite(a)?;
    if size == 0 {
        return Ok(());
    }
    let par = workspace.par;
    let column = |at: usize| {
        (0..size)
            .map(|row| num_traits::ToPrimitive::to_f64(&a[row * size + at].size()))
            .map(Option::unwrap_or_default)
            .sum::<f64>()
    };
    let norm = (0..size).map(column).fold(0.0, f64::max);
    let halvings = if norm > PADE_NORM { libm::ceil(libm::log2(norm / PADE_NORM)) } else { 0.0 };
    let scale = number::<T>(libm::exp2(-halvings));
    let a: Vec<T> = a.iter().map(|&value| Num::mul(value, scale)).collect();
    let zeros = || alloc::vec![T::ZERO; size * size];
    let [mut a2, mut a4, mut a6] = [zeros(), zeros(), zeros()];
    product(&a, &a, size, &mut a2, par);
    product(&a2, &a2, size, &mut a4, par);
    product(&a4, &a2, size, &mut a6, par);
    // A sum of powers times their coefficients.
    let sum = |coefficients: [usize; 4]| {
        let mut sum = zeros();
        for at in 0..size * size {
            let terms = [&a6, &a4, &a2].into_iter().zip(coefficients);
            sum[at] = terms.fold(T::ZERO, |sum, (own, number_of)| match number_of {
                usize::MAX => sum,
                number_of => Num::add(sum, Num::mul(own[at], number(PADE[number_of]))),
            });
        }
        if coefficients[3] != usize::MAX {
            (0..size).for_each(|at| {
                sum[at * size + at] = Num::add(sum[at * size + at], number(PADE[coefficients[3]]))
            });
        }
        sum
    };
    let side = |high: [usize; 4], low: [usize; 4]| {
        let mut all = zeros();
        product(&a6, &sum(high), size, &mut all, par);
        all.iter_mut().zip(sum(low)).for_each(|(all, low)| *all = Num::add(*all, low));
        all
    };
    let odd = side([13, 11, 9, usize::MAX], [7, 5, 3, 1]);
    let v = side([12, 10, 8, usize::MAX], [6, 4, 2, 0]);
    let mut u = zeros();
    product(&a, &odd, size, &mut u, par);
    let above: Vec<T> = v.iter().zip(&u).map(|(&v, &u)| Num::add(v, u)).collect();
    let below: Vec<T> = v.iter().zip(&u).map(|(&v, &u)| Num::sub(v, u)).collect();
    solving::solve([&below, &above], MatrixSizes::square(1, size).with_right(size), false, out, workspace)?;
    let mut squared = zeros();
    for _ in 0..halvings as usize {
        product(out, out, size, &mut squared, par);
        out.copy_from_slice(&squared);
    }
    Ok(())
}
