//! Training and testing.

use crate::data::{varied, with_margin};
use crate::layers::Maps;
use crate::model::Network;
use crate::report::Line;
use digits::{Digits, Example, Labels};
use rand::SeedableRng;
use rand::rngs::StdRng;
use rand::seq::SliceRandom;
use typed_dims::optim::{Optimizer, Schedule, Sgd};
use typed_dims::prelude::*;
use typed_dims::program::jit;

/// Images in a mini-batch.
const BATCH: usize = 32;
/// The initial learning rate, which falls to 0 along half a cosine.
const RATE: f64 = 0.1;
const MOMENTUM: f64 = 0.9;
const DECAY: f64 = 5e-4;

/// The options of a training run.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// The seed of all random numbers.
    pub seed: u64,
    /// The number of passes over the images.
    pub epochs: usize,
    /// The channels of the feature maps.
    pub channels: usize,
    /// The number of residual blocks.
    pub blocks: usize,
}

/// The state that a training step changes: the weights, the running moments and the momentum.
pub type State = (Network, Sgd<Network>);

/// Random weights, and a new optimizer for `steps` steps.
pub fn start(channels: usize, blocks: usize, steps: u64, seed: u64) -> State {
    let descent = Sgd::new(Schedule::cosine(RATE, steps)).momentum(MOMENTUM).nesterov().weight_decay(DECAY);
    (Network::random(channels, blocks, seed), descent)
}

/// A training step on some images. Returns the loss before the step.
pub fn step((mut network, mut descent): State, images: &Maps, labels: &Labels) -> (State, Tensor<f32, ()>) {
    let (loss, gradient) = network.gradient(images, labels);
    descent.step(&mut network, &gradient);
    ((network, descent), loss)
}

/// Trains on one random half of the images, and tests on the other. `progress` is called with the
/// measurements of each epoch.
pub fn run(digits: &Digits, options: Options, mut progress: impl FnMut(Line)) -> (Network, f64) {
    let Options { seed, epochs, channels, blocks } = options;
    let mut rng = StdRng::seed_from_u64(seed);
    let (mut training, test) = digits.halves(&mut rng);
    let steps = epochs * training.len().div_ceil(BATCH);
    let mut state = start(channels, blocks, steps as u64, seed);
    // The first call with each batch size, and the first call with momentum, record the step. Other
    // calls run a recorded program.
    let step = jit::<(State, &Maps, &Labels), _>(|(state, images, labels)| step(state, images, labels));
    let mut accuracy = share_read(&state.0, digits, &test);
    for epoch in 1..=epochs {
        training.shuffle(&mut rng);
        let mut total = 0.0;
        for rows in training.chunks(BATCH) {
            let (images, labels) = digits.batch(rows);
            let (next, loss) = step.call((state, &varied(&with_margin(&images), &mut rng), &labels));
            state = next;
            total += loss.order(()) * rows.len() as f32;
        }
        accuracy = share_read(&state.0, digits, &test);
        progress(Line { epoch, loss: total / training.len() as f32, accuracy });
    }
    (state.0, accuracy)
}

/// The share of images that the network classifies correctly.
pub fn share_read(network: &Network, digits: &Digits, rows: &[usize]) -> f64 {
    let (images, labels) = digits.batch(rows);
    let read: Labels = network.classify(&with_margin(&images));
    read.eq(&labels).count(Example).order(()) as f64 / rows.len() as f64
}
