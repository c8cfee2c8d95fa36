//! Products of two operands.

use crate::bench::{Bench, candle};
use crate::gemms::{Scalar, batched, batched_into, product, products};
use crate::plain;
use ndarray::linalg::general_mat_mul;
use ndarray::{Array2, Array3, ArrayView2, Axis, LinalgScalar, Zip};
use ndarray_einsum::einsum;
use ndarray_npy::WritableElement;
use rand::distr::{Distribution, StandardUniform};
use typed_dims::prelude::*;

fn in_dims(a: &Array2<f32>, b: &Array2<f32>) -> Array2<f32> {
    dims!(i, j, k);
    (a.at((i, k)) * b.at((k, j))).sum(k).order((i, j))
}

fn in_dims_ta(a: &Array2<f32>, b: &Array2<f32>) -> Array2<f32> {
    dims!(i, j, k);
    (a.at((k, i)) * b.at((k, j))).sum(k).order((i, j))
}

fn in_dims_tb(a: &Array2<f32>, b: &Array2<f32>) -> Array2<f32> {
    dims!(i, j, k);
    (a.at((i, k)) * b.at((j, k))).sum(k).order((i, j))
}

fn in_dims_f64(a: &Array2<f64>, b: &Array2<f64>) -> Array2<f64> {
    dims!(i, j, k);
    (a.at((i, k)) * b.at((k, j))).sum(k).order((i, j))
}

/// The parameters of a square product.
struct Square<T> {
    n: usize,
    in_dims: fn(&Array2<T>, &Array2<T>) -> Array2<T>,
    einsum: &'static str,
    transposed: (bool, bool),
}

fn turned<T>(matrix: &Array2<T>, transposed: bool) -> ArrayView2<'_, T> {
    if transposed { matrix.t() } else { matrix.view() }
}

#[cfg(feature = "burn")]
trait Element: burn::tensor::Element {}
#[cfg(feature = "burn")]
impl<T: burn::tensor::Element> Element for T {}
#[cfg(not(feature = "burn"))]
trait Element {}
#[cfg(not(feature = "burn"))]
impl<T> Element for T {}

fn square<T>(bench: &mut Bench, form: Square<T>)
where
    T: Scalar
        + Element
        + LinalgScalar
        + num_traits::Float
        + WritableElement
        + candle_core::WithDType
        + Into<f64>,
    StandardUniform: Distribution<T>,
{
    let Square { n, in_dims, einsum: pattern, transposed: (ta, tb) } = form;
    let (a, b) = (bench.input::<T, _>("a", (n, n)), bench.input::<T, _>("b", (n, n)));
    let threads = bench.threads;
    {
        let (a, b) = (a.clone(), b.clone());
        bench.peer("typed-dims", move || in_dims(&a, &b));
    }
    {
        let (a, b) = (a.clone(), b.clone());
        bench.peer("ndarray", move || turned(&a, ta).dot(&turned(&b, tb)));
    }
    {
        let (a, b) = (a.clone(), b.clone());
        bench.peer("ndarray-einsum", move || einsum(pattern, &[&*a, &*b]).expect("a valid pattern"));
    }
    {
        let turned = |matrix: &Array2<T>, transposed| {
            let matrix = candle(matrix);
            if transposed { matrix.t().expect("the tensor is a matrix") } else { matrix }
        };
        let (a, b) = (turned(&a, ta), turned(&b, tb));
        bench.peer("candle", move || a.matmul(&b).expect("sizes agree"));
    }
    #[cfg(feature = "burn")]
    {
        let turned = |matrix: &Array2<T>, transposed| {
            let matrix = crate::bench::burn::<2, _, _>(matrix);
            if transposed { matrix.transpose() } else { matrix }
        };
        let (a, b) = (turned(&a, ta), turned(&b, tb));
        bench.peer("burn", move || a.clone().matmul(b.clone()));
    }
    for (name, by) in products::<T>() {
        let (a, b) = (a.clone(), b.clone());
        bench.peer(name, move || product(by, turned(&a, ta), turned(&b, tb), threads));
    }
}

pub fn mm(bench: &mut Bench) {
    square(bench, Square { n: 1024, in_dims, einsum: "ik,kj->ij", transposed: (false, false) });
}

pub fn mm_ta(bench: &mut Bench) {
    square(bench, Square { n: 1024, in_dims: in_dims_ta, einsum: "ki,kj->ij", transposed: (true, false) });
}

pub fn mm_tb(bench: &mut Bench) {
    square(bench, Square { n: 1024, in_dims: in_dims_tb, einsum: "ik,jk->ij", transposed: (false, true) });
}

pub fn mm_f64(bench: &mut Bench) {
    square(bench, Square { n: 512, in_dims: in_dims_f64, einsum: "ik,kj->ij", transposed: (false, false) });
}

fn batched_in_dims(a: &Array3<f32>, b: &Array3<f32>) -> Array3<f32> {
    dims!(n, i, j, k);
    (a.at((n, i, k)) * b.at((n, k, j))).sum(k).order((n, i, j))
}

pub fn bmm(bench: &mut Bench) {
    let (a, b) = (bench.input::<f32, _>("a", (64, 128, 128)), bench.input::<f32, _>("b", (64, 128, 128)));
    let threads = bench.threads;
    {
        let (a, b) = (a.clone(), b.clone());
        bench.peer("typed-dims", move || batched_in_dims(&a, &b));
    }
    {
        let (a, b) = (a.clone(), b.clone());
        bench.peer("ndarray", move || {
            let mut out = Array3::zeros((64, 128, 128));
            let zip = Zip::from(out.outer_iter_mut()).and(a.outer_iter()).and(b.outer_iter());
            let one =
                |mut out: ndarray::ArrayViewMut2<'_, f32>, a: ArrayView2<'_, f32>, b: ArrayView2<'_, f32>| {
                    general_mat_mul(1.0, &a, &b, 0.0, &mut out);
                };
            if threads == 1 {
                zip.for_each(one)
            } else {
                zip.par_for_each(one)
            }
            out
        });
    }
    {
        let (a, b) = (a.clone(), b.clone());
        bench.peer("ndarray-einsum", move || einsum("nik,nkj->nij", &[&*a, &*b]).expect("a valid pattern"));
    }
    {
        let (a, b) = (candle(&a), candle(&b));
        bench.peer("candle", move || a.matmul(&b).expect("sizes agree"));
    }
    #[cfg(feature = "burn")]
    {
        let (a, b) = (crate::bench::burn::<3, _, _>(&a), crate::bench::burn::<3, _, _>(&b));
        bench.peer("burn", move || a.clone().matmul(b.clone()));
    }
    for (name, by) in products() {
        let (a, b) = (a.clone(), b.clone());
        bench.peer(name, move || batched(by, a.view(), b.view(), threads));
    }
}

fn scores_in_dims(query: &Array4<f32>, key: &Array4<f32>) -> Array4<f32> {
    dims!(b, h, q, k, d);
    (query.at((b, q, h, d)) * key.at((b, k, h, d))).sum(d).order((b, h, q, k))
}

pub fn qk(bench: &mut Bench) {
    let q = bench.input::<f32, _>("q", (8, 128, 12, 64));
    let k = bench.input::<f32, _>("k", (8, 128, 12, 64));
    let threads = bench.threads;
    {
        let (q, k) = (q.clone(), k.clone());
        bench.peer("typed-dims", move || scores_in_dims(&q, &k));
    }
    {
        let (q, k) = (q.clone(), k.clone());
        bench.peer("ndarray", move || {
            let mut out = Array4::zeros((8, 12, 128, 128));
            for ((mut out, q), k) in out.outer_iter_mut().zip(q.outer_iter()).zip(k.outer_iter()) {
                let zip = Zip::from(out.outer_iter_mut()).and(q.axis_iter(Axis(1))).and(k.axis_iter(Axis(1)));
                let one = |mut out: ndarray::ArrayViewMut2<'_, f32>,
                           q: ArrayView2<'_, f32>,
                           k: ArrayView2<'_, f32>| {
                    general_mat_mul(1.0, &q, &k.t(), 0.0, &mut out);
                };
                if threads == 1 { zip.for_each(one) } else { zip.par_for_each(one) }
            }
            out
        });
    }
    {
        let (q, k) = (q.clone(), k.clone());
        bench
            .peer("ndarray-einsum", move || einsum("bqhd,bkhd->bhqk", &[&*q, &*k]).expect("a valid pattern"));
    }
    {
        let (q, k) = (candle(&q), candle(&k));
        bench.peer("candle", move || {
            let heads = |x: &candle_core::Tensor| x.transpose(1, 2)?.contiguous();
            heads(&q).and_then(|q| q.matmul(&heads(&k)?.t()?)).expect("sizes agree")
        });
    }
    #[cfg(feature = "burn")]
    {
        let (q, k) = (crate::bench::burn::<4, _, _>(&q), crate::bench::burn::<4, _, _>(&k));
        bench.peer("burn", move || q.clone().swap_dims(1, 2).matmul(k.clone().permute([0, 2, 3, 1])));
    }
    for (name, by) in products() {
        let (q, k) = (q.clone(), k.clone());
        bench.peer(name, move || {
            let mut out = Array4::uninit((8, 12, 128, 128));
            for ((out, q), k) in out.outer_iter_mut().zip(q.outer_iter()).zip(k.outer_iter()) {
                let (q, k) = (q.permuted_axes([1, 0, 2]), k.permuted_axes([1, 2, 0]));
                batched_into(by, q, k, out, threads);
            }
            // SAFETY: each product writes every element of its matrix.
            unsafe { out.assume_init() }
        });
    }
}

fn gram_in_dims(x: &Array4<f32>, y: &Array4<f32>) -> Array3<f32> {
    dims!(b, c, d, h, w);
    (x.at((b, c, h, w)) * y.at((b, d, h, w))).sum((h, w)).order((b, c, d))
}

pub fn gram(bench: &mut Bench) {
    let x = bench.input::<f32, _>("x", (8, 64, 64, 64));
    let threads = bench.threads;
    let flat = std::sync::Arc::new(x.to_shape((8, 64, 4096)).expect("rows are contiguous").into_owned());
    {
        let x = x.clone();
        bench.peer("typed-dims", move || gram_in_dims(&x, &x));
    }
    {
        let flat = flat.clone();
        bench.peer("ndarray", move || {
            let mut out = Array3::zeros((8, 64, 64));
            let zip = Zip::from(out.outer_iter_mut()).and(flat.outer_iter());
            let one = |mut out: ndarray::ArrayViewMut2<'_, f32>, x: ArrayView2<'_, f32>| {
                general_mat_mul(1.0, &x, &x.t(), 0.0, &mut out);
            };
            if threads == 1 {
                zip.for_each(one)
            } else {
                zip.par_for_each(one)
            }
            out
        });
    }
    {
        let x = x.clone();
        bench.peer("ndarray-einsum", move || einsum("bchw,bdhw->bcd", &[&*x, &*x]).expect("a valid pattern"));
    }
    {
        let x = candle(&flat);
        bench.peer("candle", move || {
            x.matmul(&x.t().expect("the tensor has two axes or more")).expect("sizes agree")
        });
    }
    #[cfg(feature = "burn")]
    {
        let x = crate::bench::burn::<3, _, _>(&flat);
        bench.peer("burn", move || x.clone().matmul(x.clone().swap_dims(1, 2)));
    }
    for (name, by) in products() {
        let flat = flat.clone();
        bench.peer(name, move || batched(by, flat.view(), flat.view().permuted_axes([0, 2, 1]), threads));
    }
}

fn matvec_in_dims(a: &Array2<f32>, x: &Array1<f32>) -> Array1<f32> {
    dims!(i, j);
    (a.at((i, j)) * x.at(j)).sum(j).order(i)
}

pub fn matvec(bench: &mut Bench) {
    let (a, x) = (bench.input::<f32, _>("a", (4096, 4096)), bench.input::<f32, _>("x", 4096));
    let threads = bench.threads;
    {
        let (a, x) = (a.clone(), x.clone());
        bench.peer("typed-dims", move || matvec_in_dims(&a, &x));
    }
    {
        let (a, x) = (a.clone(), x.clone());
        bench.peer("ndarray", move || a.dot(&*x));
    }
    {
        let (a, x) = (a.clone(), x.clone());
        bench.peer("ndarray-einsum", move || einsum("ij,j->i", &[&*a, &*x]).expect("a valid pattern"));
    }
    {
        let (a, x) = (candle(&a), candle(&x).unsqueeze(1).expect("the tensor is a vector"));
        bench.peer("candle", move || a.matmul(&x).expect("sizes agree"));
    }
    #[cfg(feature = "burn")]
    {
        let (a, x) =
            (crate::bench::burn::<2, _, _>(&a), crate::bench::burn::<1, _, _>(&x).unsqueeze_dim::<2>(1));
        bench.peer("burn", move || a.clone().matmul(x.clone()));
    }
    for (name, by) in products() {
        let (a, x) = (a.clone(), x.clone());
        bench.peer(name, move || product(by, a.view(), x.view().insert_axis(Axis(1)), threads));
    }
    bench.peer("plain loop", move || {
        let rows = a.as_slice().expect("the array is in standard layout");
        let x = x.as_slice().expect("the vector is contiguous");
        let mut out = Array1::zeros(4096);
        let into = out.as_slice_mut().expect("the vector is contiguous");
        plain::each_chunk(threads, into, 64, |at, into| {
            plain::matvec(&rows[at * 64 * 4096..], x, into);
        });
        out
    });
}
