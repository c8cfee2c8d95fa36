//! Training and testing.

use crate::data::{varied, with_margin};
use crate::model::Network;
use crate::report::Line;
use digits::{Digits, Example, Labels};
use rand::SeedableRng;
use rand::rngs::StdRng;
use rand::seq::SliceRandom;
use typed_dims::optim::{Optimizer, Schedule, Sgd};
use typed_dims::prelude::*;

/// Images in a mini-batch.
const BATCH: usize = 32;
/// The highest rate; it falls by half a cosine.
const RATE: f64 = 0.1;
const MOMENTUM: f64 = 0.9;
const DECAY: f64 = 5e-4;

/// The options on the command line.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Where all random numbers come from.
    pub seed: u64,
    /// How often each image is shown.
    pub epochs: usize,
    /// Features at each place of an image.
    pub channels: usize,
    /// Residual blocks.
    pub blocks: usize,
}

/// Trains on one random half of the images, and tests on the other. `progress` hears the measurements of each epoch.
pub fn run(digits: &Digits, options: Options, mut progress: impl FnMut(Line)) -> (Network, f64) {
    let Options { seed, epochs, channels, blocks } = options;
    let mut rng = StdRng::seed_from_u64(seed);
    let (mut training, test) = digits.halves(&mut rng);
    let mut network = Network::random(channels, blocks, seed);
    let steps = epochs * training.len().div_ceil(BATCH);
    let rate = Schedule::cosine(RATE, steps as u64);
    let mut descent = Sgd::new(rate).momentum(MOMENTUM).nesterov().weight_decay(DECAY);
    let mut accuracy = share_read(&network, digits, &test);
    for epoch in 1..=epochs {
        training.shuffle(&mut rng);
        let mut total = 0.0;
        for rows in training.chunks(BATCH) {
            let (images, labels) = digits.batch(rows);
            let (loss, gradient) = network.gradient(&varied(&with_margin(&images), &mut rng), &labels);
            descent.step(&mut network, &gradient);
            total += loss * rows.len() as f32;
        }
        accuracy = share_read(&network, digits, &test);
        progress(Line { epoch, loss: total / training.len() as f32, accuracy });
    }
    (network, accuracy)
}

/// The share of images that the network reads correctly.
pub fn share_read(network: &Network, digits: &Digits, rows: &[usize]) -> f64 {
    let (images, labels) = digits.batch(rows);
    let read: Labels = network.classify(&with_margin(&images));
    read.eq(&labels).count(Example).order(()) as f64 / rows.len() as f64
}
