//! Handwritten loops for some cases: what careful code achieves without a library. The loops are
//! compiled for several instruction sets and dispatched at run time.

use multiversion::multiversion;
use rayon::prelude::*;

/// Calls `work` with the index and the elements of each chunk of `out`, in parallel if `threads` is
/// not 1.
pub fn each_chunk<T: Send>(
    threads: usize,
    out: &mut [T],
    len: usize,
    work: impl Fn(usize, &mut [T]) + Sync + Send,
) {
    if threads == 1 {
        out.chunks_mut(len).enumerate().for_each(|(at, chunk)| work(at, chunk));
    } else {
        out.par_chunks_mut(len).enumerate().for_each(|(at, chunk)| work(at, chunk));
    }
}

macro_rules! versions {
    ($($(#[$doc:meta])* pub fn $name:ident($($arg:ident: $t:ty),*) $(-> $out:ty)? $body:block)*) => {$(
        $(#[$doc])*
        #[multiversion(targets(
            "x86_64+avx512f+avx512bw+avx512dq+avx512vl+avx2+fma+bmi1+bmi2+lzcnt",
            "x86_64+avx2+fma+bmi1+bmi2+lzcnt",
            "aarch64+neon"
        ))]
        pub fn $name($($arg: $t),*) $(-> $out)? $body
    )*};
}

/// The number of parallel sums.
const LANES: usize = 64;

#[inline(always)]
fn lane_sum(lanes: [f32; LANES]) -> f32 {
    let mut lanes = lanes;
    let mut len = LANES / 2;
    while len > 0 {
        for at in 0..len {
            lanes[at] += lanes[at + len];
        }
        len /= 2;
    }
    lanes[0]
}

/// The sum of `f` over all elements.
#[inline(always)]
fn sum_of(x: &[f32], f: impl Fn(f32) -> f32) -> f32 {
    let mut lanes = [0.0f32; LANES];
    let (blocks, rest) = x.as_chunks::<LANES>();
    for block in blocks {
        for (lane, &x) in lanes.iter_mut().zip(block) {
            *lane += f(x);
        }
    }
    lane_sum(lanes) + rest.iter().map(|&x| f(x)).sum::<f32>()
}

#[inline(always)]
fn max_of(x: &[f32]) -> f32 {
    let mut lanes = [f32::NEG_INFINITY; LANES];
    let (blocks, rest) = x.as_chunks::<LANES>();
    for block in blocks {
        for (lane, &x) in lanes.iter_mut().zip(block) {
            *lane = if x > *lane { x } else { *lane };
        }
    }
    lanes.iter().chain(rest).copied().fold(f32::NEG_INFINITY, f32::max)
}

/// `e^x` for `x <= 0`: a power of two times a polynomial in the remainder. Results below `e^-87`
/// are clamped to it.
#[inline(always)]
fn exp(x: f32) -> f32 {
    const ROUND: f32 = 12_582_912.0; // 1.5 * 2^23: adding it rounds to an integer
    let x = if x < -87.0 { -87.0 } else { x };
    let shifted = x * std::f32::consts::LOG2_E + ROUND;
    let n = shifted - ROUND;
    let r = x - n * 0.693_359_4 + n * 2.121_944_4e-4;
    let p = ((((1.987_569_1e-4 * r + 1.398_199_9e-3) * r + 8.333_452e-3) * r + 4.166_579_6e-2) * r
        + 0.166_666_66)
        * r
        + 0.5;
    let y = p * r * r + r + 1.0;
    y * f32::from_bits(shifted.to_bits().wrapping_add(127) << 23)
}

/// Abramowitz and Stegun 7.1.26.
#[inline(always)]
fn erf(x: f32) -> f32 {
    let a = x.abs();
    let t = 1.0 / (1.0 + 0.327_591_1 * a);
    let p = ((((1.061_405_4 * t - 1.453_152) * t + 1.421_413_7) * t - 0.284_496_74) * t + 0.254_829_6) * t;
    (1.0 - p * exp(-a * a)).copysign(x)
}

versions! {
    /// `out[i] = sum over j of rows[i, j] x[j]`, where `x.len()` is a multiple of 64.
    pub fn matvec(rows: &[f32], x: &[f32], out: &mut [f32]) {
        for (out, row) in out.iter_mut().zip(rows.chunks_exact(x.len())) {
            let mut lanes = [0.0f32; LANES];
            for (row, x) in row.as_chunks::<LANES>().0.iter().zip(x.as_chunks::<LANES>().0) {
                for at in 0..LANES {
                    lanes[at] += row[at] * x[at];
                }
            }
            *out = lane_sum(lanes);
        }
    }

    /// `out = max(x scale + bias, 0)`
    pub fn affine_relu(x: &[f32], scale: f32, bias: f32, out: &mut [f32]) {
        for (out, &x) in out.iter_mut().zip(x) {
            let y = x * scale + bias;
            *out = if y > 0.0 { y } else { 0.0 };
        }
    }

    /// The softmax of a row.
    pub fn softmax(x: &[f32], out: &mut [f32]) {
        let max = max_of(x);
        for (out, &x) in out.iter_mut().zip(x) {
            *out = exp(x - max);
        }
        let scale = 1.0 / sum_of(out, |y| y);
        for out in out {
            *out *= scale;
        }
    }

    /// The softmax of a row of scores times `scale`, in place.
    pub fn softmax_scaled(x: &mut [f32], scale: f32) {
        let max = max_of(x);
        for x in x.iter_mut() {
            *x = exp((*x - max) * scale);
        }
        let share = 1.0 / sum_of(x, |y| y);
        for x in x {
            *x *= share;
        }
    }

    /// `(x - mean) / sqrt(variance + 1e-5) * gain + bias` of a row.
    pub fn layer_norm(x: &[f32], gain: &[f32], bias: &[f32], out: &mut [f32]) {
        let mean = sum_of(x, |x| x) / x.len() as f32;
        let variance = sum_of(x, |x| (x - mean) * (x - mean)) / x.len() as f32;
        let scale = 1.0 / (variance + 1e-5).sqrt();
        for (((out, &x), &gain), &bias) in out.iter_mut().zip(x).zip(gain).zip(bias) {
            *out = (x - mean) * scale * gain + bias;
        }
    }

    /// `gelu(x + bias)` of a row.
    pub fn gelu(x: &[f32], bias: &[f32], out: &mut [f32]) {
        for ((out, &x), &bias) in out.iter_mut().zip(x).zip(bias) {
            let y = x + bias;
            *out = 0.5 * y * (1.0 + erf(y * std::f32::consts::FRAC_1_SQRT_2));
        }
    }

    /// `out = sum over ids of table[id]`, where rows have 128 elements.
    pub fn bag(table: &[f32], ids: &[usize], out: &mut [f32]) {
        let mut sums = [0.0f32; 128];
        for &id in ids {
            for (sum, &x) in sums.iter_mut().zip(&table[128 * id..128 * (id + 1)]) {
                *sum += x;
            }
        }
        out.copy_from_slice(&sums);
    }

    /// `out += row`
    pub fn add_to(row: &[f32], out: &mut [f32]) {
        for (out, &x) in out.iter_mut().zip(row) {
            *out += x;
        }
    }

    /// The sum of a row.
    pub fn sum(row: &[f32]) -> f32 {
        sum_of(row, |x| x)
    }

    /// `out[c, p] = x[p, c]` for three channels.
    pub fn planes3(x: &[f32], out: &mut [f32]) {
        let len = out.len() / 3;
        let (red, rest) = out.split_at_mut(len);
        let (green, blue) = rest.split_at_mut(len);
        let (pixels, _) = x.as_chunks::<3>();
        for (((red, green), blue), pixel) in red.iter_mut().zip(green).zip(blue).zip(pixels) {
            (*red, *green, *blue) = (pixel[0], pixel[1], pixel[2]);
        }
    }

    /// `out[j, i] = x[i, first + j]`, in blocks of 16 by 16. `x` has `rows` rows and `columns`
    /// columns. `rows` and the number of rows of `out` are multiples of 16.
    pub fn transpose_band(x: &[f32], rows: usize, columns: usize, first: usize, out: &mut [f32]) {
        for (band, out) in out.chunks_mut(16 * rows).enumerate() {
            let column = first + 16 * band;
            for row in (0..rows).step_by(16) {
                let mut block = [[0.0f32; 16]; 16];
                for (i, line) in block.iter_mut().enumerate() {
                    let from = (row + i) * columns + column;
                    line.copy_from_slice(&x[from..from + 16]);
                }
                for (j, out) in out.chunks_exact_mut(rows).enumerate() {
                    let into = &mut out[row..row + 16];
                    for i in 0..16 {
                        into[i] = block[i][j];
                    }
                }
            }
        }
    }

    /// Interleaves two rows: `out = x0 y0 x1 y1 ..`.
    pub fn interleave(x: &[f32], y: &[f32], out: &mut [f32]) {
        let (pairs, _) = out.as_chunks_mut::<2>();
        for ((pair, &x), &y) in pairs.iter_mut().zip(x).zip(y) {
            *pair = [x, y];
        }
    }

    /// `out[j] = sum over d of |a[d] - bt[d, j]|`, where `bt` has `out.len()` columns.
    pub fn l1_row(a: &[f32], bt: &[f32], out: &mut [f32]) {
        let columns = out.len();
        for (block, out) in out.chunks_mut(128).enumerate() {
            let mut sums = [0.0f32; 128];
            for (d, &a) in a.iter().enumerate() {
                let from = d * columns + block * 128;
                for (sum, &b) in sums.iter_mut().zip(&bt[from..from + out.len()]) {
                    *sum += (a - b).abs();
                }
            }
            out.copy_from_slice(&sums[..out.len()]);
        }
    }

    /// The row `h` of four output channels, `out[o, w]`, of a 3 x 3 convolution of 32 channels of
    /// 56 x 56.
    pub fn conv_row(x: &[f32], kernel: &[f32], h: usize, out: &mut [[f32; 54]; 4]) {
        let mut sums = [[0.0f32; 54]; 4];
        for c in 0..32 {
            for i in 0..3 {
                let row: &[f32; 56] = x[(c * 56 + h + i) * 56..][..56].try_into().expect("the sizes fit");
                for j in 0..3 {
                    for (o, sums) in sums.iter_mut().enumerate() {
                        let factor = kernel[(o * 32 + c) * 9 + 3 * i + j];
                        for w in 0..54 {
                            sums[w] += factor * row[w + j];
                        }
                    }
                }
            }
        }
        *out = sums;
    }
}
