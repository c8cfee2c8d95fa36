//! Exponentials of matrices with large norms, and gradients of exponentials.

use crate::run::{C, Outer, R};
use ndarray::{Array2, Array3, array};
use typed_dims::grad::grad;
use typed_dims::prelude::*;

#[test]
fn the_error_names_the_matrix() {
    let mut a = Array3::<f64>::zeros((3, 2, 2));
    a[[2, 0, 1]] = -1e30;
    a[[2, 1, 0]] = 1e30;
    let error = a.at((Outer, R, C)).try_expm(R, C).map(|_| ()).unwrap_err();
    let expected = "`expm`: the matrix at Outer = 2 is so large that no digit of the result would be right";
    assert_eq!(error.to_string(), expected);
}

/// The gradient is proportional to the cotangent, even if the cotangent is large or small.
#[test]
fn gradients_of_large_and_small_cotangents() {
    for size in [1, 2, 3, 5, 9, 20] {
        let value = |(row, column): (usize, usize)| ((3 * row + 5 * column) % 7) as f64 / 4.0 - 0.75;
        let a = Array2::from_shape_fn((size, size), value);
        let of = |scale: f64| {
            let a = a.clone().into_tensor((R, C));
            grad(|a: &Tensor<f64, (R, C)>| a.expm(R, C).sum((R, C)) * scale, &a).order((R, C))
        };
        let expected = of(1.0);
        let most = expected.iter().fold(0.0, |most: f64, x| most.max(x.abs()));
        for scale in [1e-100, 1e-20, 1e5, 1e10, 1e30] {
            let error = (of(scale) / scale - &expected).iter().fold(0.0, |most: f64, x| most.max(x.abs()));
            assert!(error <= 1e-12 * most, "size {size}, scale {scale}: an error of {error}");
        }
    }
}

/// The gradient is the integral of `e^(s a^T) g e^((1 - s) a^T)` over `s` from 0 to 1. Here the
/// elements of `g` are 1, and those of `e^(s a)` are `e^s [1, s z; 0, 1]`.
#[test]
fn gradients_of_large_matrices() {
    for z in [1e5, 1e10] {
        let a = array![[1.0, z], [0.0, 1.0]].into_tensor((R, C));
        let found = grad(|a: &Tensor<f64, (R, C)>| a.expm(R, C).sum((R, C)), &a).order((R, C));
        let e = 1f64.exp();
        let on = e * (1.0 + z / 2.0);
        let expected = array![[on, e], [e * (1.0 + z + z * z / 6.0), on]];
        for (found, expected) in found.iter().zip(&expected) {
            assert!((found - expected).abs() <= 1e-12 * expected, "{found} instead of {expected}");
        }
    }
}
