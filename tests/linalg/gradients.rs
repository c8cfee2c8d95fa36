//! Gradients at matrices with equal eigenvalues, singular values that are 0, or without an inverse.

use crate::run::{C, K, Outer, R};
use ndarray::{Array2, array};
use typed_dims::grad::{grad, hvp, try_grad, try_hvp};
use typed_dims::prelude::*;
use typed_dims::program::record;

type Matrix = Tensor<f64, (R, C)>;
type Number = Tensor<f64, ()>;

fn matrix(elements: &Array2<f64>) -> Matrix {
    elements.at((R, C)).eval()
}

/// The eigenvalues 2, 2 and 5.
fn tied() -> Array2<f64> {
    let u = [1.0, 2.0, 2.0];
    Array2::from_shape_fn((3, 3), |(row, column)| f64::from(row == column) * 2.0 + u[row] * u[column] / 3.0)
}

fn is_finite(found: &Matrix) -> bool {
    found.view().order((R, C)).iter().all(|value| value.is_finite())
}

fn assert_close(found: &Matrix, expected: &Array2<f64>) {
    let found = found.view().order((R, C));
    assert!((&found - expected).iter().all(|error| error.abs() < 1e-13), "{found} instead of {expected}");
}

/// The sum of the squared eigenvalues or singular values is the sum of the squared elements.
#[test]
fn values_that_are_equal() {
    let squares = |a: &Matrix| -> Number { a.view().eigh(R, C).0.square().sum(C) };
    for a in [tied(), Array2::from_diag(&array![2.0, 2.0]), Array2::zeros((3, 3))] {
        assert_close(&grad(squares, &matrix(&a)), &(&a * 2.0));
    }
    let squares = |a: &Matrix| -> Number { a.view().singular_values(R, C, K).square().sum(K) };
    let of_svd = |a: &Matrix| -> Number { a.view().svd(R, C, K).1.square().sum(K) };
    let tall = array![[3.0, 0.0], [0.0, 3.0], [0.0, 0.0]];
    let lower = array![[3.0, 0.0], [0.0, 0.0], [0.0, 0.0]];
    for a in [tied(), tall.t().to_owned(), tall, lower.t().to_owned(), lower] {
        assert_close(&grad(squares, &matrix(&a)), &(&a * 2.0));
        assert_close(&grad(of_svd, &matrix(&a)), &(&a * 2.0));
    }
}

#[test]
fn second_derivatives_of_equal_values() {
    let squares = |a: &Matrix| -> Number { a.view().eigh(R, C).0.square().sum(C) };
    let a = matrix(&Array2::from_diag(&array![2.0, 2.0, 5.0]));
    let direction = matrix(&Array2::from_shape_fn((3, 3), |(row, column)| (row + 2 * column) as f64));
    assert!(!is_finite(&hvp(squares, &a, &direction)));
    let squares = |a: &Matrix| -> Number { a.view().singular_values(R, C, K).square().sum(K) };
    assert!(!is_finite(&hvp(squares, &a, &direction)));
}

#[test]
fn vectors_of_equal_values() {
    let weights = matrix(&Array2::from_shape_fn((3, 3), |(row, column)| (1 + row * row + column) as f64));
    let weighted = |a: &Matrix| -> Number { (a.view().eigh(R, C).1 * &weights).sum((R, C)) };
    let tied = Array2::from_diag(&array![2.0, 2.0, 5.0]);
    for a in [tied.clone(), Array2::eye(3), Array2::zeros((3, 3))] {
        assert!(!is_finite(&grad(weighted, &matrix(&a))), "{a}");
    }
    assert!(is_finite(&grad(weighted, &matrix(&Array2::from_diag(&array![2.0, 3.0, 5.0])))));
    // Equal eigenvalues do not matter if their vectors are not used. Only the gap of 3 counts.
    let of_last = |a: &Matrix| -> Number {
        let last = a.view().eigh(R, C).1.index(C, 2).eval();
        (last.view().index(R, 0) * last.view().index(R, 2)).eval()
    };
    let mut expected = Array2::zeros((3, 3));
    expected[[0, 2]] = 1.0 / 6.0;
    expected[[2, 0]] = 1.0 / 6.0;
    assert_close(&grad(of_last, &matrix(&tied)), &expected);
}

#[test]
fn vectors_of_equal_singular_values_and_of_zero() {
    let weigh = |v: Tensor<f64, (R, K)>| -> Number { (v * (R * 2 + K + 1).cast::<f64>()).sum((R, K)) };
    let of_left = |a: &Matrix| weigh(a.view().svd(R, C, K).0);
    let of_right = |a: &Matrix| weigh(a.view().svd(R, C, K).2.rename(C, R).eval());
    let tall = array![[3.0, 0.0], [0.0, 3.0], [0.0, 0.0]];
    assert!(!is_finite(&grad(of_left, &matrix(&tall))));
    assert!(!is_finite(&grad(of_right, &matrix(&tall))));
    let lower = array![[3.0, 0.0], [0.0, 0.0], [0.0, 0.0]];
    assert!(!is_finite(&grad(of_left, &matrix(&lower))));
    assert!(!is_finite(&grad(of_right, &matrix(&lower.t().to_owned()))));
}

/// The error names the derivative.
#[test]
fn matrices_without_a_gradient() {
    type Batch = Tensor<f64, (R, Outer, C)>;
    let mut singular = eye(R.of(2), C.of(2)).expand(Outer.of(3)).eval();
    singular -= select(Outer.eq(2) & R.eq(1) & C.eq(1), 1.0, 0.0);
    let direction: Batch = ones((R.of(2), Outer.of(3), C.of(2)));
    let message = |found: Result<Batch, DimError>| found.expect_err("there is no gradient").to_string();
    let logarithms = |a: &Batch| -> Number { a.view().slogdet(R, C).1.sum(Outer) };
    let upper = |a: &Batch| -> Number { a.view().lu(R, C, K).1.sum((Outer, R, K)) };
    let orthogonal = |a: &Batch| -> Number { a.view().qr(R, C, K).0.sum((Outer, R, K)) };
    let dets = |a: &Batch| -> Number { a.view().det(R, C).sum(Outer) };
    for (found, name) in [
        (try_grad(logarithms, &singular), "gradient of `slogdet`"),
        (try_grad(upper, &singular), "gradient of `lu`"),
        (try_grad(orthogonal, &singular), "gradient of `qr`"),
        (try_hvp(dets, &singular, &direction), "second derivative of `det`"),
    ] {
        assert_eq!(message(found), format!("the {name}: the matrix at index 2 of 3 is singular"));
    }
    let one: Matrix = zeros((R.of(2), C.of(2)));
    let error = try_grad(|a: &Matrix| a.view().slogdet(R, C).1, &one).expect_err("there is no gradient");
    assert_eq!(error.to_string(), "the gradient of `slogdet`: the matrix is singular");
    assert!(matches!(
        error,
        DimError::Matrix { operation: "slogdet", derivative: Some("gradient"), at: 0, .. }
    ));
    let infinite =
        |a: &Batch| -> Number { (a.view().solve(ones(R.of(2)), R, C) * f64::MAX * 2.0).sum((Outer, C)) };
    let why = "the gradient of `solve`: the matrix at index 0 of 3 has a result whose gradient has an element that is infinite or NaN";
    let fine: Batch = eye(R.of(2), C.of(2)).expand(Outer.of(3)).eval();
    assert_eq!(message(try_grad(infinite, &fine)), why);
    // A recorded gradient names the step of the program.
    let program = record(|a: &Batch| grad(logarithms, a), &fine).expect("the gradient can be recorded");
    let error = message(program.try_call(&singular));
    assert_eq!(error, "`inverse`: the matrix at index 2 of 3 is singular");
}

/// As in NumPy, the first factor is not multiplied by the identity.
#[test]
fn powers_of_large_elements() {
    let a = array![[1e200, 0.0], [0.0, 1.0]];
    let expected = array![[f64::INFINITY, 0.0], [0.0, 1.0]];
    assert_eq!(a.at((R, C)).matrix_power(R, C, 2).order((R, C)), expected);
    assert_eq!(a.at((R, C)).matrix_power(R, C, 0).order((R, C)), Array2::<f64>::eye(2));
    assert_eq!(a.at((R, C)).matrix_power(R, C, 1).order((R, C)), a);
    let many = a.at((R, C)).expand(Outer.of(11)).matrix_power(R, C, 2);
    for at in 0..11 {
        assert_eq!(many.view().index(Outer, at).order((R, C)), expected);
    }
}
