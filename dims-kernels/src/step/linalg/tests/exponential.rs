//! Exponentials of matrices with large norms.

use super::*;
use alloc::format;
use core::f64::consts::E;

const INF: f64 = f64::INFINITY;

/// Matrices, row by row, and their exponentials.
fn large_matrices() -> Vec<(Vec<f64>, Vec<f64>)> {
    let (sin, cos) = 1f64.sin_cos();
    let (sinh, cosh) = (1f64.sinh(), 1f64.cosh());
    let large: [(&[f64], &[f64]); 14] = [
        (&[1e4], &[INF]),
        (&[0.0, 1e10, 0.0, 0.0], &[1.0, 1e10, 0.0, 1.0]),
        (&[1.0, 1e20, 0.0, 1.0], &[E, E * 1e20, 0.0, E]),
        (&[1.0, 0.0, -1e20, 1.0], &[E, 0.0, -E * 1e20, E]),
        (&[1e4, 0.0, 0.0, 1.0], &[INF, 0.0, 0.0, E]),
        (&[0.0, 1.0, 0.0, -1e20], &[1.0, 1e-20, 0.0, 0.0]),
        (&[-1e20, 1.0, 1.0, -1e20], &[0.0; 4]),
        (&[0.0, 1e12, 1e-12, 0.0], &[cosh, sinh * 1e12, sinh * 1e-12, cosh]),
        // Another order of rows and columns makes this matrix triangular.
        (&[0.0, 0.0, 1e15, 1e10, 0.0, 0.0, 0.0, 0.0, 0.0], &[1.0, 0.0, 1e15, 1e10, 1.0, 5e24, 0.0, 0.0, 1.0]),
        // Elements of the result that are out of range do not change the others.
        (&[1e4, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, -1.0, 0.0], &[INF, 0.0, 0.0, 0.0, cos, sin, 0.0, -sin, cos]),
        (&[1e4, 1.0, 1.0, 0.0, 1.0, 1.0, 0.0, 0.0, 1.0], &[INF, INF, INF, 0.0, E, E, 0.0, 0.0, E]),
        (&[0.0, 0.0, 1.0, 0.0, 1e4, 0.0, 0.0, 0.0, 0.0], &[1.0, 0.0, 1.0, 0.0, INF, 0.0, 0.0, 0.0, 1.0]),
        // Products of elements are out of range, but the result is not.
        (&[0.0, 1e300, 0.0, 0.0], &[1.0, 1e300, 0.0, 1.0]),
        (&[-1000.0, 1e300, 0.0, -1000.0], &[0.0, 5.075_958_897_549_457e-135, 0.0, 0.0]),
    ];
    large.map(|(a, expected)| (a.to_vec(), expected.to_vec())).to_vec()
}

#[track_caller]
fn assert_elements<T: TestElement>(found: &[T], expected: &[f64], tolerance: f64) {
    for (at, (own, &expected)) in found.iter().zip(expected).enumerate() {
        let part = own.part().to_f64().unwrap();
        let is_near = part == expected || (part - expected).abs() < tolerance * expected.abs();
        assert!(is_near, "element {at}: {found:?} instead of {expected}");
    }
}

fn check<T: TestElement>(tolerance: f64, [least, most]: [f64; 2]) {
    for (a, expected) in large_matrices() {
        let is_in_range = |value: &f64| *value == 0.0 || (least..most).contains(&value.abs());
        if !a.iter().all(is_in_range) {
            continue;
        }
        let size = if a.len() == 9 { 3 } else { a.len().isqrt() };
        let own: Vec<T> = a.iter().map(|&value| T::of(value, 0.0)).collect();
        let zero = vec![T::ZERO; own.len()];
        for (batch, at) in [(1, 0), (2, 1), (19, 0), (19, 18)] {
            let data: Vec<T> =
                (0..batch).flat_map(|matrix| if matrix == at { own.clone() } else { zero.clone() }).collect();
            let sizes = MatrixSizes::square(batch, size);
            let found = run_one(MatrixWork::Expm, sizes, &data).unwrap().next::<T>();
            for (matrix, found) in found.chunks(size * size).enumerate() {
                match matrix == at {
                    true => assert_elements(found, &expected, tolerance),
                    false => assert_eq!(found, TestMatrix::<T>::identity(size).data),
                }
            }
        }
    }
}

#[test]
fn large_norms() {
    check::<f64>(1e-12, [f64::MIN_POSITIVE, f64::MAX]);
    check::<f32>(1e-3, [1e-30, 1e30]);
    check::<Complex<f64>>(1e-12, [f64::MIN_POSITIVE, 1000.0]);
    check::<Complex<f32>>(1e-3, [1e-30, 1000.0]);
}

/// Matrices with one value on the diagonal, and `scale` directly above it, or their transposes.
/// `k` columns to the right of the diagonal, the exponential has the element `scale^k / k!`, times
/// the exponential of the value on the diagonal.
fn shifts<T: TestElement>(tolerance: f64, scales: &[f64]) {
    for (size, &scale) in
        [2, 3, 5, 9, 16, 24].into_iter().flat_map(|size| scales.iter().map(move |x| (size, x)))
    {
        for (diagonal, transposed) in [(0.0, false), (0.0, true), (-3.0, false), (1.0, true)] {
            let a = TestMatrix::<T>::of(size, size, |row, column| match column.wrapping_sub(row) {
                0 => T::of(diagonal, 0.0),
                1 => T::of(scale, 0.0),
                _ => T::ZERO,
            });
            let a = if transposed { a.t() } else { a };
            let found = run_one(MatrixWork::Expm, MatrixSizes::square(1, size), &a.data).unwrap().next::<T>();
            let found = TestMatrix::new(&found, size, size);
            let found = if transposed { found.t() } else { found };
            for (row, column) in (0..size).flat_map(|row| (0..size).map(move |column| (row, column))) {
                let found = found.at(row, column).part().to_f64().unwrap();
                let Some(k) = column.checked_sub(row) else {
                    assert_eq!(found, 0.0, "row {row}, column {column}");
                    continue;
                };
                let expected = (1..=k).fold(diagonal.exp(), |product, k| product * scale / k as f64);
                let error = (found - expected).abs();
                let what = format!(
                    "{found} instead of {expected} in row {row}, column {column} (size {size}, scale {scale})"
                );
                assert!(error <= tolerance * scale.powi(k as i32), "{what}");
            }
        }
    }
}

#[test]
fn triangular_matrices() {
    shifts::<f64>(1e-13, &[1.0, 300.0, 1e8]);
    shifts::<Complex<f64>>(1e-13, &[1.0, 300.0, 1e8]);
    shifts::<f32>(1e-5, &[1.0, 30.0]);
    shifts::<Complex<f32>>(1e-5, &[1.0, 30.0]);
}

/// The exponential rotates by so many radians that no digit of the sine is known.
#[test]
fn matrices_that_are_too_large() {
    for value in [1e20, 1e30, 1e200, 1e308] {
        for (batch, at) in [(1, 0), (2, 1), (19, 11)] {
            let mut data = vec![0.0; 4 * batch];
            data[4 * at + 1] = -value;
            data[4 * at + 2] = value;
            let error = run_one(MatrixWork::Expm, MatrixSizes::square(batch, 2), &data).err();
            let operation = MatrixWork::Expm.name();
            let failure = MatrixFailure::TooLarge;
            let expected = Error::Matrix { operation, derivative: None, failure, at, batch };
            assert_eq!(error, Some(expected), "{value}");
        }
    }
}
