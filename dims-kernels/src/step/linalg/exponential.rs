//! The exponential of one square matrix, by scaling and squaring.
//!
//! The matrix is halved until bounds on its powers guarantee that its Pade approximant is precise.
//! The approximant is then squared the same number of times. (A. H. Al-Mohy and N. J. Higham, A new
//! scaling and squaring algorithm for the matrix exponential, 2009.) If rows and columns can be
//! reordered so that the matrix is upper triangular, each squaring is followed by computing the
//! diagonal and the elements directly above it from exponentials of numbers. All other matrices are
//! balanced first, unless their norm is small.

use super::functions::product;
use super::pade::{PADE, PADE_NORM};
use super::range::{exponent_of, times_power};
use super::stack::Failure;
use super::workspace::{Workspace, check_finite, collected, zeros};
use super::{MatrixElement, MatrixSizes, ReadTriangle, solving};
use crate::error::MatrixFailure;
use crate::scalar::Num;
use alloc::vec;
use alloc::vec::Vec;
use faer::Par;
use num_traits::{Float, NumCast, ToPrimitive};

/// `e^a`
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
    let Some(order) = triangular_order(a, size) else { return of_full(a, size, out, workspace) };
    let places = || order.iter().flat_map(|&row| order.iter().map(move |&column| row * size + column));
    let upper = collected(a.len(), places().map(|at| a[at]))?;
    let mut found = zeros(a.len())?;
    scaled_and_squared(&upper, size, true, &mut found, workspace)?;
    places().zip(found).for_each(|(at, value)| out[at] = value);
    Ok(())
}

/// An order of the rows and columns in which the matrix is upper triangular, if there is one.
fn triangular_order<T: MatrixElement>(a: &[T], size: usize) -> Option<Vec<usize>> {
    let has = |row: usize, column: usize| row != column && a[row * size + column] != T::ZERO;
    let mut above: Vec<usize> = vec![0; size];
    for (row, column) in (0..size).flat_map(|row| (0..size).map(move |column| (row, column))) {
        above[column] += has(row, column) as usize;
    }
    let mut order: Vec<usize> = (0..size).filter(|&column| above[column] == 0).collect();
    let mut done = 0;
    while let Some(&row) = order.get(done) {
        done += 1;
        for (column, above) in above.iter_mut().enumerate().filter(|(column, _)| has(row, *column)) {
            *above -= 1;
            if *above == 0 {
                order.push(column);
            }
        }
    }
    (done == size).then_some(order)
}

/// `e^a` of a matrix that no reordering makes triangular.
fn of_full<T: MatrixElement>(
    a: &[T],
    size: usize,
    out: &mut [T],
    workspace: &mut Workspace<T>,
) -> Result<(), Failure> {
    let exponents = balanced(a, size)?;
    let shifts = || exponents.iter().flat_map(|row| exponents.iter().map(move |column| column - row));
    let own = collected(a.len(), a.iter().zip(shifts()).map(|(&value, shift)| times_power(value, shift)))?;
    match scaled_and_squared(&own, size, false, out, workspace) {
        Err(Failure::Matrix(MatrixFailure::TooLarge)) if vanishes(a, size) => {
            out.fill(T::ZERO);
            Ok(())
        }
        found => {
            out.iter_mut().zip(shifts()).for_each(|(own, shift)| *own = times_power(*own, -shift));
            found
        }
    }
}

/// The powers of two that balance a matrix, as exponents: column `i` times `2^exponents[i]`, and
/// row `i` divided by it, have similar norms. (B. N. Parlett and C. Reinsch, Balancing a matrix for
/// calculation of eigenvalues and eigenvectors, 1969.) All exponents are 0 if the sums of the
/// magnitudes in each column are at most [`PADE_NORM`].
fn balanced<T: MatrixElement>(a: &[T], size: usize) -> Result<Vec<i64>, Failure> {
    let mut exponents = vec![0; size];
    let mut own = magnitudes(a)?;
    let is_small = |column: usize| own.iter().skip(column).step_by(size).sum::<f64>() <= PADE_NORM;
    if (0..size).all(is_small) {
        return Ok(exponents);
    }
    // A few rounds usually suffice.
    for _ in 0..100 {
        let mut is_done = true;
        for at in 0..size {
            let others = || (0..size).filter(|&other| other != at);
            let column = others().map(|row| own[row * size + at]).sum::<f64>().min(f64::MAX);
            let row = others().map(|column| own[at * size + column]).sum::<f64>().min(f64::MAX);
            if column == 0.0 || row == 0.0 {
                continue;
            }
            let shift = libm::round((libm::log2(row) - libm::log2(column)) / 2.0);
            let (more, less) = (libm::exp2(shift), libm::exp2(-shift));
            if column * more + row * less >= 0.95 * (column + row) {
                continue;
            }
            for other in others() {
                own[other * size + at] *= more;
                own[at * size + other] *= less;
            }
            exponents[at] += shift as i64;
            is_done = false;
        }
        if is_done {
            break;
        }
    }
    Ok(exponents)
}

fn magnitudes<T: MatrixElement>(a: &[T]) -> Result<Vec<f64>, Failure> {
    // The size of a complex number can be infinite although its parts are not.
    let of = |value: &T| {
        let quarter = times_power(*value, -2).size().to_f64().unwrap_or_default();
        (4.0 * quarter).min(f64::MAX)
    };
    collected(a.len(), a.iter().map(of))
}

/// `e^a` of a matrix, which is upper triangular if `is_upper`.
fn scaled_and_squared<T: MatrixElement>(
    a: &[T],
    size: usize,
    is_upper: bool,
    out: &mut [T],
    workspace: &mut Workspace<T>,
) -> Result<(), Failure> {
    let par = workspace.par;
    let (least, most) = halvings(a, size)?;
    let mut count = least;
    loop {
        let epsilon = <T::Part as Float>::epsilon().to_f64().unwrap_or_default();
        if !is_upper && libm::exp2(count as f64) * epsilon >= 1.0 {
            return Err(MatrixFailure::TooLarge.into());
        }
        let halved = collected(a.len(), a.iter().map(|&value| times_power(value, -(count as i64))))?;
        let [above, below] = approximant(&halved, size, par)?;
        let sizes = MatrixSizes::square(1, size).with_right(size);
        let found = match is_upper {
            true => {
                let upper = ReadTriangle { lower: false, transposed: false, unit: false };
                solving::solve_triangular([&below, &above], sizes, upper, out, workspace)
            }
            false => solving::solve([&below, &above], sizes, false, out, workspace),
        };
        match found {
            Ok(()) => break,
            // Powers of the matrix can be out of range. More halvings make them smaller.
            Err(Failure::Matrix(_)) if count < most => count = most,
            Err(failure) => return Err(failure),
        }
    }
    if is_upper {
        set_bands(a, size, count, out);
    }
    let (mut squared, mut paths) = (zeros(a.len())?, None);
    for left in (0..count).rev() {
        product(out, out, size, &mut squared, par);
        if check_finite(&squared).is_err() {
            // Elements overflowed. Products of infinity and 0 must not make other elements NaN.
            let paths = match &paths {
                Some(paths) => paths,
                None => &*paths.insert(paths_of(a, size)?),
            };
            square_along(out, size, paths, &mut squared);
        }
        out.copy_from_slice(&squared);
        if is_upper {
            set_bands(a, size, left, out);
        }
    }
    Ok(())
}

/// How often to halve a matrix for a precise approximant, and how often until the norm of the
/// matrix is at most [`PADE_NORM`].
///
/// The error of the approximant is a power series in the matrix that begins with the 27th power.
/// Each exponent from 27 on is a sum of numbers from 14 to 27, so the norms of the 14th to the 27th
/// power bound the error.
fn halvings<T: MatrixElement>(a: &[T], size: usize) -> Result<(usize, usize), Failure> {
    let magnitudes = magnitudes(a)?;
    let count = |log: f64| libm::ceil(log - libm::log2(PADE_NORM)).max(0.0) as usize;
    // The column sums of a power of the matrix of magnitudes, times `2^-exponent`. The greatest sum
    // is about `2^-64`, so that products with the largest elements are in range.
    let (mut sums, mut exponent) = (vec![libm::exp2(-64.0); size], 64.0);
    let (mut least, mut most) = (0, 0);
    for power in 1..=27 {
        let mut next = vec![0.0; size];
        for (&sum, row) in sums.iter().zip(magnitudes.chunks_exact(size)) {
            next.iter_mut().zip(row).for_each(|(to, own)| *to += sum * own);
        }
        let greatest = next.iter().copied().fold(0.0, f64::max);
        if greatest == 0.0 {
            break;
        }
        let log = exponent + libm::log2(greatest);
        if power == 1 {
            most = count(log);
        }
        if most == 0 {
            break;
        }
        if power >= 14 {
            least = least.max(count(log / power as f64));
        }
        let shift = libm::floor(libm::log2(greatest)) + 64.0;
        exponent += shift;
        // (In two steps, because the power of two can be out of range.)
        let half = libm::floor(shift / 2.0);
        let factors = [half, shift - half].map(|part| libm::exp2(-part));
        sums = next.iter().map(|sum| sum * factors[0] * factors[1]).collect();
    }
    Ok((least, most))
}

/// Whether a bound shows that all elements of `e^a` are 0 when rounded to their type. The 1-norm of
/// `e^a` is at most `e^m`, where `m` is the logarithmic norm of `a`: the greatest column sum, in
/// which the diagonal element counts with its real part, and the others with their magnitudes.
fn vanishes<T: MatrixElement>(a: &[T], size: usize) -> bool {
    let number = |part: T::Part| part.to_f64().unwrap_or(f64::INFINITY);
    (0..size).all(|column| {
        let on = number(a[column * size + column].part());
        let beside = (0..size).filter(|&row| row != column).map(|row| number(a[row * size + column].size()));
        let beside: f64 = beside.sum();
        let rounding = 2.0 * size as f64 * f64::EPSILON * (on.abs() + beside);
        let found: Option<T::Part> = NumCast::from(libm::exp(on + beside + rounding));
        found == Some(T::Part::ZERO)
    })
}

fn number<T: MatrixElement>(value: f64) -> T {
    T::of_part(NumCast::from(value).expect("an `f64` can be rounded to any float type"))
}

/// The numerator and the denominator of the Pade approximant of `e^a`.
fn approximant<T: MatrixElement>(a: &[T], size: usize, par: Par) -> Result<[Vec<T>; 2], Failure> {
    let matrix = || zeros(a.len());
    let [mut a2, mut a4, mut a6] = [matrix()?, matrix()?, matrix()?];
    product(a, a, size, &mut a2, par);
    product(&a2, &a2, size, &mut a4, par);
    product(&a4, &a2, size, &mut a6, par);
    let sum = |coefficients: [usize; 3], constant: Option<usize>| {
        let mut sum = matrix()?;
        for (at, sum) in sum.iter_mut().enumerate() {
            for (own, coefficient) in [&a6, &a4, &a2].into_iter().zip(coefficients) {
                *sum = Num::add(*sum, Num::mul(own[at], number(PADE[coefficient])));
            }
        }
        if let Some(constant) = constant {
            for own in sum.iter_mut().step_by(size + 1) {
                *own = Num::add(*own, number(PADE[constant]));
            }
        }
        Ok::<_, Failure>(sum)
    };
    let side = |high: [usize; 3], low: [usize; 3], constant: usize| {
        let mut all = matrix()?;
        product(&a6, &sum(high, None)?, size, &mut all, par);
        all.iter_mut().zip(sum(low, Some(constant))?).for_each(|(all, low)| *all = Num::add(*all, low));
        Ok::<_, Failure>(all)
    };
    let odd = side([13, 11, 9], [7, 5, 3], 1)?;
    let v = side([12, 10, 8], [6, 4, 2], 0)?;
    let mut u = matrix()?;
    product(a, &odd, size, &mut u, par);
    let combined = |f: fn(T, T) -> T| collected(a.len(), v.iter().zip(&u).map(|(&v, &u)| f(v, u)));
    Ok([combined(Num::add)?, combined(Num::sub)?])
}

/// Sets the diagonal of the exponential of `2^-halvings a`, where `a` is upper triangular, and the
/// elements directly above the diagonal. Sets all elements below the diagonal to 0.
fn set_bands<T: MatrixElement>(a: &[T], size: usize, halvings: usize, out: &mut [T]) {
    let own = |at: usize| times_power(a[at], -(halvings as i64));
    for row in 0..size {
        let at = row * size + row;
        out[row * size..at].fill(T::ZERO);
        out[at] = own(at).exponential();
        if row + 1 < size {
            out[at + 1] = beside(own(at + 1), [own(at), own(at + size + 1)]);
        }
    }
}

/// The upper right element of `e^[x, above; 0, y]`: `above (e^x - e^y) / (x - y)`.
fn beside<T: MatrixElement>(above: T, [x, y]: [T; 2]) -> T {
    if above == T::ZERO {
        return T::ZERO;
    }
    let [x, y] = [x, y].map(|value| times_power(value, -1));
    let (more, less) = if x.part() < y.part() { (y, x) } else { (x, y) };
    let half = Num::sub(less, more);
    // `(e^(2 half) - 1) / (2 half)`. The division of complex numbers computes squares, which could
    // be out of range without scaling.
    let share = if half == T::ZERO {
        T::ONE
    } else {
        let exponent = exponent_of(Float::min(half.size(), Float::max_value()));
        let over = times_power(half, -exponent);
        times_power(Num::div(times_power(half, 1).exponential_less_one(), over), -exponent - 1)
    };
    // (The square of the root can be out of range although the result is not.)
    let root = more.exponential();
    Num::mul(Num::mul(Num::mul(above, share), root), root)
}

/// Where powers of a matrix, the 0th included, can have elements that are not 0.
fn paths_of<T: MatrixElement>(a: &[T], size: usize) -> Result<Vec<bool>, Failure> {
    let mut paths = collected(a.len(), a.iter().map(|&value| value != T::ZERO))?;
    (0..size).for_each(|at| paths[at * size + at] = true);
    for via in 0..size {
        let onward = paths[via * size..][..size].to_vec();
        for row in paths.chunks_exact_mut(size).filter(|row| row[via]) {
            row.iter_mut().zip(&onward).for_each(|(own, onward)| *own |= onward);
        }
    }
    Ok(paths)
}

/// The square of `a`, which is a function of a matrix with these [paths](paths_of). Elements
/// without a path are skipped: they are 0, and their products with infinite elements count as 0.
fn square_along<T: MatrixElement>(a: &[T], size: usize, paths: &[bool], to: &mut [T]) {
    to.fill(T::ZERO);
    for (row, to) in to.chunks_exact_mut(size).enumerate() {
        for via in (0..size).filter(|via| paths[row * size + via]) {
            let factor = a[row * size + via];
            for column in (0..size).filter(|column| paths[via * size + column]) {
                to[column] = Num::add(to[column], Num::mul(factor, a[via * size + column]));
            }
        }
    }
}
