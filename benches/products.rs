//! Large matrix products with dims, compared with direct calls of `matrixmultiply`, and tiny
//! products, where overhead matters.

use criterion::{Criterion, criterion_group};
use rayon::{ThreadPool, ThreadPoolBuilder};
use std::hint::black_box;
use std::time::{Duration, Instant};
use typed_dims::ndarray::Array;
use typed_dims::prelude::*;

fn mm(a: &Array2<f32>, b: &Array2<f32>) -> Array2<f32> {
    dims!(i, j, k);
    (a.at((i, k)) * b.at((k, j))).sum(k).order((i, j))
}

fn mm_into(a: &Array2<f32>, b: &Array2<f32>, out: &mut Array2<f32>) {
    dims!(i, j, k);
    (a.at((i, k)) * b.at((k, j))).sum_into(k, out, (i, j));
}

/// `out = a b` for square matrices in standard layout.
fn sgemm(a: &Array2<f32>, b: &Array2<f32>, out: *mut f32) {
    let n = a.nrows();
    let row = n as isize;
    // SAFETY: the three matrices have `n` x `n` elements in standard layout; `out` is not aliased.
    unsafe {
        matrixmultiply::sgemm(n, n, n, 1.0, a.as_ptr(), row, 1, b.as_ptr(), row, 1, 0.0, out, row, 1);
    }
}

fn direct(a: &Array2<f32>, b: &Array2<f32>) -> Array2<f32> {
    let mut out = Array2::uninit(a.raw_dim());
    sgemm(a, b, out.as_mut_ptr().cast());
    // SAFETY: with `beta` 0 every element was written.
    unsafe { out.assume_init() }
}

fn matrix(n: usize, seed: usize) -> Array2<f32> {
    Array::from_shape_fn((n, n), |(i, j)| ((i * 31 + j * 17 + seed) % 23) as f32 / 23.0 - 0.5)
}

fn tiny(criterion: &mut Criterion) {
    let (a, b) = (matrix(4, 0), matrix(4, 1));
    let mut out = Array2::zeros((4, 4));
    let mut group = criterion.benchmark_group("4 x 4 f32");
    group.bench_function("order", |bencher| bencher.iter(|| mm(black_box(&a), black_box(&b))));
    group.bench_function("sum_into", |bencher| {
        bencher.iter(|| mm_into(black_box(&a), black_box(&b), black_box(&mut out)))
    });
    group.bench_function("ndarray dot", |bencher| bencher.iter(|| black_box(&a).dot(black_box(&b))));
    group.finish();
}

fn time<T>(run: impl FnOnce() -> T) -> Duration {
    let start = Instant::now();
    black_box(run());
    start.elapsed()
}

/// Times large products alternately with dims and with `matrixmultiply`, so that noise affects both
/// equally. Dims use all threads of the pool; `matrixmultiply` uses one.
fn large(pool: &ThreadPool) {
    const ROUNDS: usize = 25;
    for n in [256, 1024] {
        let (a, b) = (matrix(n, 0), matrix(n, 1));
        let mut times = [const { Vec::new() }; 2];
        for _ in 0..ROUNDS {
            times[0].push(pool.install(|| time(|| mm(black_box(&a), black_box(&b)))));
            times[1].push(pool.install(|| time(|| direct(black_box(&a), black_box(&b)))));
        }
        let [dims, direct] = times.map(|mut times| {
            times.sort_unstable();
            times[ROUNDS / 2].as_secs_f64()
        });
        let gflops = |seconds: f64| 2e-9 * (n as f64).powi(3) / seconds;
        println!(
            "{n} x {n} f32: dims (threads: {}) {:.3} ms ({:.1} GFLOP/s), \
             matrixmultiply {:.3} ms ({:.1} GFLOP/s): dims reach {:.1} % of its speed",
            pool.current_num_threads(),
            1e3 * dims,
            gflops(dims),
            1e3 * direct,
            gflops(direct),
            100.0 * direct / dims,
        );
    }
}

criterion_group!(benches, tiny);

fn main() {
    for threads in [1, 0] {
        // 0 lets rayon choose.
        large(&ThreadPoolBuilder::new().num_threads(threads).build().expect("threads can be started"));
    }
    benches();
    Criterion::default().configure_from_args().final_summary();
}
