//! Compares the decoder of `examples/gpt` with the same decoder in candle and burn: training steps,
//! and sampling with a key-value cache. All decoders have the same weights and texts.

#[cfg(feature = "burn")]
mod in_burn;
mod in_candle;
mod in_dims;
mod weights;

use crate::report::table;
use clap::Args;
use gpt::model::{Gpt, Sizes};
use rand::seq::SliceRandom;
use std::error::Error;
use std::hint::black_box;
use std::time::Instant;

const SIZES: Sizes = Sizes { chars: 63, layers: 6, heads: 8, width: 256, inner: 688 };
/// Features of a head.
const FEAT: usize = SIZES.width / SIZES.heads;
/// Characters of a text.
const CONTEXT: usize = 256;
/// Texts of a training step.
const TEXTS: usize = 8;
/// How many texts are sampled together.
const SAMPLES: [usize; 2] = [1, 4];
/// The first character of a sample.
const FIRST: u32 = 1;
/// Scores are divided by this before a character is drawn.
const TEMPERATURE: f32 = 0.8;
/// Added to the mean squares in RMS norms.
const EPSILON: f64 = 1e-5;
/// The base of RoPE: per character, plane `i` of `n` turns by `BASE^(-i / n)` radians.
const BASE: f64 = 10_000.0;
/// The learning rate, the decay of both moments, the term that keeps divisors from 0, and the
/// weight decay.
const RATE: f64 = 1e-4;
const BETAS: (f64, f64) = (0.9, 0.99);
const ADAM_EPSILON: f64 = 1e-8;
const DECAY: f64 = 0.1;

/// Allowed relative difference between a loss and ours, before training and after some steps.
const AT_FIRST: f32 = 1e-4;
const AFTER_STEPS: f32 = 1e-3;
const STEPS: usize = 3;
/// Allowed difference between a score and ours, relative to the largest score.
const OF_SCORES: f32 = 1e-3;

/// Measures the decoders.
#[derive(Args)]
pub struct Options {
    /// The number of times that each decoder trains and samples.
    #[arg(long, default_value_t = 10)]
    rounds: usize,
    /// The number of threads for each library.
    #[arg(long, short, default_value_t = 1)]
    pub threads: usize,
    /// Only trains.
    #[arg(long, conflicts_with = "sample")]
    train: bool,
    /// Only samples.
    #[arg(long)]
    sample: bool,
}

/// A decoder in one of the libraries, with its optimizer and training texts.
trait Decoder {
    fn name(&self) -> &'static str;

    /// The mean cross-entropy of the next characters in the texts.
    fn loss(&self) -> f32;

    /// A step of AdamW. Returns the loss before it.
    fn step(&mut self) -> f32;

    /// Reads the texts character by character with the cache, and returns the scores of the next
    /// characters, ordered by position, text and candidate.
    fn scores(&self, texts: &[Vec<u32>]) -> Vec<f32>;

    /// Samples this many texts, starting with one character, until the context is full. Calls
    /// `drawn` after each character.
    fn sample(&self, texts: usize, drawn: &mut dyn FnMut());
}

/// The characters of the texts, shifted by `shift`.
fn texts(shift: usize) -> Vec<Vec<u32>> {
    let id = |b, t| ((31 * (b * CONTEXT + t + shift)) % 61 + b % 2) as u32;
    (0..TEXTS).map(|b| (0..CONTEXT).map(|t| id(b, t)).collect()).collect()
}

pub fn run(options: &Options) -> Result<(), Box<dyn Error>> {
    let gpt = Gpt::random(SIZES, 1);
    let weights = weights::Weights::from(&gpt);
    let mut decoders: Vec<Box<dyn Decoder>> =
        vec![Box::new(in_dims::Ours::new(gpt)), Box::new(in_candle::Peer::new(&weights)?)];
    #[cfg(feature = "burn")]
    decoders.push(Box::new(in_burn::Peer::new(&weights)));
    agree(&mut decoders)?;
    let mut table = table(
        &[
            "",
            "library",
            "least, ms",
            "median, ms",
            "characters/s",
            "ours / theirs",
            "first 16, ms",
            "last 16, ms",
        ],
        &[2, 3, 4, 5, 6, 7],
    );
    if !options.train {
        for texts in SAMPLES {
            let times = sample(&decoders, texts, options.rounds);
            add_rows(&mut table, &format!("a character of {texts} text(s)"), texts, &decoders, &times);
        }
    }
    if !options.sample {
        let times = train(&mut decoders, options.rounds);
        add_rows(&mut table, "loss, gradient and AdamW", TEXTS * CONTEXT, &decoders, &times);
    }
    println!("{table}");
    Ok(())
}

/// Compares each decoder with ours, which is the first: losses before training, scores with the
/// cache, and losses after some steps.
fn agree(decoders: &mut [Box<dyn Decoder>]) -> Result<(), String> {
    let close = |what: &str, name: &str, found: f32, expected: f32, most: f32| {
        let error = (found - expected).abs() / expected.abs();
        eprintln!("{name}: {what} is {found}; the relative difference from ours is {error:.1e}");
        if error <= most { Ok(()) } else { Err(format!("{name}: {what} is {found} instead of {expected}")) }
    };
    let first: Vec<f32> = decoders.iter().map(|decoder| decoder.loss()).collect();
    for (decoder, &loss) in decoders.iter().zip(&first) {
        close("the first loss", decoder.name(), loss, first[0], AT_FIRST)?;
    }
    for count in SAMPLES {
        let texts = &texts(0)[..count];
        let expected = decoders[0].scores(texts);
        let scale = expected.iter().fold(0.0_f32, |most, score| most.max(score.abs()));
        for decoder in &decoders[1..] {
            let (name, found) = (decoder.name(), decoder.scores(texts));
            if found.len() != expected.len() {
                return Err(format!("{name}: {} scores instead of {}", found.len(), expected.len()));
            }
            let errors = found.iter().zip(&expected).map(|(found, expected)| (found - expected).abs());
            // Keeps NaN, which `f32::max` would drop.
            let greatest = |most: f32, error: f32| if most.is_nan() || error <= most { most } else { error };
            let error = errors.fold(0.0, greatest) / scale;
            eprintln!(
                "{name}: scores of {count} text(s) differ from ours by {error:.1e} of the largest score"
            );
            if error.is_nan() || error > OF_SCORES {
                return Err(format!(
                    "{name}: scores of {count} text(s) differ from ours by {error} of the largest score"
                ));
            }
        }
    }
    let mut last = Vec::new();
    for decoder in decoders.iter_mut() {
        (0..STEPS).for_each(|_| {
            decoder.step();
        });
        last.push(decoder.loss());
    }
    for (decoder, &loss) in decoders.iter().zip(&last) {
        close(&format!("the loss after {STEPS} steps"), decoder.name(), loss, last[0], AFTER_STEPS)?;
    }
    Ok(())
}

/// Seconds of a decoder in each round: one number for each position of a text, or one for a
/// training step.
type Rounds = Vec<Vec<f64>>;

/// Runs each decoder once per round, in random order.
fn in_turns(count: usize, rounds: usize, mut turn: impl FnMut(usize) -> Vec<f64>) -> Vec<Rounds> {
    let mut order: Vec<usize> = (0..count).collect();
    let mut times = vec![Vec::new(); count];
    for _ in 0..rounds {
        order.shuffle(&mut rand::rng());
        for &at in &order {
            times[at].push(turn(at));
        }
    }
    times
}

fn train(decoders: &mut [Box<dyn Decoder>], rounds: usize) -> Vec<Rounds> {
    in_turns(decoders.len(), rounds, |at| {
        let start = Instant::now();
        black_box(decoders[at].step());
        vec![start.elapsed().as_secs_f64()]
    })
}

fn sample(decoders: &[Box<dyn Decoder>], texts: usize, rounds: usize) -> Vec<Rounds> {
    in_turns(decoders.len(), rounds, |at| {
        let mut places = Vec::with_capacity(CONTEXT);
        let mut start = Instant::now();
        decoders[at].sample(texts, &mut || {
            let now = Instant::now();
            places.push((now - start).as_secs_f64());
            start = now;
        });
        places
    })
}

/// One row for each decoder: the shortest time at each position, averaged over positions, and the
/// median round.
fn add_rows(
    table: &mut comfy_table::Table,
    part: &str,
    characters: usize,
    decoders: &[Box<dyn Decoder>],
    times: &[Rounds],
) {
    let mean = |places: &[f64]| places.iter().sum::<f64>() / places.len() as f64;
    let least = |rounds: &Rounds| -> Vec<f64> {
        let of_place =
            |place| rounds.iter().map(|round: &Vec<f64>| round[place]).fold(f64::INFINITY, f64::min);
        (0..rounds[0].len()).map(of_place).collect()
    };
    let milliseconds = |seconds: f64| format!("{:.3}", 1e3 * seconds);
    let ours = mean(&least(&times[0]));
    for (decoder, rounds) in decoders.iter().zip(times) {
        let places = least(rounds);
        let time = mean(&places);
        let mut means: Vec<f64> = rounds.iter().map(|round| mean(round)).collect();
        means.sort_unstable_by(f64::total_cmp);
        let ends = if places.len() < 32 {
            ["-".into(), "-".into()]
        } else {
            [&places[..16], &places[places.len() - 16..]].map(|part| milliseconds(mean(part)))
        };
        let [first, last] = ends;
        table.add_row([
            part.into(),
            decoder.name().into(),
            milliseconds(time),
            milliseconds(means[means.len() / 2]),
            format!("{:.0}", characters as f64 / time),
            format!("{:.2}", ours / time),
            first,
            last,
        ]);
    }
}
