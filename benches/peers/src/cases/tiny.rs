//! Calls that take nanoseconds, where overhead matters more than the arithmetic.

use crate::bench::{Bench, candle};
use crate::gemms::{Product, product, products};
use ndarray::linalg::general_mat_mul;
use ndarray::{ArrayView2, ArrayViewMut2, Zip};
use std::hint::black_box;
use std::mem::MaybeUninit;
use typed_dims::prelude::*;

fn mm_in_dims(a: &Array2<f32>, b: &Array2<f32>) -> Array2<f32> {
    dims!(i, j, k);
    (a.at((i, k)) * b.at((k, j))).sum(k).order((i, j))
}

fn mm_into_in_dims(a: &Array2<f32>, b: &Array2<f32>, out: &mut Array2<f32>) {
    dims!(i, j, k);
    (a.at((i, k)) * b.at((k, j))).sum_into(k, out, (i, j));
}

/// nano_gemm is for tiny sizes only. As with the other crates, nothing is planned in advance.
fn by_nano_gemm(
    a: ArrayView2<'_, f32>,
    b: ArrayView2<'_, f32>,
    mut out: ArrayViewMut2<'_, MaybeUninit<f32>>,
    _: usize,
) {
    assert_eq!(
        (a.nrows(), a.ncols(), b.ncols()),
        (out.nrows(), b.nrows(), out.ncols()),
        "the sizes of the matrices do not fit"
    );
    let (&[ar, ac], &[br, bc]) = (a.strides(), b.strides()) else { unreachable!("matrices have two axes") };
    let &[or, oc] = out.strides() else { unreachable!("matrices have two axes") };
    // SAFETY: the strides are those of matrices with these sizes; `out` is not read, since its
    // factor is 0.
    unsafe {
        nano_gemm::planless::execute_f32(
            a.nrows(),
            b.ncols(),
            a.ncols(),
            out.as_mut_ptr().cast(),
            or,
            oc,
            a.as_ptr(),
            ar,
            ac,
            b.as_ptr(),
            br,
            bc,
            0.0,
            1.0,
            false,
            false,
        );
    }
}

fn crates() -> Vec<(&'static str, Product<f32>)> {
    products().into_iter().chain([("nano-gemm", by_nano_gemm as Product<f32>)]).collect()
}

/// A product with loops of constant length.
fn plain<const N: usize>(a: &Array2<f32>, b: &Array2<f32>, out: &mut [f32]) {
    let rows = |x: &Array2<f32>| x.as_slice().expect("standard layout").as_chunks::<N>().0.as_ptr_range();
    let (a, b) = (rows(a), rows(b));
    // SAFETY: each matrix is `N` rows of `N` elements.
    let (a, b) = unsafe { (std::slice::from_raw_parts(a.start, N), std::slice::from_raw_parts(b.start, N)) };
    let (out, _) = out.as_chunks_mut::<N>();
    for (out, a) in out.iter_mut().zip(a) {
        let mut row = [0.0; N];
        for (&a, b) in a.iter().zip(b) {
            for (sum, &b) in row.iter_mut().zip(b) {
                *sum += a * b;
            }
        }
        *out = row;
    }
}

fn mm<const N: usize>(bench: &mut Bench) {
    let (a, b) = (bench.input::<f32, _>("a", (N, N)), bench.input::<f32, _>("b", (N, N)));
    {
        let (a, b) = (a.clone(), b.clone());
        bench.peer("typed-dims", move || mm_in_dims(black_box(&a), black_box(&b)));
    }
    {
        let (a, b) = (a.clone(), b.clone());
        bench.peer("ndarray", move || black_box(&*a).dot(black_box(&*b)));
    }
    {
        let (a, b) = (candle(&a), candle(&b));
        bench.peer("candle", move || a.matmul(&b).expect("sizes agree"));
    }
    #[cfg(feature = "burn")]
    {
        let (a, b) = (crate::bench::burn::<2, _, _>(&a), crate::bench::burn::<2, _, _>(&b));
        bench.peer("burn", move || a.clone().matmul(b.clone()));
    }
    for (name, by) in crates() {
        let (a, b) = (a.clone(), b.clone());
        bench.peer(name, move || product(by, black_box(&a).view(), black_box(&b).view(), 1));
    }
    bench.peer("plain loop", move || {
        let mut out = Array2::zeros((N, N));
        plain::<N>(black_box(&a), black_box(&b), out.as_slice_mut().expect("standard layout"));
        out
    });
}

fn mm_into<const N: usize>(bench: &mut Bench) {
    let (a, b) = (bench.input::<f32, _>("a", (N, N)), bench.input::<f32, _>("b", (N, N)));
    let out = || Array2::<f32>::zeros((N, N));
    {
        let (a, b) = (a.clone(), b.clone());
        bench.peer_into("typed-dims", out(), move |out| mm_into_in_dims(black_box(&a), black_box(&b), out));
    }
    {
        let (a, b) = (a.clone(), b.clone());
        bench.peer_into("ndarray", out(), move |out| {
            general_mat_mul(1.0, black_box(&*a), black_box(&*b), 0.0, out)
        });
    }
    for (name, by) in crates() {
        let (a, b) = (a.clone(), b.clone());
        bench.peer_into(name, out(), move |out| {
            // SAFETY: memory that may be uninitialized may also be initialized, and the product
            // only writes numbers.
            let out = unsafe { out.raw_view_mut().cast::<MaybeUninit<f32>>().deref_into_view_mut() };
            by(black_box(&a).view(), black_box(&b).view(), out, 1);
        });
    }
    bench.peer_into("plain loop", out(), move |out| {
        plain::<N>(black_box(&a), black_box(&b), out.as_slice_mut().expect("standard layout"));
    });
}

pub fn mm4(bench: &mut Bench) {
    mm::<4>(bench);
}

pub fn mm4_into(bench: &mut Bench) {
    mm_into::<4>(bench);
}

pub fn mm16(bench: &mut Bench) {
    mm::<16>(bench);
}

pub fn mm16_into(bench: &mut Bench) {
    mm_into::<16>(bench);
}

fn add_in_dims(a: &Array1<f32>, b: &Array1<f32>) -> Array1<f32> {
    dims!(i);
    (a.at(i) + b.at(i)).order(i)
}

fn add_into_in_dims(a: &Array1<f32>, b: &Array1<f32>, out: &mut Array1<f32>) {
    dims!(i);
    (a.at(i) + b.at(i)).order_into(out, i);
}

pub fn add(bench: &mut Bench) {
    let (a, b) = (bench.input::<f32, _>("a", 4), bench.input::<f32, _>("b", 4));
    {
        let (a, b) = (a.clone(), b.clone());
        bench.peer("typed-dims", move || add_in_dims(black_box(&a), black_box(&b)));
    }
    {
        let (a, b) = (candle(&a), candle(&b));
        bench.peer("candle", move || (&a + &b).expect("sizes agree"));
    }
    #[cfg(feature = "burn")]
    {
        let (a, b) = (crate::bench::burn::<1, _, _>(&a), crate::bench::burn::<1, _, _>(&b));
        bench.peer("burn", move || a.clone() + b.clone());
    }
    bench.peer("ndarray", move || black_box(&*a) + black_box(&*b));
}

pub fn add_into(bench: &mut Bench) {
    let (a, b) = (bench.input::<f32, _>("a", 4), bench.input::<f32, _>("b", 4));
    {
        let (a, b) = (a.clone(), b.clone());
        bench.peer_into("typed-dims", Array1::zeros(4), move |out| {
            add_into_in_dims(black_box(&a), black_box(&b), out);
        });
    }
    bench.peer_into("ndarray", Array1::<f32>::zeros(4), move |out| {
        Zip::from(out).and(black_box(&*a)).and(black_box(&*b)).for_each(|out, a, b| *out = a + b);
    });
}

fn order_in_dims(x: &Array3<f32>) -> Array3<f32> {
    dims!(a, b, c);
    x.at((a, b, c)).order((c, a, b))
}

fn order_into_in_dims(x: &Array3<f32>, out: &mut Array3<f32>) {
    dims!(a, b, c);
    x.at((a, b, c)).order_into(out, (c, a, b));
}

pub fn order(bench: &mut Bench) {
    let x = bench.input::<f32, _>("x", (2, 3, 4));
    {
        let x = x.clone();
        bench.peer("typed-dims", move || order_in_dims(black_box(&x)));
    }
    {
        let x = candle(&x);
        bench.peer("candle", move || x.permute((2, 0, 1)).and_then(|x| x.contiguous()).expect("three axes"));
    }
    #[cfg(feature = "burn")]
    {
        let x = crate::bench::burn::<3, _, _>(&x);
        bench.peer("burn", move || x.clone().permute([2, 0, 1]).reshape([24]));
    }
    bench.peer("ndarray", move || {
        black_box(&*x).view().permuted_axes([2, 0, 1]).as_standard_layout().into_owned()
    });
}

pub fn order_into(bench: &mut Bench) {
    let x = bench.input::<f32, _>("x", (2, 3, 4));
    {
        let x = x.clone();
        bench.peer_into("typed-dims", Array3::zeros((4, 2, 3)), move |out| {
            order_into_in_dims(black_box(&x), out)
        });
    }
    bench.peer_into("ndarray", Array3::<f32>::zeros((4, 2, 3)), move |out| {
        out.assign(&black_box(&*x).view().permuted_axes([2, 0, 1]));
    });
}
