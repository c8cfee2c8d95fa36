//! A convolution.

use super::elementwise::fill;
use crate::bench::{Bench, candle};
use crate::gemms::products;
use crate::plain;
use ndarray::parallel::prelude::*;
use ndarray::{ArrayView3, ArrayViewMut3, Axis, s};
use std::mem::MaybeUninit;
use typed_dims::prelude::*;

fn in_dims(x: &Array4<f32>, kernel: &Array4<f32>) -> Array4<f32> {
    dims!(b, o, h, w, c, i, j);
    let kernel = kernel.at((o, c, i, j)); // gives `i` and `j` their sizes
    (x.at((b, c, h + i, w + j)) * kernel).sum((c, i, j)).order((b, o, h, w))
}

/// The matrix to multiply the kernel by. It has one column for each pixel of the result.
fn columns(image: ArrayView3<'_, f32>) -> Array2<f32> {
    let mut columns = ndarray::Array5::zeros((32, 3, 3, 54, 54));
    for i in 0..3 {
        for j in 0..3 {
            columns.slice_mut(s![.., i, j, .., ..]).assign(&image.slice(s![.., i..i + 54, j..j + 54]));
        }
    }
    columns.into_shape_with_order((288, 54 * 54)).expect("the array is contiguous")
}

pub fn conv2d(bench: &mut Bench) {
    let x = bench.input::<f32, _>("x", (8, 32, 56, 56));
    let kernel = bench.input::<f32, _>("kernel", (64, 32, 3, 3));
    let threads = bench.threads;
    {
        let (x, kernel) = (x.clone(), kernel.clone());
        bench.peer("typed-dims", move || in_dims(&x, &kernel));
    }
    {
        let (x, kernel) = (x.clone(), kernel.clone());
        bench.peer("ndarray", move || {
            let kernel = kernel.to_shape((64, 288)).expect("the sizes fit");
            let mut out = Array4::zeros((8, 64, 54, 54));
            for (mut out, image) in out.outer_iter_mut().zip(x.outer_iter()) {
                let product = kernel.dot(&columns(image));
                out.assign(&product.into_shape_with_order((64, 54, 54)).expect("the array is contiguous"));
            }
            out
        });
    }
    {
        let (x, kernel) = (candle(&x), candle(&kernel));
        bench.peer("candle", move || x.conv2d(&kernel, 0, 1, 1, 1).expect("shapes agree"));
    }
    #[cfg(feature = "burn")]
    {
        use burn::tensor::{module, ops::ConvOptions};
        let (x, kernel) = (crate::bench::burn::<4, _, _>(&x), crate::bench::burn::<4, _, _>(&kernel));
        bench.peer("burn", move || {
            module::conv2d(x.clone(), kernel.clone(), None, ConvOptions::new([1, 1], [0, 0], [1, 1], 1))
        });
    }
    for (name, by) in products() {
        let (x, kernel) = (x.clone(), kernel.clone());
        bench.peer(name, move || {
            let kernel = kernel.to_shape((64, 288)).expect("the sizes fit");
            let kernel = kernel.view();
            let mut out = Array4::uninit((8, 64, 54, 54));
            let one = |out: ArrayViewMut3<'_, MaybeUninit<f32>>, image: ArrayView3<'_, f32>| {
                let out = out.into_shape_with_order((64, 54 * 54)).expect("the array is contiguous");
                by(kernel, columns(image).view(), out, 1);
            };
            if threads == 1 {
                out.outer_iter_mut().zip(x.outer_iter()).for_each(|(out, image)| one(out, image));
            } else {
                let images = out.axis_iter_mut(Axis(0)).into_par_iter().zip(x.axis_iter(Axis(0)));
                images.for_each(|(out, image)| one(out, image));
            }
            // SAFETY: the products write every element of each image.
            unsafe { out.assume_init() }
        });
    }
    bench.peer("plain loop", move || {
        let (x, kernel) =
            (x.as_slice().expect("standard layout"), kernel.as_slice().expect("standard layout"));
        const PLANE: usize = 54 * 54;
        let mut out = Vec::new();
        let write = |out: &mut [f32]| {
            // Four channels of an image of the result at a time.
            plain::each_chunk(threads, out, 4 * PLANE, |at, out| {
                let (image, first) = (at / 16, 4 * (at % 16));
                for h in 0..54 {
                    let mut rows = [[0.0; 54]; 4];
                    plain::conv_row(&x[image * 32 * 56 * 56..], &kernel[first * 288..], h, &mut rows);
                    for (plane, row) in out.chunks_exact_mut(PLANE).zip(&rows) {
                        plane[h * 54..][..54].copy_from_slice(row);
                    }
                }
            });
        };
        // SAFETY: the chunks that are written cover all elements.
        unsafe { fill(&mut out, 8 * 64 * PLANE, write) };
        Array4::from_shape_vec((8, 64, 54, 54), out).expect("the sizes fit")
    });
}
