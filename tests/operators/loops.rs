//! Helpers for reference implementations: loops over positions and along axes, special functions,
//! and random numbers.
//!
//! A *line* has the elements along one axis, at one position along each other axis.

use ndarray::{ArrayD, IxDyn};

/// The value of `f` at each position.
pub fn build<T>(shape: &[usize], mut f: impl FnMut(&[usize]) -> T) -> ArrayD<T> {
    use ndarray::Dimension;
    ArrayD::from_shape_fn(IxDyn(shape), |at| f(at.slice()))
}

/// Replaces each line along an axis by `f` of the line. The result lacks the axis.
pub fn fold<T: Copy, U>(x: &ArrayD<T>, axis: usize, mut f: impl FnMut(&[T]) -> U) -> ArrayD<U> {
    let mut shape = x.shape().to_vec();
    shape.remove(axis);
    build(&shape, |at| {
        let line: Vec<T> = (0..x.shape()[axis])
            .map(|i| {
                let mut at = at.to_vec();
                at.insert(axis, i);
                x[IxDyn(&at)]
            })
            .collect();
        f(&line)
    })
}

/// Replaces each line along an axis by `f` of the line. The new lines have `len` elements.
pub fn lines<T: Copy, U: Copy>(
    x: &ArrayD<T>,
    axis: usize,
    len: usize,
    mut f: impl FnMut(&[T]) -> Vec<U>,
) -> ArrayD<U> {
    let lines = fold(x, axis, |line| {
        let line = f(line);
        assert_eq!(line.len(), len, "the length of a line of the result");
        line
    });
    let mut shape = x.shape().to_vec();
    shape[axis] = len;
    build(&shape, |at| {
        let mut rest = at.to_vec();
        let i = rest.remove(axis);
        lines[IxDyn(&rest)][i]
    })
}

/// Like `lines`, for an `f` that keeps the length of a line.
pub fn along<T: Copy, U: Copy>(x: &ArrayD<T>, axis: usize, f: impl FnMut(&[T]) -> Vec<U>) -> ArrayD<U> {
    lines(x, axis, x.shape()[axis], f)
}

pub fn transpose<T: Copy>(x: &ArrayD<T>, axes: &[usize]) -> ArrayD<T> {
    x.view().permuted_axes(IxDyn(axes)).to_owned()
}

/// The error function, from its series: 60 terms are enough from -3 to 3.
pub fn erf(x: f64) -> f64 {
    let (mut term, mut sum) = (x, x);
    for n in 1..60 {
        term *= -x * x / n as f64;
        sum += term / (2 * n + 1) as f64;
    }
    sum * 2.0 / std::f64::consts::PI.sqrt()
}

/// The logarithm of the gamma function of a positive number: Stirling's series at `x + 20`, and the
/// recurrence `gamma(x + 1) = x gamma(x)` from there to `x`.
pub fn ln_gamma(x: f64) -> f64 {
    let shift: f64 = (0..20).map(|n| (x + f64::from(n)).ln()).sum();
    let z = x + 20.0;
    let series = 1.0 / (12.0 * z) - 1.0 / (360.0 * z.powi(3)) + 1.0 / (1260.0 * z.powi(5))
        - 1.0 / (1680.0 * z.powi(7));
    (z - 0.5) * z.ln() - z + (2.0 * std::f64::consts::PI).ln() / 2.0 + series - shift
}

/// The number that a seed is combined with for the normal distribution.
pub const NORMAL: u64 = 0x9E37_79B9_7F4A_7C15;
/// The number that a seed is combined with for dropout.
pub const DROPOUT: u64 = 0x243F_6A88_85A3_08D3;

/// The number that a seed is combined with for `categorical`.
pub const CATEGORICAL: u64 = 0x1319_8A2E_0370_7344;

/// The `at`th number of a seed, at least 0 and less than 1: splitmix64, started from a hash of the
/// seed.
pub fn unit(seed: u64, at: u64) -> f64 {
    let bits = mix(mix(seed).wrapping_add(at.wrapping_add(1).wrapping_mul(0x9E37_79B9_7F4A_7C15)));
    (bits >> 11) as f64 / (1u64 << 53) as f64
}

fn mix(z: u64) -> u64 {
    let z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

/// The place, among the numbers of a seed, of the number for the element at these indices: the sum
/// of the indices, each times a hash of its dim's name.
pub fn draws(indices: &[(&str, usize)]) -> u64 {
    indices.iter().fold(0, |sum, (name, at)| {
        let fnv = |hash: u64, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01B3);
        let factor = mix(name.bytes().fold(0xCBF2_9CE4_8422_2325, fnv)) | 1;
        sum.wrapping_add(factor.wrapping_mul(*at as u64))
    })
}

/// The input position that a convolution reads for the output `position` and the element `at` of
/// the window, unless it is in the padding.
pub fn tap(
    position: usize,
    stride: usize,
    at: usize,
    dilation: usize,
    padding: usize,
    size: usize,
) -> Option<usize> {
    (position * stride + at * dilation).checked_sub(padding).filter(|&at| at < size)
}
