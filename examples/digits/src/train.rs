//! Training and testing.

use crate::model::{Hidden, Network};
use digits::{Class, Digits, Example, Images, Labels, Pixel};
use engine::{Data, Devices, Engine, Loss, Model, Trainer};
use rand::SeedableRng;
use rand::rngs::StdRng;
use rand::seq::SliceRandom;
use typed_dims::optim::{Optimizer, Sgd};
use typed_dims::prelude::*;
use typed_dims::program::{jit, record, spec};
use typed_dims_xla::{Mesh, MeshAxis as _, Sharding, XlaError};

/// The number of images in a mini-batch.
const BATCH: usize = 32;
const RATE: f64 = 0.1;
const MOMENTUM: f64 = 0.9;

/// The user's options.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// The seed of all random numbers.
    pub seed: u64,
    /// The number of passes over the images.
    pub epochs: usize,
    /// The number of units of the hidden layer.
    pub hidden: usize,
}

/// The results on unseen images.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// The share of correctly read images.
    pub accuracy: f64,
    /// The number of times that each class (row) was read as each class (column).
    pub confusion: Array2<usize>,
}

/// The state that a training step changes: the weights and the momentum.
pub type State = (Network, Sgd<Network>);

/// Random weights, and a new optimizer.
pub fn start(hidden: usize, rng: &mut StdRng) -> State {
    let network = Network::random(hidden, rng);
    let mut descent = Sgd::new(RATE).momentum(MOMENTUM);
    descent.prepare(&network);
    (network, descent)
}

/// A training step on some images. Returns the loss before the step.
pub fn step((mut network, mut descent): State, images: &Images, labels: &Labels) -> (State, Loss) {
    let (loss, gradients) = network.gradients(images, labels);
    descent.step(&mut network, &gradients);
    ((network, descent), loss)
}

/// The training step on an engine, for batches of this size.
pub fn trainer(
    engine: &Engine,
    state: State,
    batch: usize,
) -> Result<Trainer<State, Images, Labels>, XlaError> {
    let Engine::Xla { pjrt, mesh } = engine else {
        // The first call records the step; later ones run the program.
        let step = jit::<(State, &Images, &Labels), _>(|(state, images, labels)| step(state, images, labels));
        return Ok(Trainer::cpu(state, move |state, images, labels| step.call((state, images, labels))));
    };
    let step = |(state, images, labels): (State, &Images, &Labels)| step(state, images, labels);
    let sizes = (spec((Example.of(batch), Pixel)), spec(Example.of(batch)));
    let Some(Devices { data, model }) = *mesh else {
        let on_device = pjrt.put(&state)?;
        let program = record(step, (state, sizes.0, sizes.1))?;
        return Ok(Trainer::xla(on_device, pjrt.compile(&program)?));
    };
    let sharding =
        Sharding::new(Mesh::of((Data.of(data), Model.of(model)))).shard(Example, Data).shard(Hidden, Model);
    let on_mesh = pjrt.put_sharded(&state, &sharding)?;
    let program = record(step, (state, sizes.0, sizes.1))?;
    Ok(Trainer::xla(on_mesh, pjrt.compile_sharded(&program, sharding)?))
}

/// Trains on one random half of the images, and tests on the other. `progress` is called with each
/// epoch and its mean loss.
pub fn run(
    digits: &Digits,
    options: Options,
    engine: &Engine,
    mut progress: impl FnMut(usize, f32),
) -> Result<Outcome, XlaError> {
    let mut rng = StdRng::seed_from_u64(options.seed);
    let (mut training, test) = digits.halves(&mut rng);
    // All batches have the same size. Each epoch leaves out the remaining images.
    let batch = BATCH.min(training.len());
    let mut trainer = trainer(engine, start(options.hidden, &mut rng), batch)?;
    for epoch in 1..=options.epochs {
        training.shuffle(&mut rng);
        let mut losses = Vec::new();
        for rows in training.chunks_exact(batch) {
            let (images, labels) = digits.batch(rows);
            losses.push(trainer.step(&images, &labels)?);
        }
        let count = losses.len();
        let total: f32 = losses.into_iter().map(|loss| loss.read()).sum::<Result<f32, XlaError>>()?;
        progress(epoch, total / count as f32);
    }
    trainer.with_state(|(network, _)| assess(network, digits, &test))
}

fn assess(network: &Network, digits: &Digits, rows: &[usize]) -> Outcome {
    let (images, labels) = digits.batch(rows);
    let read = network.classify(&images);
    dims!(truth = Class::SIZE, guess = Class::SIZE);
    let confusion = (labels.eq(truth) & read.eq(guess)).count(Example).order((truth, guess));
    let correct = confusion.at((truth, truth)).sum(truth).order(());
    Outcome { accuracy: correct as f64 / rows.len() as f64, confusion }
}
