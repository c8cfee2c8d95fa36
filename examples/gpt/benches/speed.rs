//! The speed of a decoder of 6 layers, 256 wide, with 8 heads and a context of 256: tokens per
//! second in training steps on 8 texts, and in sampling with a key-value cache.
//!
//! Sampling one token of each text reads all the weights once, so it takes at least as long as
//! reading them. The bench measures this lower bound in the same run, as the time to sum an array
//! as large as the weights, and prints it as a percentage of the sampling time.
//!
//! Run `taskset -c 0 cargo bench -p gpt --bench speed -- [rounds] [train|sample]`.
//! `benches/python/gpt.py` measures the same decoder in PyTorch and JAX.

#[path = "../../../benches/support/bandwidth.rs"]
mod bandwidth;

use gpt::model::{Batch, Gpt, Sizes, Texts, Token};
use gpt::sample::{Options, sample};
use std::hint::black_box;
use std::time::Instant;
use typed_dims::optim::AdamW;
use typed_dims::prelude::*;

/// The feed-forward network is about 8/3 times as wide as the decoder, as in the example's
/// `main.rs`. `chars` is the number of distinct characters in the Bible.
const SIZES: Sizes = Sizes { chars: 63, layers: 6, heads: 8, width: 256, inner: 688 };
const CONTEXT: usize = 256;
const TEXTS: usize = 8;

fn seconds<T>(run: impl FnOnce() -> T) -> f64 {
    let start = Instant::now();
    black_box(run());
    start.elapsed().as_secs_f64()
}

fn texts(shift: usize) -> Texts {
    let id = |(b, t): (usize, usize)| ((31 * (b * CONTEXT + t + shift)) % 61 + b % 2) as u32;
    from_fn((Batch.of(TEXTS), Token.of(CONTEXT)), id)
}

fn train(gpt: &mut Gpt, rounds: usize) {
    let (texts, next) = (texts(0), texts(1));
    let mut optimizer = AdamW::new(1e-4).betas(0.9, 0.99).weight_decay(0.1);
    let [mut loss, mut both, mut all] = [f64::INFINITY; 3];
    for _ in 0..rounds {
        loss = loss.min(seconds(|| gpt.loss(&texts, &next).order(())));
        both = both.min(seconds(|| gpt.gradient(&texts, &next)));
        all = all.min(seconds(|| {
            let (loss, gradient) = gpt.gradient(&texts, &next);
            optimizer.step(gpt, &gradient);
            loss
        }));
    }
    for (part, time) in [("loss", loss), ("loss and gradient", both), ("loss, gradient and AdamW", all)] {
        let rate = (TEXTS * CONTEXT) as f64 / time;
        println!("{part:<28}{:>10.1} ms{rate:>10.0} tokens/s", 1e3 * time);
    }
}

/// Samples, starting from one character, until the context is full. Keeps the shortest time at
/// each position.
fn draw(gpt: &Gpt, texts: usize, rounds: usize, weights: &[f32]) {
    let count = CONTEXT - 1;
    let (mut least, mut probes) = (vec![f64::INFINITY; count], vec![f64::INFINITY; count]);
    for round in 0..rounds {
        let options = Options { count, temperature: 0.8, context: CONTEXT, seed: round as u64 };
        let (mut at, mut start) = (0, Instant::now());
        sample(gpt, &vec![vec![1]; texts], options, |_| {
            let now = Instant::now();
            least[at] = least[at].min((now - start).as_secs_f64());
            (at, start) = (at + 1, now);
        });
        // The sum is measured once for each position, so that its time and the sampling time are
        // minima of the same number of measurements.
        for least in &mut probes {
            *least = least.min(seconds(|| bandwidth::sum(black_box(weights))));
        }
    }
    let [time, probe] = [&least, &probes].map(|least| least.iter().sum::<f64>() / count as f64);
    let part = |part: &[f64]| 1e3 * part.iter().sum::<f64>() / part.len() as f64;
    println!(
        "{:<28}{:>10.3} ms{:>10.0} tokens/s; mean of the first 16 tokens {:.3} ms, of the last 16 {:.3} ms; reading all weights takes {:.3} ms ({:.1} GB/s), {:.0} % of the time",
        format!("token for each of {texts} text(s)"),
        1e3 * time,
        texts as f64 / time,
        part(&least[..16]),
        part(&least[count - 16..]),
        1e3 * probe,
        1e-9 * size_of_val(weights) as f64 / probe,
        100.0 * probe / time,
    );
}

fn main() {
    let words: Vec<String> = std::env::args().skip(1).filter(|word| !word.starts_with("--")).collect();
    let rounds = words.iter().find_map(|word| word.parse().ok()).unwrap_or(10);
    let wanted = |part: &str| !words.iter().any(|word| word.parse::<usize>().is_err() && word != part);
    let mut gpt = Gpt::random(SIZES, 1);
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    println!("{} weights, threads: {threads}, best of {rounds} rounds", gpt.count_elements());
    if wanted("sample") {
        let weights: Vec<f32> = (0..gpt.count_elements()).map(|at| (at % 61) as f32).collect();
        for texts in [1, 4] {
            draw(&gpt, texts, rounds, &weights);
        }
    }
    if wanted("train") {
        train(&mut gpt, rounds);
    }
}
