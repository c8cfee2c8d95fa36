//! Powers of one square matrix.

use super::stack::Failure;
use super::views::{by_rows, by_rows_mut};
use super::workspace::{Workspace, check_finite, copied, zeros};
use super::{MatrixElement, solving};
use alloc::vec::Vec;
use faer::linalg::matmul::matmul;
use faer::{Accum, Par};

fn identity<T: MatrixElement>(size: usize, to: &mut [T]) {
    to.fill(T::ZERO);
    (0..size).for_each(|at| to[at * size + at] = T::ONE);
}

pub(super) fn product<T: MatrixElement>(a: &[T], b: &[T], size: usize, to: &mut [T], par: Par) {
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
    let mut base = copied(a)?;
    let mut spare = zeros(a.len())?;
    if exponent < 0 {
        let transposed = &mut spare;
        solving::inverse(a, size, transposed, workspace)?;
        for (row, column) in (0..size).flat_map(|row| (0..size).map(move |column| (row, column))) {
            base[row * size + column] = transposed[column * size + row];
        }
    }
    let mut rest = exponent.unsigned_abs();
    if rest == 0 {
        identity(size, out);
        return Ok(());
    }
    let square = |base: &mut Vec<T>, spare: &mut Vec<T>| {
        product(base, base, size, spare, par);
        core::mem::swap(base, spare);
    };
    while rest & 1 == 0 {
        square(&mut base, &mut spare);
        rest >>= 1;
    }
    // The first factor is copied: a product with the identity would turn infinity into NaN.
    out.copy_from_slice(&base);
    rest >>= 1;
    while rest > 0 {
        square(&mut base, &mut spare);
        if rest & 1 == 1 {
            product(out, &base, size, &mut spare, par);
            out.copy_from_slice(&spare);
        }
        rest >>= 1;
    }
    Ok(())
}
