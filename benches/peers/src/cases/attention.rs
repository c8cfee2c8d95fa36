//! Attention, composed of products and a softmax, and with the libraries' own operators.

use crate::bench::{Bench, candle};
use crate::gemms::{Product, products};
use crate::plain;
use candle_core::Tensor as Candle;
use candle_nn::attention::AttnMask;
use candle_nn::attention::cpu_flash::flash_attn;
use ndarray::parallel::prelude::*;
use ndarray::{ArrayView2, ArrayView4, ArrayViewMut2, Axis, Zip};
use ndarray_einsum::einsum;
use std::mem::MaybeUninit;
use std::sync::Arc;
use typed_dims::prelude::*;

/// `1 / sqrt(64)`
const SCALE: f32 = 0.125;

fn short_in_dims(query: &Array4<f32>, key: &Array4<f32>, value: &Array4<f32>) -> Array4<f32> {
    dims!(b, q, k, h, d);
    let value = value.at((b, k, h, d));
    let scores = (query.at((b, q, h, d)) * key.at((b, k, h, d))).sum(d) * SCALE;
    (scores.softmax(k) * value).sum(k).order((b, q, h, d))
}

fn long_in_dims(query: &Array4<f32>, key: &Array4<f32>, value: &Array4<f32>) -> Array4<f32> {
    dims!(b, h, q, k, d);
    let value = value.at((b, h, k, d));
    let scores = (query.at((b, h, q, d)) * key.at((b, h, k, d))).sum(d) * SCALE;
    (scores.softmax(k) * value).sum(k).order((b, h, q, d))
}

fn short_by_operator(query: &Array4<f32>, key: &Array4<f32>, value: &Array4<f32>) -> Array4<f32> {
    dims!(b, q, k, h, d, e);
    let (query, key, value) = (query.at((b, q, h, d)), key.at((b, k, h, d)), value.at((b, k, h, e)));
    typed_dims::operators::attention::attention(query, key, value, d, k, SCALE, true).order((b, q, h, e))
}

fn long_by_operator(query: &Array4<f32>, key: &Array4<f32>, value: &Array4<f32>) -> Array4<f32> {
    dims!(b, h, q, k, d, e);
    let (query, key, value) = (query.at((b, h, q, d)), key.at((b, h, k, d)), value.at((b, h, k, e)));
    typed_dims::operators::attention::attention(query, key, value, d, k, SCALE, true).order((b, h, q, e))
}

/// One head, written with ndarray.
fn head(q: ArrayView2<'_, f32>, k: ArrayView2<'_, f32>, v: ArrayView2<'_, f32>) -> Array2<f32> {
    let mut scores = q.dot(&k.t()) * SCALE;
    softmax_rows(&mut scores.view_mut());
    scores.dot(&v)
}

fn softmax_rows(scores: &mut ArrayViewMut2<'_, f32>) {
    for mut row in scores.rows_mut() {
        let max = row.fold(f32::NEG_INFINITY, |max, &x| max.max(x));
        row.mapv_inplace(|x| (x - max).exp());
        let sum = row.sum();
        row /= sum;
    }
}

/// Some queries of one head, with products of a GEMM crate and loops over rows.
fn plain_head(
    by: Product<f32>,
    q: ArrayView2<'_, f32>,
    k: ArrayView2<'_, f32>,
    v: ArrayView2<'_, f32>,
    out: ArrayViewMut2<'_, MaybeUninit<f32>>,
) {
    let mut scores = Array2::uninit((q.nrows(), k.nrows()));
    by(q, k.t(), scores.view_mut(), 1);
    // SAFETY: a product writes every element.
    let mut scores = unsafe { scores.assume_init() };
    for mut row in scores.rows_mut() {
        plain::softmax_scaled(row.as_slice_mut().expect("rows are contiguous"), SCALE);
    }
    by(scores.view(), v, out, 1);
}

/// Puts the axes of an input with the heads in axis `heads` into the order batch, head, position,
/// feature.
fn by_head<'a>(x: &'a Array4<f32>, heads: usize) -> ArrayView4<'a, f32> {
    x.view().permuted_axes(if heads == 2 { [0, 2, 1, 3] } else { [0, 1, 2, 3] })
}

/// The keys and values of one head.
type Pair<'a> = (ArrayView2<'a, f32>, ArrayView2<'a, f32>);
/// The output of one head, and its queries.
type Out<'a> = (ArrayViewMut2<'a, MaybeUninit<f32>>, ArrayView2<'a, f32>);

type InDims = fn(&Array4<f32>, &Array4<f32>, &Array4<f32>) -> Array4<f32>;

/// Sets up a case whose inputs have the heads in axis `heads`, which is 1 or 2.
fn peers(bench: &mut Bench, shape: [usize; 4], heads: usize, [composed, by_operator]: [InDims; 2]) {
    let inputs = Arc::new(["q", "k", "v"].map(|name| bench.input::<f32, _>(name, shape)));
    let threads = bench.threads;
    {
        let inputs = inputs.clone();
        bench.peer("typed-dims", move || composed(&inputs[0], &inputs[1], &inputs[2]));
    }
    {
        let inputs = inputs.clone();
        bench.peer("typed-dims attention()", move || by_operator(&inputs[0], &inputs[1], &inputs[2]));
    }
    {
        let inputs = inputs.clone();
        bench.peer("ndarray", move || {
            let [q, k, v] = [0, 1, 2].map(|at| by_head(&inputs[at], heads));
            let mut out = Array4::zeros(shape);
            let mut out_by_head =
                out.view_mut().permuted_axes(if heads == 2 { [0, 2, 1, 3] } else { [0, 1, 2, 3] });
            for (((mut out, q), k), v) in
                out_by_head.outer_iter_mut().zip(q.outer_iter()).zip(k.outer_iter()).zip(v.outer_iter())
            {
                let zip = Zip::from(out.outer_iter_mut());
                let zip = zip.and(q.outer_iter()).and(k.outer_iter()).and(v.outer_iter());
                let one = |mut out: ArrayViewMut2<'_, f32>,
                           q: ArrayView2<'_, f32>,
                           k: ArrayView2<'_, f32>,
                           v: ArrayView2<'_, f32>| {
                    out.assign(&head(q, k, v));
                };
                if threads == 1 { zip.for_each(one) } else { zip.par_for_each(one) }
            }
            out
        });
    }
    {
        let inputs = inputs.clone();
        let (first, second) = if heads == 2 {
            ("bqhd,bkhd->bhqk", "bhqk,bkhd->bqhd")
        } else {
            ("bhqd,bhkd->bhqk", "bhqk,bhkd->bhqd")
        };
        bench.peer("ndarray-einsum", move || {
            let scores = einsum(first, &[&*inputs[0], &*inputs[1]]).expect("the pattern is valid") * SCALE;
            let mut scores = scores.as_standard_layout().into_owned();
            let keys = scores.shape()[3];
            let rows = scores.len() / keys;
            let mut flat =
                scores.view_mut().into_shape_with_order((rows, keys)).expect("the scores are contiguous");
            softmax_rows(&mut flat);
            einsum(second, &[&scores, &*inputs[2]]).expect("the pattern is valid")
        });
    }
    {
        let [q, k, v] = [0, 1, 2].map(|at| candle(&inputs[at]));
        bench.peer("candle", move || {
            let run = || -> candle_core::Result<Candle> {
                let head =
                    |x: &Candle| if heads == 2 { x.transpose(1, 2)?.contiguous() } else { Ok(x.clone()) };
                let scores = (head(&q)?.matmul(&head(&k)?.t()?)? * f64::from(SCALE))?;
                let shares = candle_nn::ops::softmax_last_dim(&scores)?;
                let out = shares.matmul(&head(&v)?)?;
                if heads == 2 { out.transpose(1, 2)?.contiguous() } else { Ok(out) }
            };
            run().expect("shapes agree")
        });
        let [q, k, v] = [0, 1, 2].map(|at| candle(&inputs[at]));
        bench.peer("candle flash_attn", move || {
            let run = || -> candle_core::Result<Candle> {
                // The operator takes the axes batch, position, head, feature, and returns the axes
                // batch, head, position, feature.
                let rows =
                    |x: &Candle| if heads == 2 { Ok(x.clone()) } else { x.transpose(1, 2)?.contiguous() };
                let out =
                    flash_attn::<f32>(&rows(&q)?, &rows(&k)?, &rows(&v)?, SCALE, AttnMask::None, None, None)?;
                if heads == 2 { out.transpose(1, 2)?.contiguous() } else { Ok(out) }
            };
            run().expect("shapes agree")
        });
    }
    #[cfg(feature = "burn")]
    {
        use burn::tensor::{Tensor, activation::softmax, module};
        let with_heads = move |x: &Tensor<4>| if heads == 2 { x.clone().swap_dims(1, 2) } else { x.clone() };
        let [q, k, v] = [0, 1, 2].map(|at| crate::bench::burn::<4, _, _>(&*inputs[at]));
        bench.peer("burn", move || {
            let scores = with_heads(&q).matmul(with_heads(&k).swap_dims(2, 3)) * SCALE;
            with_heads(&softmax(scores, 3).matmul(with_heads(&v)))
        });
        let [q, k, v] = [0, 1, 2].map(|at| crate::bench::burn::<4, _, _>(&*inputs[at]));
        bench.peer("burn attention", move || {
            let out = module::attention(
                with_heads(&q),
                with_heads(&k),
                with_heads(&v),
                None,
                None,
                Default::default(),
            );
            with_heads(&out)
        });
    }
    for (name, by) in products()
        .into_iter()
        .zip(["plain loop, matrixmultiply", "plain loop, gemm", "plain loop, faer"])
        .map(|((_, by), name)| (name, by))
    {
        let inputs = inputs.clone();
        bench.peer(name, move || {
            let [q, k, v] = [0, 1, 2].map(|at| by_head(&inputs[at], heads));
            let mut out = Array4::uninit(shape);
            let mut out_by_head =
                out.view_mut().permuted_axes(if heads == 2 { [0, 2, 1, 3] } else { [0, 1, 2, 3] });
            for (((mut out, q), k), v) in
                out_by_head.outer_iter_mut().zip(q.outer_iter()).zip(k.outer_iter()).zip(v.outer_iter())
            {
                // Blocks of 128 queries keep the scores in cache.
                let head = |((mut out, q), (k, v)): (Out<'_>, Pair<'_>)| {
                    for (out, q) in
                        out.axis_chunks_iter_mut(Axis(0), 128).zip(q.axis_chunks_iter(Axis(0), 128))
                    {
                        plain_head(by, q, k, v, out);
                    }
                };
                if threads == 1 {
                    let rows =
                        out.outer_iter_mut().zip(q.outer_iter()).zip(k.outer_iter().zip(v.outer_iter()));
                    rows.for_each(head);
                } else {
                    let queries = out.axis_iter_mut(Axis(0)).into_par_iter().zip(q.axis_iter(Axis(0)));
                    let pairs = k.axis_iter(Axis(0)).into_par_iter().zip(v.axis_iter(Axis(0)));
                    queries.zip(pairs).for_each(head);
                }
            }
            // SAFETY: the products write every element of each head.
            unsafe { out.assume_init() }
        });
    }
}

pub fn short(bench: &mut Bench) {
    peers(bench, [8, 128, 12, 64], 2, [short_in_dims, short_by_operator]);
}

pub fn long(bench: &mut Bench) {
    peers(bench, [1, 8, 2048, 64], 1, [long_in_dims, long_by_operator]);
}
