//! Sums that are not products.

use super::elementwise::fill;
use crate::bench::{Bench, candle};
use crate::plain;
use ndarray::{Axis, Zip};
use rayon::prelude::*;
use typed_dims::prelude::*;

fn l1_in_dims(a: &Array2<f32>, b: &Array2<f32>) -> Array2<f32> {
    dims!(i, j, d);
    (a.at((i, d)) - b.at((j, d))).abs().sum(d).order((i, j))
}

pub fn l1_distances(bench: &mut Bench) {
    let (a, b) = (bench.input::<f32, _>("a", (512, 64)), bench.input::<f32, _>("b", (512, 64)));
    let threads = bench.threads;
    {
        let (a, b) = (a.clone(), b.clone());
        bench.peer("typed-dims", move || l1_in_dims(&a, &b));
    }
    {
        let (a, b) = (a.clone(), b.clone());
        bench.peer("ndarray", move || {
            Array2::from_shape_fn((512, 512), |(i, j)| {
                Zip::from(a.row(i)).and(b.row(j)).fold(0.0, |sum: f32, a, b| sum + (a - b).abs())
            })
        });
    }
    {
        let (a, b) = (candle(&a).unsqueeze(1).expect("a matrix"), candle(&b).unsqueeze(0).expect("a matrix"));
        bench
            .peer("candle", move || a.broadcast_sub(&b).and_then(|d| d.abs()?.sum(2)).expect("shapes agree"));
    }
    #[cfg(feature = "burn")]
    {
        let a = crate::bench::burn::<2, _, _>(&a).unsqueeze_dim::<3>(1);
        let b = crate::bench::burn::<2, _, _>(&b).unsqueeze_dim::<3>(0);
        bench.peer("burn", move || (a.clone() - b.clone()).abs().sum_dim(2));
    }
    bench.peer("plain loop", move || {
        let turned = b.t().as_standard_layout().into_owned();
        let (a, turned) =
            (a.as_slice().expect("standard layout"), turned.as_slice().expect("standard layout"));
        let mut out = Vec::new();
        let write = |out: &mut [f32]| {
            plain::each_chunk(threads, out, 16 * 512, |at, out| {
                for (out, a) in out.chunks_exact_mut(512).zip(a[at * 16 * 64..].chunks_exact(64)) {
                    plain::l1_row(a, turned, out);
                }
            });
        };
        // SAFETY: the chunks that are written cover all elements.
        unsafe { fill(&mut out, 512 * 512, write) };
        Array2::from_shape_vec((512, 512), out).expect("the sizes fit")
    });
}

fn sum0_in_dims(a: &Array2<f32>) -> Array1<f32> {
    dims!(i, j);
    a.at((i, j)).sum(i).order(j)
}

fn sum1_in_dims(a: &Array2<f32>) -> Array1<f32> {
    dims!(i, j);
    a.at((i, j)).sum(j).order(i)
}

const N: usize = 4096;

fn sum_axis(bench: &mut Bench, axis: usize, in_dims: fn(&Array2<f32>) -> Array1<f32>) {
    let a = bench.input::<f32, _>("a", (N, N));
    let threads = bench.threads;
    {
        let a = a.clone();
        bench.peer("typed-dims", move || in_dims(&a));
    }
    {
        let a = a.clone();
        bench.peer("ndarray", move || a.sum_axis(Axis(axis)));
    }
    {
        let a = candle(&a);
        bench.peer("candle", move || a.sum(axis).expect("`a` is a matrix"));
    }
    #[cfg(feature = "burn")]
    {
        let a = crate::bench::burn::<2, _, _>(&a);
        bench.peer("burn", move || a.clone().sum_dim(axis));
    }
    bench.peer("plain loop", move || {
        let elements = a.as_slice().expect("`a` is in standard layout");
        let mut out = vec![0.0; N];
        if axis == 1 {
            plain::each_chunk(threads, &mut out, 64, |at, out| {
                for (row, out) in elements[at * 64 * N..].chunks_exact(N).zip(out) {
                    *out = plain::sum(row);
                }
            });
        } else {
            let bands: Vec<Vec<f32>> = if threads == 1 {
                vec![band(elements)]
            } else {
                elements.par_chunks(N * N / threads).map(band).collect()
            };
            for band in &bands {
                plain::add_to(band, &mut out);
            }
        }
        Array1::from(out)
    });
}

/// The sum of rows.
fn band(rows: &[f32]) -> Vec<f32> {
    let mut sums = vec![0.0; N];
    rows.chunks_exact(N).for_each(|row| plain::add_to(row, &mut sums));
    sums
}

pub fn sum_axis0(bench: &mut Bench) {
    sum_axis(bench, 0, sum0_in_dims);
}

pub fn sum_axis1(bench: &mut Bench) {
    sum_axis(bench, 1, sum1_in_dims);
}
