//! Training and testing.

use crate::data::{Digits, varied, with_margin};
use crate::layers::Example;
use crate::model::{Labels, Network};
use crate::report::Line;
use rand::SeedableRng;
use rand::rngs::StdRng;
use rand::seq::SliceRandom;
use std::f32::consts::PI;
use typed_dims::prelude::*;

/// Images in a mini-batch.
const BATCH: usize = 32;
/// The highest rate; it falls by half a cosine.
const RATE: f32 = 0.1;
const MOMENTUM: f32 = 0.9;
const DECAY: f32 = 5e-4;

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

/// Stochastic gradient descent with Nesterov's momentum, and decay of weights.
struct Descent {
    velocity: Network,
}

impl Descent {
    fn step(&mut self, network: &mut Network, gradient: &Network, rate: f32) {
        let gradient = gradient.zip_elements(network, |g: f32, w| g + DECAY * w);
        self.velocity = self.velocity.zip_elements(&gradient, |v: f32, g| MOMENTUM * v + g);
        let step = gradient.zip_elements(&self.velocity, |g: f32, v| g + MOMENTUM * v);
        *network = network.zip_elements(&step, |w: f32, s| w - rate * s);
    }
}

/// Trains on one random half of the images, and tests on the other. `progress` hears the measurements of each epoch.
pub fn run(digits: &Digits, options: Options, mut progress: impl FnMut(Line)) -> (Network, f64) {
    let Options { seed, epochs, channels, blocks } = options;
    let mut rng = StdRng::seed_from_u64(seed);
    let (mut training, test) = digits.halves(&mut rng);
    let mut network = Network::random(channels, blocks, seed);
    let mut descent = Descent { velocity: network.zero() };
    let mut accuracy = share_read(&network, digits, &test);
    for epoch in 1..=epochs {
        training.shuffle(&mut rng);
        let mut total = 0.0;
        for (at, rows) in training.chunks(BATCH).enumerate() {
            let done = (epoch - 1) as f32 + (at * BATCH) as f32 / training.len() as f32;
            let rate = RATE * 0.5 * (1.0 + (PI * done / epochs as f32).cos());
            let (images, labels) = digits.batch(rows);
            let (loss, gradient) = network.gradient(&varied(&with_margin(&images), &mut rng), &labels);
            descent.step(&mut network, &gradient, rate);
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
