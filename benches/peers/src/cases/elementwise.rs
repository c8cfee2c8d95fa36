//! Elementwise and row-wise operations.

use crate::bench::{Bench, candle};
use crate::plain;
use ndarray::{Axis, Zip};
use typed_dims::prelude::*;

fn affine_relu_in_dims(x: &Array4<f32>, scale: &Array1<f32>, bias: &Array1<f32>) -> Array4<f32> {
    dims!(b, c, h, w);
    (x.at((b, c, h, w)) * scale.at(c) + bias.at(c)).relu().order((b, c, h, w))
}

pub fn affine_relu(bench: &mut Bench) {
    let x = bench.input::<f32, _>("x", (16, 64, 56, 56));
    let (scale, bias) = (bench.input::<f32, _>("scale", 64), bench.input::<f32, _>("bias", 64));
    let threads = bench.threads;
    {
        let (x, scale, bias) = (x.clone(), scale.clone(), bias.clone());
        bench.peer("typed-dims", move || affine_relu_in_dims(&x, &scale, &bias));
    }
    {
        let (x, scale, bias) = (x.clone(), scale.clone(), bias.clone());
        bench.peer("ndarray", move || {
            let (scale, bias) = (scale.to_shape((64, 1, 1)), bias.to_shape((64, 1, 1)));
            let (scale, bias) = (scale.expect("there are 64 elements"), bias.expect("there are 64 elements"));
            let zip = Zip::from(&*x).and_broadcast(&scale).and_broadcast(&bias);
            let one = |&x: &f32, &scale: &f32, &bias: &f32| (x * scale + bias).max(0.0);
            if threads == 1 { zip.map_collect(one) } else { zip.par_map_collect(one) }
        });
    }
    {
        let column = |x: &Array1<f32>| candle(x).reshape((64, 1, 1)).expect("there are 64 elements");
        let (x, scale, bias) = (candle(&x), column(&scale), column(&bias));
        bench.peer("candle", move || {
            x.broadcast_mul(&scale).and_then(|x| x.broadcast_add(&bias)?.relu()).expect("shapes agree")
        });
    }
    #[cfg(feature = "burn")]
    {
        use burn::tensor::activation::relu;
        let channels = |x: &Array1<f32>| crate::bench::burn::<1, _, _>(x).reshape([1, 64, 1, 1]);
        let (x, scale, bias) = (crate::bench::burn::<4, _, _>(&x), channels(&scale), channels(&bias));
        bench.peer("burn", move || relu(x.clone() * scale.clone() + bias.clone()));
    }
    bench.peer("plain loop", move || {
        let mut out = Vec::with_capacity(x.len());
        let elements = x.as_slice().expect("the layout is standard");
        let write = |out: &mut [f32]| {
            plain::each_chunk(threads, out, 56 * 56, |at, out| {
                let channel = at % 64;
                plain::affine_relu(&elements[at * 56 * 56..][..56 * 56], scale[channel], bias[channel], out);
            });
        };
        // SAFETY: the chunks that are written cover all elements.
        unsafe { fill(&mut out, x.len(), write) };
        Array4::from_shape_vec((16, 64, 56, 56), out).expect("the sizes fit")
    });
}

/// Resizes `out` to `len` elements without clearing them, and passes them to `write`.
///
/// # Safety
///
/// `write` must write every element, and must not read an element before writing it.
#[allow(clippy::uninit_vec)]
pub unsafe fn fill(out: &mut Vec<f32>, len: usize, write: impl FnOnce(&mut [f32])) {
    out.reserve_exact(len);
    // SAFETY: the memory is reserved, every bit pattern is an `f32`, and `write` writes all
    // elements.
    unsafe { out.set_len(len) };
    write(out);
}

/// Computes the rows of a matrix from those of `x`, in blocks.
fn rows(threads: usize, x: &Array2<f32>, each: impl Fn(&[f32], &mut [f32]) + Sync + Send) -> Array2<f32> {
    const ROWS: usize = 32;
    let elements = x.as_slice().expect("the layout is standard");
    let len = x.ncols();
    let mut out = Vec::new();
    let write = |out: &mut [f32]| {
        plain::each_chunk(threads, out, ROWS * len, |at, out| {
            for (out, x) in out.chunks_exact_mut(len).zip(elements[at * ROWS * len..].chunks_exact(len)) {
                each(x, out);
            }
        });
    };
    // SAFETY: the chunks cover all elements, and `each` writes a whole row.
    unsafe { fill(&mut out, x.len(), write) };
    Array2::from_shape_vec(x.raw_dim(), out).expect("the sizes fit")
}

fn softmax_in_dims(x: &Array2<f32>) -> Array2<f32> {
    dims!(i, j);
    x.at((i, j)).softmax(j).order((i, j))
}

pub fn softmax(bench: &mut Bench) {
    let x = bench.input::<f32, _>("x", (4096, 1024));
    let threads = bench.threads;
    {
        let x = x.clone();
        bench.peer("typed-dims", move || softmax_in_dims(&x));
    }
    {
        let x = x.clone();
        bench.peer("ndarray", move || {
            let mut out = (*x).clone();
            let one = |mut row: ndarray::ArrayViewMut1<'_, f32>| {
                let max = row.fold(f32::NEG_INFINITY, |max, &x| max.max(x));
                row.mapv_inplace(|x| (x - max).exp());
                let sum = row.sum();
                row /= sum;
            };
            let zip = Zip::from(out.rows_mut());
            if threads == 1 {
                zip.for_each(one)
            } else {
                zip.par_for_each(one)
            }
            out
        });
    }
    {
        let x = candle(&x);
        bench.peer("candle", move || candle_nn::ops::softmax_last_dim(&x).expect("the input is a matrix"));
    }
    #[cfg(feature = "burn")]
    {
        let x = crate::bench::burn::<2, _, _>(&x);
        bench.peer("burn", move || burn::tensor::activation::softmax(x.clone(), 1));
    }
    bench.peer("plain loop", move || rows(threads, &x, plain::softmax));
}

fn layer_norm_in_dims(x: &Array2<f32>, gain: &Array1<f32>, bias: &Array1<f32>) -> Array2<f32> {
    dims!(i, j);
    x.at((i, j)).layer_norm_affine(j, 1e-5, gain.at(j), bias.at(j)).order((i, j))
}

pub fn layer_norm(bench: &mut Bench) {
    let x = bench.input::<f32, _>("x", (4096, 768));
    let (gain, bias) = (bench.input::<f32, _>("gain", 768), bench.input::<f32, _>("bias", 768));
    let threads = bench.threads;
    {
        let (x, gain, bias) = (x.clone(), gain.clone(), bias.clone());
        bench.peer("typed-dims", move || layer_norm_in_dims(&x, &gain, &bias));
    }
    {
        let (x, gain, bias) = (x.clone(), gain.clone(), bias.clone());
        bench.peer("ndarray", move || {
            let mut out = (*x).clone();
            let one = |mut row: ndarray::ArrayViewMut1<'_, f32>| {
                let mean = row.sum() / row.len() as f32;
                row -= mean;
                let variance = row.dot(&row) / row.len() as f32;
                let scale = 1.0 / (variance + 1e-5).sqrt();
                Zip::from(&mut row)
                    .and(&*gain)
                    .and(&*bias)
                    .for_each(|x, &gain, &bias| *x = *x * scale * gain + bias);
            };
            // On one thread, whatever `threads` is.
            out.rows_mut().into_iter().for_each(one);
            out
        });
    }
    {
        let (x, gain, bias) = (candle(&x), candle(&gain), candle(&bias));
        bench.peer("candle", move || {
            candle_nn::ops::layer_norm(&x, &gain, &bias, 1e-5).expect("shapes agree")
        });
    }
    #[cfg(feature = "burn")]
    {
        let x = crate::bench::burn::<2, _, _>(&x);
        let (gain, bias) = (crate::bench::burn::<1, _, _>(&gain), crate::bench::burn::<1, _, _>(&bias));
        bench.peer("burn", move || {
            burn::tensor::module::layer_norm(x.clone(), gain.clone(), Some(bias.clone()), 1e-5)
        });
    }
    let (gain, bias) = (gain.to_vec(), bias.to_vec());
    bench.peer("plain loop", move || rows(threads, &x, |x, out| plain::layer_norm(x, &gain, &bias, out)));
}

fn gelu_in_dims(x: &Array2<f32>, bias: &Array1<f32>) -> Array2<f32> {
    dims!(i, j);
    (x.at((i, j)) + bias.at(j)).gelu().order((i, j))
}

pub fn gelu(bench: &mut Bench) {
    let (x, bias) = (bench.input::<f32, _>("x", (4096, 3072)), bench.input::<f32, _>("bias", 3072));
    let threads = bench.threads;
    {
        let (x, bias) = (x.clone(), bias.clone());
        bench.peer("typed-dims", move || gelu_in_dims(&x, &bias));
    }
    {
        let (x, bias) = (x.clone(), bias.clone());
        bench.peer("ndarray", move || {
            let bias = bias.view().insert_axis(Axis(0));
            let zip = Zip::from(&*x).and_broadcast(&bias);
            let one = |&x: &f32, &bias: &f32| {
                let y = x + bias;
                0.5 * y * (1.0 + libm::erff(y * std::f32::consts::FRAC_1_SQRT_2))
            };
            if threads == 1 { zip.map_collect(one) } else { zip.par_map_collect(one) }
        });
    }
    {
        let (x, bias) = (candle(&x), candle(&bias));
        bench
            .peer("candle", move || x.broadcast_add(&bias).and_then(|y| y.gelu_erf()).expect("shapes agree"));
    }
    #[cfg(feature = "burn")]
    {
        let (x, bias) = (crate::bench::burn::<2, _, _>(&x), crate::bench::burn::<1, _, _>(&bias));
        bench.peer("burn", move || burn::tensor::activation::gelu(x.clone() + bias.clone().unsqueeze()));
    }
    let bias = bias.to_vec();
    bench.peer("plain loop", move || rows(threads, &x, |x, out| plain::gelu(x, &bias, out)));
}
