//! Training and testing.

use crate::model::Network;
use digits::{Class, Digits, Example};
use rand::SeedableRng;
use rand::rngs::StdRng;
use rand::seq::SliceRandom;
use typed_dims::optim::{Optimizer, Sgd};
use typed_dims::prelude::*;

/// Images in a mini-batch.
const BATCH: usize = 32;
const RATE: f64 = 0.1;
const MOMENTUM: f64 = 0.9;

/// What the user decides.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Where all random numbers come from.
    pub seed: u64,
    /// How often each image is shown.
    pub epochs: usize,
    /// Units of the hidden layer.
    pub hidden: usize,
}

/// How well unseen images are read.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// The share of images that were read correctly.
    pub accuracy: f64,
    /// How often each class (row) was read as each class (column).
    pub confusion: Array2<usize>,
}

/// Trains on one random half of the images, and tests on the other. `progress` hears each epoch and its mean loss.
pub fn run(digits: &Digits, options: Options, mut progress: impl FnMut(usize, f32)) -> Outcome {
    let mut rng = StdRng::seed_from_u64(options.seed);
    let (mut training, test) = digits.halves(&mut rng);
    let mut network = Network::random(options.hidden, &mut rng);
    let mut descent = Sgd::new(RATE).momentum(MOMENTUM);
    for epoch in 1..=options.epochs {
        training.shuffle(&mut rng);
        let mut total = 0.0;
        for rows in training.chunks(BATCH) {
            let (images, labels) = digits.batch(rows);
            let (loss, gradients) = network.gradients(&images, &labels);
            descent.step(&mut network, &gradients);
            total += loss * rows.len() as f32;
        }
        progress(epoch, total / training.len() as f32);
    }
    assess(&network, digits, &test)
}

fn assess(network: &Network, digits: &Digits, rows: &[usize]) -> Outcome {
    let (images, labels) = digits.batch(rows);
    let read = network.classify(&images);
    dims!(truth = Class::SIZE, guess = Class::SIZE);
    let confusion = (labels.eq(truth) & read.eq(guess)).count(Example).order((truth, guess));
    let correct = confusion.at((truth, truth)).sum(truth).order(());
    Outcome { accuracy: correct as f64 / rows.len() as f64, confusion }
}
