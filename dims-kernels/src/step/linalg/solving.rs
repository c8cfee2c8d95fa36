//! Factorizations by elimination, and systems of equations, of one matrix.

use super::stack::{Failure, Stack};
use super::views::{by_columns_mut, by_rows, by_rows_mut, to_columns, to_rows, transpose};
use super::workspace::{Workspace, cause, check_finite, hermitian};
use super::{MatrixElement, MatrixSizes, ReadTriangle};
use crate::error::MatrixFailure;
use crate::scalar::Num;
use alloc::vec;
use alloc::vec::Vec;
use faer::linalg::cholesky::llt::factor as llt;
use faer::linalg::lu::partial_pivoting::{factor, inverse as lu_inverse, solve as lu_solve};
use faer::linalg::triangular_solve as triangular;
use faer::perm::PermRef;
use faer::{MatMut, MatRef, Par};

/// The lower factor of the Hermitian part.
pub(super) fn cholesky<T: MatrixElement>(
    a: &[T],
    size: usize,
    out: &mut [T],
    workspace: &mut Workspace<T>,
) -> Result<(), Failure> {
    let Workspace { copies: [copy, ..], stack, par } = workspace;
    let copy = copy.any(a.len())?;
    hermitian(a, size, copy);
    let stack = stack.of(llt::cholesky_in_place_scratch::<T>(size, *par, Default::default()))?;
    let factor = by_columns_mut(copy, size, size);
    let found = llt::cholesky_in_place(factor, Default::default(), *par, stack, Default::default());
    let is_number = |at: usize| copy[at * size + at].is_number();
    if found.is_err() || !(0..size).all(is_number) {
        return Err(cause(&[a], MatrixFailure::NotPositiveDefinite));
    }
    to_rows(copy, size, size, out);
    for (row, out) in out.chunks_exact_mut(size.max(1)).enumerate() {
        out[row + 1..].fill(T::ZERO);
    }
    Ok(())
}

/// `x` in `t x = b`.
pub(super) fn solve_triangular<T: MatrixElement>(
    [a, b]: [&[T]; 2],
    sizes: MatrixSizes,
    ReadTriangle { lower, transposed, unit }: ReadTriangle,
    out: &mut [T],
    workspace: &mut Workspace<T>,
) -> Result<(), Failure> {
    let MatrixSizes { rows: size, right, .. } = sizes;
    if !unit && (0..size).any(|at| a[at * size + at] == T::ZERO) {
        return Err(cause(&[a], MatrixFailure::Singular));
    }
    out.copy_from_slice(b);
    let matrix = by_rows(a, size, size);
    let matrix = if transposed { matrix.transpose() } else { matrix };
    let x = by_rows_mut(out, size, right);
    let par = workspace.par;
    match (lower != transposed, unit) {
        (true, false) => triangular::solve_lower_triangular_in_place(matrix, x, par),
        (true, true) => triangular::solve_unit_lower_triangular_in_place(matrix, x, par),
        (false, false) => triangular::solve_upper_triangular_in_place(matrix, x, par),
        (false, true) => triangular::solve_unit_upper_triangular_in_place(matrix, x, par),
    }
    match check_finite(out) {
        Ok(()) => Ok(()),
        Err(_) => Err(cause(&[a, b], MatrixFailure::Singular)),
    }
}

/// The factors of a matrix, column by column, in place of it; the lower one with its unit diagonal
/// left out. A matrix that is stored row by row is the transpose of one that is stored column by
/// column.
struct Factors<'w, T> {
    factors: MatMut<'w, T>,
    order: Vec<usize>,
    order_back: Vec<usize>,
    exchanges: usize,
}

impl<'w, T: MatrixElement> Factors<'w, T> {
    fn of(columns: &'w mut [T], size: usize, (stack, par): (&mut Stack, Par)) -> Result<Self, Failure> {
        let (mut order, mut order_back) = (vec![0; size], vec![0; size]);
        let stack = stack.of(factor::lu_in_place_scratch::<usize, T>(size, size, par, Default::default()))?;
        let mut factors = by_columns_mut(columns, size, size);
        let (info, _) = factor::lu_in_place(
            factors.as_mut(),
            &mut order,
            &mut order_back,
            par,
            stack,
            Default::default(),
        );
        Ok(Factors { factors, order, order_back, exchanges: info.transposition_count })
    }

    fn matrix(&self) -> MatRef<'_, T> {
        self.factors.as_ref()
    }

    fn order(&self) -> PermRef<'_, usize> {
        PermRef::new_checked(&self.order, &self.order_back, self.order.len())
    }

    fn pivots(&self) -> impl Iterator<Item = T> + '_ {
        (0..self.order.len()).map(|at| self.factors[(at, at)])
    }

    /// Fails if the matrix, which has these elements, has no inverse.
    fn check(&self, a: &[T]) -> Result<(), Failure> {
        match self.pivots().all(|pivot| pivot.is_number() && pivot != T::ZERO) {
            true => Ok(()),
            false => Err(cause(&[a], MatrixFailure::Singular)),
        }
    }
}

/// `x` in `a x = b`, or in `a^T x = b`.
pub(super) fn solve<T: MatrixElement>(
    [a, b]: [&[T]; 2],
    sizes: MatrixSizes,
    transposed: bool,
    out: &mut [T],
    workspace: &mut Workspace<T>,
) -> Result<(), Failure> {
    let MatrixSizes { rows: size, right, .. } = sizes;
    let Workspace { copies: [copy, ..], stack, par } = workspace;
    let par = *par;
    let factors = Factors::of(copy.of(a)?, size, (&mut *stack, par))?;
    factors.check(a)?;
    out.copy_from_slice(b);
    let x = by_rows_mut(out, size, right);
    let both = factors.matrix();
    if transposed {
        let stack = stack.of(lu_solve::solve_in_place_scratch::<usize, T>(size, right, par))?;
        lu_solve::solve_in_place(both, both, factors.order(), x, par, stack);
    } else {
        let stack = stack.of(lu_solve::solve_transpose_in_place_scratch::<usize, T>(size, right, par))?;
        lu_solve::solve_transpose_in_place(both, both, factors.order(), x, par, stack);
    }
    match check_finite(out) {
        Ok(()) => Ok(()),
        Err(_) => Err(cause(&[a, b], MatrixFailure::Singular)),
    }
}

/// The inverse, transposed.
pub(super) fn inverse<T: MatrixElement>(
    a: &[T],
    size: usize,
    out: &mut [T],
    workspace: &mut Workspace<T>,
) -> Result<(), Failure> {
    let Workspace { copies: [copy, ..], stack, par } = workspace;
    let par = *par;
    let copy = copy.any(a.len())?;
    to_columns(a, size, size, copy);
    let factors = Factors::of(copy, size, (&mut *stack, par))?;
    factors.check(a)?;
    let stack = stack.of(lu_inverse::inverse_scratch::<usize, T>(size, par))?;
    let both = factors.matrix();
    lu_inverse::inverse(by_columns_mut(out, size, size), both, both, factors.order(), par, stack);
    match check_finite(out) {
        Ok(()) => Ok(()),
        Err(_) => Err(cause(&[a], MatrixFailure::Singular)),
    }
}

/// The determinant.
pub(super) fn det<T: MatrixElement>(
    a: &[T],
    size: usize,
    workspace: &mut Workspace<T>,
) -> Result<T, Failure> {
    let Workspace { copies: [copy, ..], stack, par } = workspace;
    let factors = Factors::of(copy.of(a)?, size, (stack, *par))?;
    let start = if factors.exchanges % 2 == 0 { T::ONE } else { Num::sub(T::ZERO, T::ONE) };
    let found = factors.pivots().fold(start, Num::mul);
    if !found.is_number() {
        check_finite(a)?;
    }
    Ok(found)
}

/// The sign of the determinant, and the logarithm of its magnitude.
pub(super) fn slogdet<T: MatrixElement>(
    a: &[T],
    size: usize,
    workspace: &mut Workspace<T>,
) -> Result<(T, T::Part), Failure> {
    let Workspace { copies: [copy, ..], stack, par } = workspace;
    let factors = Factors::of(copy.of(a)?, size, (stack, *par))?;
    let mut sign = if factors.exchanges % 2 == 0 { T::ONE } else { Num::sub(T::ZERO, T::ONE) };
    let mut log = T::Part::ZERO;
    for pivot in factors.pivots() {
        let magnitude = pivot.size();
        if magnitude == T::Part::ZERO {
            check_finite(a)?;
            return Ok((T::ZERO, num_traits::Float::neg_infinity()));
        }
        sign = Num::mul(sign, Num::div(pivot, T::of_part(magnitude)));
        log = Num::add(log, num_traits::Float::ln(magnitude));
    }
    if !log.is_number() {
        check_finite(a)?;
    }
    Ok((sign, log))
}

/// The rows in the order of their pivots, and the factors.
pub(super) fn lu<T: MatrixElement>(
    a: &[T],
    sizes: MatrixSizes,
    order: &mut [usize],
    [lower, upper]: [&mut [T]; 2],
    workspace: &mut Workspace<T>,
) -> Result<(), Failure> {
    let MatrixSizes { rows, columns, .. } = sizes;
    let least = sizes.least();
    check_finite(a)?;
    let Workspace { copies: [copy, ..], stack, par } = workspace;
    let copy = copy.any(a.len())?;
    to_columns(a, rows, columns, copy);
    let mut order_back = vec![0; rows];
    let stack = stack.of(factor::lu_in_place_scratch::<usize, T>(rows, columns, *par, Default::default()))?;
    let factors = by_columns_mut(copy, rows, columns);
    factor::lu_in_place(factors, order, &mut order_back, *par, stack, Default::default());
    // The first `least` columns, and the first `least` rows.
    to_rows(&copy[..rows * least], rows, least, lower);
    transpose(copy, rows, [least, columns], upper);
    for (row, lower) in lower.chunks_exact_mut(least.max(1)).enumerate().take(least) {
        lower[row] = T::ONE;
        lower[row + 1..].fill(T::ZERO);
    }
    for (row, upper) in upper.chunks_exact_mut(columns.max(1)).enumerate() {
        upper[..row].fill(T::ZERO);
    }
    Ok(())
}
