//! Permutations of axes.

use super::elementwise::fill;
use crate::bench::{Bench, candle};
use crate::plain;
use typed_dims::prelude::*;

fn nchw_in_dims(x: &Array4<f32>) -> Array4<f32> {
    dims!(b, h, w, c);
    x.at((b, h, w, c)).order((b, c, h, w))
}

fn nhwc(bench: &mut Bench, shape: [usize; 4]) {
    let [batch, height, width, channels] = shape;
    let x = bench.input::<f32, _>("x", shape);
    let threads = bench.threads;
    {
        let x = x.clone();
        bench.peer("typed-dims", move || nchw_in_dims(&x));
    }
    {
        let x = x.clone();
        bench.peer("ndarray", move || x.view().permuted_axes([0, 3, 1, 2]).as_standard_layout().into_owned());
    }
    {
        let x = candle(&x);
        bench.peer("candle", move || {
            x.permute((0, 3, 1, 2)).and_then(|x| x.contiguous()).expect("the tensor has four axes")
        });
    }
    #[cfg(feature = "burn")]
    {
        let x = crate::bench::burn::<4, _, _>(&x);
        bench.peer("burn", move || contiguous(x.clone().permute([0, 3, 1, 2])));
    }
    bench.peer("plain loop", move || {
        let elements = x.as_slice().expect("the array is in standard layout");
        let image = height * width * channels;
        let mut out = Vec::new();
        let write = |out: &mut [f32]| {
            plain::each_chunk(threads, out, image, |at, out| {
                let x = &elements[at * image..][..image];
                if channels == 3 {
                    plain::planes3(x, out);
                } else {
                    plain::transpose_band(x, height * width, channels, 0, out);
                }
            });
        };
        // SAFETY: each element is in one chunk, and chunks are written in full without being read.
        unsafe { fill(&mut out, x.len(), write) };
        Array4::from_shape_vec((batch, channels, height, width), out).expect("the sizes fit")
    });
}

/// burn's `permute` only changes strides. Flattening the result moves the elements.
#[cfg(feature = "burn")]
fn contiguous<const N: usize>(x: burn::tensor::Tensor<N>) -> burn::tensor::Tensor<1> {
    let len = x.shape().num_elements();
    x.reshape([len])
}

pub fn nhwc3(bench: &mut Bench) {
    nhwc(bench, [16, 224, 224, 3]);
}

pub fn nhwc64(bench: &mut Bench) {
    nhwc(bench, [32, 56, 56, 64]);
}

fn pixel_shuffle_in_dims(image: &Array4<f32>) -> Array4<f32> {
    dims!(b, c, h, w, h2 = 2, w2 = 2);
    image.at((b, (c, h2, w2), h, w)).order((b, c, (h, h2), (w, w2)))
}

pub fn pixel_shuffle(bench: &mut Bench) {
    let x = bench.input::<f32, _>("x", (8, 256, 64, 64));
    let threads = bench.threads;
    {
        let x = x.clone();
        bench.peer("typed-dims", move || pixel_shuffle_in_dims(&x));
    }
    {
        let x = x.clone();
        bench.peer("ndarray", move || {
            let split = x.view().into_shape_with_order((8, 64, 2, 2, 64, 64)).expect("the sizes fit");
            let ordered = split.permuted_axes([0, 1, 4, 2, 5, 3]).as_standard_layout().into_owned();
            ordered.into_shape_with_order((8, 64, 128, 128)).expect("the array is contiguous")
        });
    }
    {
        let x = candle(&x);
        bench.peer("candle", move || {
            candle_nn::ops::pixel_shuffle(&x, 2).expect("the input has 256 channels")
        });
    }
    #[cfg(feature = "burn")]
    {
        let x = crate::bench::burn::<4, _, _>(&x);
        bench.peer("burn", move || {
            let split = x.clone().reshape([8, 64, 2, 2, 64, 64]);
            split.permute([0, 1, 4, 2, 5, 3]).reshape([8, 64, 128, 128])
        });
    }
    bench.peer("plain loop", move || {
        let elements = x.as_slice().expect("the array is in standard layout");
        let mut out = Vec::new();
        let write = |out: &mut [f32]| {
            plain::each_chunk(threads, out, 128 * 128, |at, out| {
                let planes = &elements[at * 4 * 4096..][..4 * 4096];
                for (line, out) in out.chunks_exact_mut(128).enumerate() {
                    let (h, h2) = (line / 2, line % 2);
                    let row = |w2: usize| &planes[(2 * h2 + w2) * 4096 + h * 64..][..64];
                    plain::interleave(row(0), row(1), out);
                }
            });
        };
        // SAFETY: each element is in one chunk, and chunks are written in full without being read.
        unsafe { fill(&mut out, x.len(), write) };
        Array4::from_shape_vec((8, 64, 128, 128), out).expect("the sizes fit")
    });
}

fn transpose_in_dims(a: &Array2<f32>) -> Array2<f32> {
    dims!(i, j);
    a.at((i, j)).order((j, i))
}

pub fn transpose(bench: &mut Bench) {
    const N: usize = 4096;
    let a = bench.input::<f32, _>("a", (N, N));
    let threads = bench.threads;
    {
        let a = a.clone();
        bench.peer("typed-dims", move || transpose_in_dims(&a));
    }
    {
        let a = a.clone();
        bench.peer("ndarray", move || a.t().as_standard_layout().into_owned());
    }
    {
        let a = candle(&a);
        bench.peer("candle", move || a.t().and_then(|a| a.contiguous()).expect("the tensor is a matrix"));
    }
    #[cfg(feature = "burn")]
    {
        let a = crate::bench::burn::<2, _, _>(&a);
        bench.peer("burn", move || contiguous(a.clone().transpose()));
    }
    bench.peer("plain loop", move || {
        let elements = a.as_slice().expect("the array is in standard layout");
        let mut out = Vec::new();
        let write = |out: &mut [f32]| {
            let rows = N.div_ceil(threads).next_multiple_of(16);
            plain::each_chunk(threads, out, rows * N, |at, out| {
                plain::transpose_band(elements, N, N, at * rows, out);
            });
        };
        // SAFETY: each element is in one chunk, and chunks are written in full without being read.
        unsafe { fill(&mut out, N * N, write) };
        Array2::from_shape_vec((N, N), out).expect("the sizes fit")
    });
}
