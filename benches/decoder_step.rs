//! A decoder step: one or a few rows of activations times a weight matrix of a layer. Memory
//! bandwidth limits its speed.
//!
//! Prints the bandwidth of each product as a share of the bandwidth of a plain sum over the same
//! weights. The products and the sum take turns, and the shortest time of each counts. The two
//! kinds of products and the sum read separate copies of the weights. Each "cached" call reads the
//! same layer, which may stay in the last-level cache; each "memory" call reads the next layer.
//!
//! `cargo bench --bench decoder_step -- [rounds]`

#[path = "support/bandwidth.rs"]
mod bandwidth;

use bandwidth::sum;
use rayon::prelude::*;
use rayon::{ThreadPool, ThreadPoolBuilder};
use std::hint::black_box;
use std::time::Instant;
use typed_dims::prelude::*;

dims! {
    struct Batch;
    struct Model;
    struct Ffn;
}

const MODEL: usize = 768;
const FFN: usize = 6826;
/// 16 layers of 20 MiB exceed most last-level caches.
const LAYERS: usize = 16;

type Activations = Tensor<f32, (Batch, Model)>;

/// A product that sums along the outer axis of the weights.
fn across(x: &Activations, w: &Tensor<f32, (Model, Ffn)>) -> Tensor<f32, (Batch, Ffn)> {
    (x * w).sum(Model)
}

/// A product that sums along the inner axis of the weights, as in PyTorch's `Linear` layers.
fn along(x: &Activations, w: &Tensor<f32, (Ffn, Model)>) -> Tensor<f32, (Batch, Ffn)> {
    (x * w).sum(Model)
}

/// The bandwidth probe: the sum of all weights, split among the threads.
fn read(weights: &[f32], pool: &ThreadPool) -> f32 {
    let threads = pool.current_num_threads();
    if threads == 1 {
        return sum(weights);
    }
    pool.install(|| weights.par_chunks(weights.len().div_ceil(threads)).map(sum).sum())
}

fn seconds<T>(run: impl FnOnce() -> T) -> f64 {
    let start = Instant::now();
    black_box(run());
    start.elapsed().as_secs_f64()
}

fn main() {
    let rounds = std::env::args().skip(1).find_map(|argument| argument.parse().ok()).unwrap_or(200);
    let element = |at: usize| (at * 31 % 61) as f32 / 61.0 - 0.5;
    let weights: Vec<Vec<f32>> =
        (0..LAYERS).map(|layer| (0..MODEL * FFN).map(|at| element(at + layer)).collect()).collect();
    let outer: Vec<Tensor<f32, (Model, Ffn)>> =
        weights.iter().map(|w| from_vec((Model.of(MODEL), Ffn.of(FFN)), w.clone())).collect();
    let inner: Vec<Tensor<f32, (Ffn, Model)>> =
        weights.iter().map(|w| from_vec((Ffn.of(FFN), Model.of(MODEL)), w.clone())).collect();
    let activations = [1, 2, 4, 8]
        .map(|batch| from_vec((Batch.of(batch), Model.of(MODEL)), (0..batch * MODEL).map(element).collect()));
    println!("{}", explain(|| across(&activations[2], &outer[0])).1);
    println!("{}", explain(|| along(&activations[2], &inner[0])).1);
    let bytes = (MODEL * FFN * size_of::<f32>()) as f64;
    for threads in [1, 2] {
        let pool = ThreadPoolBuilder::new().num_threads(threads).build().expect("threads can be started");
        for (place, layers) in [("cached", 1), ("memory", LAYERS)] {
            let mut least = [[f64::INFINITY; 2]; 5];
            let mut layer = 0;
            for _ in 0..rounds {
                for (case, least) in least.iter_mut().enumerate() {
                    for (at, least) in least.iter_mut().enumerate() {
                        layer = (layer + 1) % layers;
                        let time = match (activations.get(case), at) {
                            (Some(x), 0) => pool.install(|| seconds(|| across(x, &outer[layer]))),
                            (Some(x), _) => pool.install(|| seconds(|| along(x, &inner[layer]))),
                            (None, 0) => seconds(|| read(&weights[layer], &pool)),
                            (None, _) => seconds(|| read(&weights[layer], &pool)),
                        };
                        *least = least.min(time);
                    }
                }
            }
            let [probe, _] = least[4];
            println!(
                "threads: {threads}, {place}: the sum {:.3} ms, {:.1} GB/s",
                1e3 * probe,
                1e-9 * bytes / probe
            );
            for (x, least) in activations.iter().zip(least) {
                for (name, time) in ["outer", "inner"].into_iter().zip(least) {
                    println!(
                        "  {} row(s), sum along the {name} axis: {:.3} ms, {:.1} GB/s, {:.0} % of the bandwidth",
                        x.size(Batch),
                        1e3 * time,
                        1e-9 * bytes / time,
                        100.0 * probe / time,
                    );
                }
            }
        }
    }
}
