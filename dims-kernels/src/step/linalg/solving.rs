//! Factorizations by elimination, and systems of equations, for one matrix.

use super::range::{balance, exponent_of, exponent_out_of_range, scale, times_power};
use super::stack::{Failure, Stack};
use super::views::{by_columns_mut, by_rows, by_rows_mut, lower_to_rows, to_columns, upper_to_rows};
use super::workspace::{Workspace, cause, cause_of_system, check_finite, copied, hermitian};
use super::{MatrixElement, MatrixSizes, ReadTriangle};
use crate::error::MatrixFailure;
use crate::scalar::Num;
use alloc::vec;
use alloc::vec::Vec;
use core::cmp::Ordering;
use faer::linalg::cholesky::llt::factor as llt;
use faer::linalg::lu::partial_pivoting::{factor, inverse as lu_inverse, solve as lu_solve};
use faer::linalg::triangular_solve as triangular;
use faer::perm::PermRef;
use faer::{MatMut, MatRef, Par};

/// The Cholesky factor of the Hermitian part.
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
        return Err(cause(a, MatrixFailure::NotPositiveDefinite));
    }
    lower_to_rows(copy, size, size, out);
    for (row, out) in out.chunks_exact_mut(size.max(1)).enumerate() {
        out[row] = T::of_part(out[row].part());
        out[row + 1..].fill(T::ZERO);
    }
    Ok(())
}

/// The elements of a triangular matrix that are read.
fn read_elements<T: MatrixElement>(
    a: &[T],
    size: usize,
    lower: bool,
    unit: bool,
) -> impl Iterator<Item = T> + '_ {
    let is_read = move |at: &usize| match (at / size).cmp(&(at % size)) {
        Ordering::Equal => !unit,
        Ordering::Less => !lower,
        Ordering::Greater => lower,
    };
    (0..size * size).filter(is_read).map(|at| a[at])
}

/// Whether `faer`, which multiplies by the reciprocals of pivots, can divide by this one. For a
/// complex number near the limit of the range, it uses 0 as the reciprocal.
fn divides<T: MatrixElement>(pivot: T) -> bool {
    let reciprocal = T::recip_impl(&pivot);
    reciprocal.is_number() && reciprocal != T::ZERO
}

/// The division by this number, which is not 0.
fn division<T: MatrixElement>(divisor: T) -> impl Fn(T) -> T {
    // The division of complex numbers computes squares, which could be out of range without
    // scaling. The divisor is scaled to less than 1. A dividend that is scaled alike is then less
    // than the quotient, so it overflows only if the quotient does.
    let exponent = if T::IS_REAL { 0 } else { -1 - exponent_of(divisor.size()) };
    let divisor = times_power(divisor, exponent);
    // Two factors, because their product could be out of range.
    let [first, second] = [exponent / 2, exponent - exponent / 2].map(|part| times_power(T::ONE, part));
    let scaled = move |value: T| if T::IS_REAL { value } else { Num::mul(Num::mul(value, first), second) };
    move |value| Num::div(scaled(value), divisor)
}

/// Replaces the `right` columns of `b` by the solutions of a triangular system. Unlike `faer`, it
/// divides by pivots whose reciprocals are out of range.
fn substitute<T: MatrixElement>(matrix: MatRef<'_, T>, lower: bool, b: &mut [T], right: usize) {
    let size = matrix.nrows();
    for step in 0..size {
        let k = if lower { step } else { size - 1 - step };
        let divide = division(matrix[(k, k)]);
        b[k * right..][..right].iter_mut().for_each(|own| *own = divide(*own));
        let others = if lower { k + 1..size } else { 0..k };
        for row in others {
            for column in 0..right {
                let product = Num::mul(matrix[(row, k)], b[k * right + column]);
                b[row * right + column] = Num::sub(b[row * right + column], product);
            }
        }
    }
}

/// `x` in `t x = b`, where `t` is a triangle of `a`, or the transpose of such a triangle.
pub(super) fn solve_triangular<T: MatrixElement>(
    [a, b]: [&[T]; 2],
    sizes: MatrixSizes,
    ReadTriangle { lower, transposed, unit }: ReadTriangle,
    out: &mut [T],
    workspace: &mut Workspace<T>,
) -> Result<(), Failure> {
    let MatrixSizes { rows: size, right, .. } = sizes;
    let pivots = || (0..size).map(move |at| a[at * size + at]);
    if !unit && pivots().any(|pivot| pivot == T::ZERO || !pivot.is_number()) {
        let is_finite = read_elements(a, size, lower, unit).all(|value| value.is_number());
        let failure = if is_finite { MatrixFailure::Singular } else { MatrixFailure::NotFinite };
        return Err(failure.into());
    }
    out.copy_from_slice(b);
    let matrix = by_rows(a, size, size);
    let matrix = if transposed { matrix.transpose() } else { matrix };
    let is_lower = lower != transposed;
    if unit || pivots().all(divides) {
        let x = by_rows_mut(out, size, right);
        let par = workspace.par;
        match (is_lower, unit) {
            (true, false) => triangular::solve_lower_triangular_in_place(matrix, x, par),
            (true, true) => triangular::solve_unit_lower_triangular_in_place(matrix, x, par),
            (false, false) => triangular::solve_upper_triangular_in_place(matrix, x, par),
            (false, true) => triangular::solve_unit_upper_triangular_in_place(matrix, x, par),
        }
    } else {
        substitute(matrix, is_lower, out, right);
    }
    match check_finite(out) {
        Ok(()) => Ok(()),
        Err(_) => Err(cause_of_system(read_elements(a, size, lower, unit), b)),
    }
}

/// The LU factors of a column-major matrix, which overwrite it. The unit diagonal of the lower
/// factor is not stored. A row-major matrix that is passed unchanged counts as its transpose.
struct LuFactors<'w, T> {
    factors: MatMut<'w, T>,
    order: Vec<usize>,
    order_back: Vec<usize>,
    exchanges: usize,
}

impl<'w, T: MatrixElement> LuFactors<'w, T> {
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
        Ok(LuFactors { factors, order, order_back, exchanges: info.transposition_count })
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

    /// The first pivot that is 0 or out of range. Later pivots may have any values.
    fn unusable_pivot(&self) -> Option<T> {
        self.pivots().find(|&pivot| !divides(pivot))
    }

    /// Returns an error if a pivot is 0 or out of range. The elements `a` of the matrix decide
    /// whether the error says that the matrix is singular, that it is not finite, or that the
    /// result is out of range.
    fn check(&self, a: &[T], (stack, par): (&mut Stack, Par)) -> Result<(), Failure> {
        let Some(pivot) = self.unusable_pivot() else { return Ok(()) };
        check_finite(a)?;
        let mut is_singular = pivot == T::ZERO;
        if !is_singular {
            // The later pivots may have any values, so the pivots of the balanced matrix decide
            // whether the matrix counts as singular. Only the message of the error depends on this.
            let size = self.order.len();
            let mut balanced = copied(a)?;
            balance(&mut balanced, size);
            let factors = LuFactors::of(&mut balanced, size, (stack, par))?;
            is_singular = factors.unusable_pivot() == Some(T::ZERO);
        }
        Err(if is_singular { MatrixFailure::Singular } else { MatrixFailure::OutOfRange }.into())
    }

    /// The determinant times `2^exponent`. A pivot of 0 makes it 0, even if later pivots are NaN.
    fn det(&self, exponent: i64) -> T {
        if self.unusable_pivot() == Some(T::ZERO) {
            return T::ZERO;
        }
        let one = if self.exchanges.is_multiple_of(2) { T::ONE } else { Num::sub(T::ZERO, T::ONE) };
        let mut is_in_range = true;
        let found = self.pivots().fold(one, |product, pivot| {
            let product = Num::mul(product, pivot);
            is_in_range &= num_traits::Float::is_normal(product.size());
            product
        });
        let are_numbers = self.pivots().all(|pivot| pivot.is_number());
        if exponent == 0 && is_in_range || !are_numbers {
            return found;
        }
        scaled_product((one, exponent), self.pivots())
    }
}

/// `first` times `2^exponent` times all factors, even if products of some of them are out of range.
/// Each factor and each product is multiplied by a power of two that makes it about 1.
fn scaled_product<T: MatrixElement>((first, exponent): (T, i64), factors: impl Iterator<Item = T>) -> T {
    let (mut product, mut exponent) = (first, exponent);
    for factor in factors {
        let size = factor.size();
        if size == T::Part::ZERO {
            return T::ZERO;
        }
        let own = exponent_of(size);
        product = Num::mul(product, times_power(factor, -own));
        exponent += own;
        let own = exponent_of(product.size());
        product = times_power(product, -own);
        exponent += own;
    }
    times_power(product, exponent)
}

/// Runs an operation whose result is inversely proportional to the matrix `a`. If the operation
/// finds that the matrix is singular or the result is out of range, and there is an
/// [exponent](exponent_out_of_range), the operation runs again on the matrix divided by a power of
/// two, and the result is divided by the same power. If this run fails, the first error is
/// returned: scaling may have made a pivot 0.
fn in_range<T: MatrixElement>(
    a: &[T],
    out: &mut [T],
    mut run: impl FnMut(&[T], &mut [T]) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let found = run(a, out);
    let Err(Failure::Matrix(MatrixFailure::Singular | MatrixFailure::OutOfRange)) = found else {
        return found;
    };
    let Some(exponent) = exponent_out_of_range(a) else { return found };
    // Half of the exponent is enough. The whole one could round small pivots of a large matrix, or
    // the result for a small matrix, to 0.
    let exponent = exponent / 2;
    let mut scaled = copied(a)?;
    scale(&mut scaled, -exponent);
    match run(&scaled, out) {
        Err(Failure::Matrix(_)) => return found,
        again => again?,
    }
    scale(out, -exponent);
    check_finite(out).map_err(|_| MatrixFailure::OutOfRange.into())
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
    in_range(a, out, |a, out| {
        let factors = LuFactors::of(copy.of(a)?, size, (&mut *stack, par))?;
        factors.check(a, (&mut *stack, par))?;
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
        check_finite(out).map_err(|_| cause_of_system(a.iter().copied(), b))
    })
}

/// The transposed inverse.
pub(super) fn inverse<T: MatrixElement>(
    a: &[T],
    size: usize,
    out: &mut [T],
    workspace: &mut Workspace<T>,
) -> Result<(), Failure> {
    let Workspace { copies: [copy, ..], stack, par } = workspace;
    let par = *par;
    in_range(a, out, |a, out| {
        let copy = copy.any(a.len())?;
        to_columns(a, size, size, copy);
        let factors = LuFactors::of(copy, size, (&mut *stack, par))?;
        factors.check(a, (&mut *stack, par))?;
        let stack = stack.of(lu_inverse::inverse_scratch::<usize, T>(size, par))?;
        let both = factors.matrix();
        lu_inverse::inverse(by_columns_mut(out, size, size), both, both, factors.order(), par, stack);
        check_finite(out).map_err(|_| cause(a, MatrixFailure::OutOfRange))
    })
}

/// The factors of a matrix or, if a pivot is out of range, those of the [balanced](balance) matrix.
/// Also returns the exponent of the power of two by which their determinant must be multiplied.
fn factors_in_range<'w, T: MatrixElement>(
    a: &[T],
    size: usize,
    workspace: &'w mut Workspace<T>,
) -> Result<(LuFactors<'w, T>, i64), Failure> {
    let Workspace { copies: [copy, balanced, ..], stack, par } = workspace;
    let factors = LuFactors::of(copy.of(a)?, size, (&mut *stack, *par))?;
    if factors.unusable_pivot().is_none_or(|pivot| pivot == T::ZERO) {
        return Ok((factors, 0));
    }
    check_finite(a)?;
    let balanced = balanced.of(a)?;
    let exponent = balance(balanced, size);
    Ok((LuFactors::of(balanced, size, (stack, *par))?, exponent))
}

pub(super) fn det<T: MatrixElement>(
    a: &[T],
    size: usize,
    workspace: &mut Workspace<T>,
) -> Result<T, Failure> {
    let (factors, exponent) = factors_in_range(a, size, workspace)?;
    let found = factors.det(exponent);
    if !found.is_number() || found == T::ZERO {
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
    let (factors, exponent) = factors_in_range(a, size, workspace)?;
    let mut sign = if factors.exchanges.is_multiple_of(2) { T::ONE } else { Num::sub(T::ZERO, T::ONE) };
    let exponent: T::Part = num_traits::NumCast::from(exponent).expect("every `i64` converts to a float");
    let log_two = num_traits::Float::ln(Num::add(T::Part::ONE, T::Part::ONE));
    let mut log = Num::mul(exponent, log_two);
    for pivot in factors.pivots() {
        let magnitude = pivot.size();
        if magnitude == T::Part::ZERO {
            check_finite(a)?;
            return Ok((T::ZERO, num_traits::Float::neg_infinity()));
        }
        // The division of complex numbers computes squares, which could be out of range without
        // scaling.
        let exponent = -exponent_of(magnitude);
        let pivot = times_power(pivot, exponent);
        sign = Num::mul(sign, Num::div(pivot, T::of_part(pivot.size())));
        log = Num::add(log, num_traits::Float::ln(magnitude));
    }
    if !log.is_number() {
        check_finite(a)?;
    }
    Ok((sign, log))
}

/// Overwrites a column-major matrix with its LU factors, and writes the order of its rows into
/// `order`. Columns without a pivot are skipped: the lower factor has zeros there.
fn eliminate_skipping<T: MatrixElement>(a: &mut [T], rows: usize, order: &mut [usize]) {
    for (at, row) in order.iter_mut().enumerate() {
        *row = at;
    }
    let columns = a.len().checked_div(rows).unwrap_or(0);
    for k in 0..rows.min(columns) {
        let size = |row: usize| a[row + k * rows].size();
        let pivot = (k + 1..rows).fold(k, |most, row| if size(row) > size(most) { row } else { most });
        let share = a[pivot + k * rows];
        if share == T::ZERO {
            continue;
        }
        order.swap(k, pivot);
        for column in 0..columns {
            a.swap(k + column * rows, pivot + column * rows);
        }
        let divide = division(share);
        for row in k + 1..rows {
            a[row + k * rows] = divide(a[row + k * rows]);
            for column in k + 1..columns {
                let product = Num::mul(a[row + k * rows], a[k + column * rows]);
                a[row + column * rows] = Num::sub(a[row + column * rows], product);
            }
        }
    }
}

/// The order of the rows, and the factors.
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
    // `faer` also divides by pivots that are 0 or out of range, so matrices with such a pivot are
    // factorized without `faer`.
    if !(0..least).all(|at| divides(copy[at + at * rows])) {
        to_columns(a, rows, columns, copy);
        eliminate_skipping(copy, rows, order);
    }
    // The lower factor has the first `least` columns, and the upper one the first `least` rows.
    lower_to_rows(&copy[..rows * least], rows, least, lower);
    upper_to_rows(copy, rows, [least, columns], upper);
    for (row, lower) in lower.chunks_exact_mut(least.max(1)).enumerate().take(least) {
        lower[row] = T::ONE;
        lower[row + 1..].fill(T::ZERO);
    }
    for (row, upper) in upper.chunks_exact_mut(columns.max(1)).enumerate() {
        upper[..row].fill(T::ZERO);
    }
    Ok(())
}
