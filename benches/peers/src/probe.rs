//! Measures the limits of the machine: multiply-adds, and memory traffic.

use crate::bench::Peer;
use crate::rotation::Turn;
use serde::{Deserialize, Serialize};
use std::hint::black_box;
use std::rc::Rc;
use std::sync::Mutex;
use std::time::Instant;

/// The limits of arithmetic with `threads` threads.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Limits {
    pub threads: usize,
    /// Additions and multiplications per second.
    pub f32_flops: f64,
    pub f64_flops: f64,
}

impl Limits {
    pub fn probe(threads: usize) -> Limits {
        Limits {
            threads,
            f32_flops: best(threads, ROUNDS, |_| fma_f32()),
            f64_flops: best(threads, ROUNDS, |_| fma_f64()),
        }
    }

    /// The least time for this much arithmetic in f32 or f64.
    pub fn seconds(&self, flops: f64, double: bool) -> f64 {
        flops / if double { self.f64_flops } else { self.f32_flops }
    }
}

/// Which limit determines the least time of a case.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Bound {
    Arithmetic,
    Memory,
}

/// Rounds of arithmetic. Each is short, so in some of them each thread has a CPU the whole time.
const ROUNDS: usize = 800;

/// The best rate over some rounds. In each round, all threads call `work`, which returns how much
/// it did.
fn best(threads: usize, rounds: usize, work: impl Fn(usize) -> f64 + Sync) -> f64 {
    let round = || {
        let start = Instant::now();
        let done = if threads == 1 {
            work(0)
        } else {
            rayon::broadcast(|context| work(context.index())).iter().sum()
        };
        done / start.elapsed().as_secs_f64()
    };
    (0..rounds).map(|_| round()).fold(0.0, f64::max)
}

/// The number of independent chains, and their length.
const CHAINS: usize = 12;
const STEPS: usize = 100_000;

/// Chains of multiply-adds in registers. Each function returns the number of operations.
#[cfg(target_arch = "x86_64")]
mod x86 {
    use super::{CHAINS, STEPS};
    use std::arch::x86_64::*;
    use std::hint::black_box;

    macro_rules! fma {
        ($($name:ident $feature:literal $lanes:literal $set:ident $fma:ident;)*) => {$(
            #[target_feature(enable = $feature)]
            pub fn $name() -> f64 {
                let (factor, term) = ($set(black_box(0.999)), $set(black_box(0.001)));
                let mut sums = [factor; CHAINS];
                for _ in 0..STEPS {
                    for sum in &mut sums {
                        *sum = $fma(*sum, factor, term);
                    }
                }
                black_box(sums);
                (2 * $lanes * CHAINS * STEPS) as f64
            }
        )*};
    }

    fma! {
        f32_avx512 "avx512f" 16 _mm512_set1_ps _mm512_fmadd_ps;
        f64_avx512 "avx512f" 8 _mm512_set1_pd _mm512_fmadd_pd;
        f32_fma "avx,fma" 8 _mm256_set1_ps _mm256_fmadd_ps;
        f64_fma "avx,fma" 4 _mm256_set1_pd _mm256_fmadd_pd;
    }
}

macro_rules! fma {
    ($name:ident $t:ty, $avx512:ident $fma:ident) => {
        fn $name() -> f64 {
            #[cfg(target_arch = "x86_64")]
            {
                if is_x86_feature_detected!("avx512f") {
                    // SAFETY: the machine has the features that the function is compiled for.
                    return unsafe { x86::$avx512() };
                }
                if is_x86_feature_detected!("avx") && is_x86_feature_detected!("fma") {
                    // SAFETY: as above.
                    return unsafe { x86::$fma() };
                }
            }
            const LANES: usize = 16 / size_of::<$t>();
            let (factor, term): ($t, $t) = (black_box(0.999), black_box(0.001));
            let mut sums = [[factor; LANES]; CHAINS];
            for _ in 0..STEPS {
                for lane in sums.as_flattened_mut() {
                    // One instruction on aarch64. Elsewhere, `mul_add` may call a slow function.
                    *lane = if cfg!(target_arch = "aarch64") {
                        lane.mul_add(factor, term)
                    } else {
                        *lane * factor + term
                    };
                }
            }
            black_box(sums);
            (2 * LANES * CHAINS * STEPS) as f64
        }
    };
}

fma!(fma_f32 f32, f32_avx512 f32_fma);
fma!(fma_f64 f64, f64_avx512 f64_fma);

#[multiversion::multiversion(targets("x86_64+avx512f", "x86_64+avx2", "aarch64+neon"))]
fn read(from: &[f32]) -> f32 {
    let mut sums = [0.0f32; 128];
    let (blocks, _) = from.as_chunks::<128>();
    for block in blocks {
        for (sum, element) in sums.iter_mut().zip(block) {
            *sum += element;
        }
    }
    sums.iter().sum()
}

#[multiversion::multiversion(targets("x86_64+avx512f", "x86_64+avx2", "aarch64+neon"))]
fn copy(from: &[f32], to: &mut [f32]) {
    for (to, &from) in to.iter_mut().zip(from) {
        *to = from;
    }
}

#[multiversion::multiversion(targets("x86_64+avx512f", "x86_64+avx2", "aarch64+neon"))]
fn fill(to: &mut [f32], value: f32) {
    for to in to {
        *to = value;
    }
}

/// Reads and writes as many bytes as a case, sequentially, in existing memory. Copies the smaller
/// of the two amounts, and reads or fills the rest. Each thread has its part.
struct Traffic {
    parts: Vec<Mutex<(Vec<f32>, Vec<f32>)>>,
}

impl Traffic {
    fn new(threads: usize, read: f64, written: f64) -> Traffic {
        let floats = |bytes: f64| vec![1.0; bytes as usize / threads / size_of::<f32>()];
        Traffic { parts: (0..threads).map(|_| Mutex::new((floats(read), floats(written)))).collect() }
    }

    fn pass(&self, copy: Copy) {
        let pass = |thread: usize| {
            let mut part = self.parts[thread].try_lock().expect("each thread has a part of its own");
            let (from, to) = &mut *part;
            let both = from.len().min(to.len());
            copy(black_box(&from[..both]), &mut to[..both]);
            black_box(read(&from[both..]));
            fill(&mut to[both..], black_box(1.0));
            black_box(to);
        };
        if self.parts.len() == 1 { pass(0) } else { _ = rayon::broadcast(|context| pass(context.index())) }
    }
}

type Copy = fn(&[f32], &mut [f32]);

/// Two peers for the memory traffic of a case, which take turns with the other peers: one copies
/// with the C library, and one with a loop. Each call uses the next of `copies` sets of arrays.
pub fn memory(threads: usize, read: f64, written: f64, copies: usize, turn: &Turn) -> [Peer; 2] {
    let traffic: Rc<[Traffic]> = (0..copies).map(|_| Traffic::new(threads, read, written)).collect();
    let ways: [Copy; 2] = [|from, to| to.copy_from_slice(from), copy];
    ways.map(|copy| {
        let traffic = traffic.clone();
        let turn = turn.clone();
        Peer {
            name: "memory",
            time: Box::new(move |calls| {
                let start = Instant::now();
                (0..calls).for_each(|_| traffic[turn.next(copies)].pass(copy));
                start.elapsed()
            }),
            result: Box::new(Vec::new),
        }
    })
}
