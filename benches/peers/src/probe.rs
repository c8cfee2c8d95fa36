//! What the machine can do at most: multiplications with addition, and bytes from and to memory.

use serde::{Deserialize, Serialize};
use std::hint::black_box;
use std::time::Instant;

/// The limits with a number of threads.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Limits {
    pub threads: usize,
    /// Additions and multiplications per second.
    pub f32_flops: f64,
    pub f64_flops: f64,
    /// Working sets in bytes, and the bytes per second that go through memory or cache with each.
    pub bandwidth: Vec<(usize, f64)>,
}

impl Limits {
    /// Measures them.
    pub fn probe(threads: usize) -> Limits {
        let bandwidth = [1 << 20, 4 << 20, 16 << 20, 64 << 20, 256 << 20]
            .into_iter()
            .map(|bytes| (bytes, bandwidth(bytes, threads)))
            .collect();
        Limits {
            threads,
            f32_flops: best(threads, 40, |_| fma_f32()),
            f64_flops: best(threads, 40, |_| fma_f64()),
            bandwidth,
        }
    }

    /// The least time for so much arithmetic in f32 or f64, and for so many bytes.
    pub fn seconds(&self, flops: f64, bytes: f64, double: bool) -> (f64, Bound) {
        let arithmetic = flops / if double { self.f64_flops } else { self.f32_flops };
        // The bandwidth of the largest working set that was probed and is not larger, in logarithmic interpolation.
        let above = self.bandwidth.iter().position(|&(set, _)| set as f64 >= bytes);
        let rate = match above {
            Some(0) => self.bandwidth[0].1,
            None => self.bandwidth[self.bandwidth.len() - 1].1,
            Some(at) => {
                let ((low, slow), (high, fast)) = (self.bandwidth[at - 1], self.bandwidth[at]);
                let share = (bytes / low as f64).ln() / (high as f64 / low as f64).ln();
                slow + share * (fast - slow)
            }
        };
        let memory = bytes / rate;
        if arithmetic > memory { (arithmetic, Bound::Arithmetic) } else { (memory, Bound::Memory) }
    }
}

/// Which limit is met first.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Bound {
    Arithmetic,
    Memory,
}

/// The best rate of some rounds, in each of which all threads do `work`, which returns how much it did.
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

/// Chains that do not wait for each other, and how long they are.
const CHAINS: usize = 12;
const STEPS: usize = 100_000;

/// Chains of multiplications with addition in registers; a function returns how many operations it did.
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
                    // SAFETY: the machine has what the function is compiled for.
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
                    // Where it is one instruction; elsewhere `mul_add` is a slow function.
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

/// Bytes per second over a working set: the best of reading it, and of copying one half to the other, in which both halves count.
fn bandwidth(bytes: usize, threads: usize) -> f64 {
    let len = bytes / threads / size_of::<f32>();
    let sets: Vec<std::sync::Mutex<Vec<f32>>> = (0..threads).map(|_| vec![1.0; len].into()).collect();
    let passes = ((64 << 20) / bytes).max(1);
    let lock = |at: usize| sets[at].try_lock().expect("each thread has a set of its own");
    let reading = best(threads, 8, |at| {
        let set = lock(at);
        (0..passes).for_each(|_| {
            black_box(read(black_box(&set)));
        });
        (passes * set.len() * size_of::<f32>()) as f64
    });
    let copying = best(threads, 8, |at| {
        let mut set = lock(at);
        (0..passes).for_each(|_| {
            let (to, from) = set.split_at_mut(len / 2);
            to.copy_from_slice(&black_box(from)[..len / 2]);
            black_box(to);
        });
        (passes * set.len() * size_of::<f32>()) as f64
    });
    reading.max(copying)
}
