//! Scales numbers by powers of two, so that their products are in the range of floats.

use super::MatrixElement;
use crate::scalar::{Num, Real};
use alloc::vec::Vec;
use num_traits::Float;

/// The `e` for which a positive number is at least `2^e` and less than `2^(e + 1)`.
pub(super) fn exponent_of<P: Real>(value: P) -> i64 {
    let (mantissa, exponent, _) = Float::integer_decode(value);
    i64::from(exponent) + i64::from(mantissa.ilog2())
}

/// A number times `2^exponent`.
pub(super) fn times_power<T: MatrixElement>(mut value: T, exponent: i64) -> T {
    // Beyond this, every result is 0, infinite or NaN.
    let mut rest = exponent.clamp(-5000, 5000);
    while rest != 0 {
        let step = rest.clamp(-100, 100);
        let power = Float::powi(Num::add(T::Part::ONE, T::Part::ONE), step as i32);
        value = Num::mul(value, T::of_part(power));
        rest -= step;
    }
    value
}

/// The exponent of the power of two by which to divide a matrix whose elements are so large or
/// small that their products leave the range of floats. `None` if the matrix needs no scaling.
///
/// The limits are those of LAPACK: the square root of the least normal number, divided by the
/// epsilon of the type, and the reciprocal of this quotient.
pub(super) fn exponent_out_of_range<'a, T: MatrixElement>(a: impl IntoIterator<Item = &'a T>) -> Option<i64> {
    let most = greatest_size(a);
    let least = Float::sqrt(<T::Part as Float>::min_positive_value());
    let least = Num::div(least, <T::Part as Float>::epsilon());
    if most == T::Part::ZERO || (most >= least && most <= Num::div(T::Part::ONE, least)) {
        return None;
    }
    // The size of a complex number can be infinite although its parts are not.
    Some(exponent_of(Float::min(most, <T::Part as Float>::max_value())))
}

/// The exponent of the power of two by which to divide a matrix so that its greatest element is
/// about `1 / epsilon`. 0 if that element is greater already, but the matrix is not
/// [out of range](exponent_out_of_range).
pub(super) fn exponent_over_epsilon<T: MatrixElement>(a: &[T]) -> i64 {
    let most = greatest_size(a);
    if most == T::Part::ZERO {
        return 0;
    }
    let exponent = exponent_of(most) + exponent_of(<T::Part as Float>::epsilon());
    if exponent < 0 || exponent_out_of_range(a).is_some() { exponent } else { 0 }
}

fn greatest_size<'a, T: MatrixElement>(a: impl IntoIterator<Item = &'a T>) -> T::Part {
    a.into_iter().fold(T::Part::ZERO, |most, value| Float::max(most, value.size()))
}

/// Multiplies all elements by `2^exponent`.
pub(super) fn scale<T: MatrixElement>(all: &mut [T], exponent: i64) {
    all.iter_mut().for_each(|value| *value = times_power(*value, exponent));
}

/// Divides the rows and columns of a square matrix by powers of two, so that the greatest element
/// of each is about 1. Returns the exponent of the power of two by which this divides the
/// determinant.
pub(super) fn balance<T: MatrixElement>(a: &mut [T], size: usize) -> i64 {
    let exponent = |value: &T| (value.size() != T::Part::ZERO).then(|| exponent_of(value.size()));
    let greatest = |row: &[T]| row.iter().filter_map(exponent).max().unwrap_or(0);
    let rows: Vec<i64> = a.chunks_exact(size).map(greatest).collect();
    let columns = (0..size).map(|column| {
        let values = a[column..].iter().step_by(size).zip(&rows);
        values.filter_map(|(value, row)| Some(exponent(value)? - row)).max().unwrap_or(0)
    });
    let columns: Vec<i64> = columns.collect();
    for (values, row) in a.chunks_exact_mut(size).zip(&rows) {
        for (value, column) in values.iter_mut().zip(&columns) {
            *value = times_power(*value, -(row + column));
        }
    }
    rows.iter().chain(&columns).sum()
}
