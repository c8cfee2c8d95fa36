//! Training and testing.

use crate::model::Network;
use digits::{Class, Digits, Example, Images, Labels};
use rand::SeedableRng;
use rand::rngs::StdRng;
use rand::seq::SliceRandom;
use typed_dims::optim::{Optimizer, Sgd};
use typed_dims::prelude::*;
use typed_dims::program::jit;

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

/// The state that a training step changes: the weights and the momentum.
pub type State = (Network, Sgd<Network>);

/// Random weights, and an optimizer before its first step.
pub fn start(hidden: usize, rng: &mut StdRng) -> State {
    (Network::random(hidden, rng), Sgd::new(RATE).momentum(MOMENTUM))
}

/// A training step on some images. Returns the loss before the step.
pub fn step((mut network, mut descent): State, images: &Images, labels: &Labels) -> (State, Tensor<f32, ()>) {
    let (loss, gradients) = network.gradients(images, labels);
    descent.step(&mut network, &gradients);
    ((network, descent), loss)
}

/// Trains on one random half of the images, and tests on the other. `progress` hears each epoch and its mean loss.
pub fn run(digits: &Digits, options: Options, mut progress: impl FnMut(usize, f32)) -> Outcome {
    let mut rng = StdRng::seed_from_u64(options.seed);
    let (mut training, test) = digits.halves(&mut rng);
    let mut state = start(options.hidden, &mut rng);
    // The first call records the step; later ones run the program.
    let step = jit::<(State, &Images, &Labels), _>(|(state, images, labels)| step(state, images, labels));
    for epoch in 1..=options.epochs {
        training.shuffle(&mut rng);
        let mut total = 0.0;
        for rows in training.chunks(BATCH) {
            let (images, labels) = digits.batch(rows);
            let (next, loss) = step.call((state, &images, &labels));
            state = next;
            total += loss.order(()) * rows.len() as f32;
        }
        progress(epoch, total / training.len() as f32);
    }
    assess(&state.0, digits, &test)
}

fn assess(network: &Network, digits: &Digits, rows: &[usize]) -> Outcome {
    let (images, labels) = digits.batch(rows);
    let read = network.classify(&images);
    dims!(truth = Class::SIZE, guess = Class::SIZE);
    let confusion = (labels.eq(truth) & read.eq(guess)).count(Example).order((truth, guess));
    let correct = confusion.at((truth, truth)).sum(truth).order(());
    Outcome { accuracy: correct as f64 / rows.len() as f64, confusion }
}
