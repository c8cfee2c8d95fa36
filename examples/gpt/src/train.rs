//! The state of a training run, and its checkpoint file.

use crate::model::{Batch, Gpt, Head, Inner, Sizes, Texts, Token};
use crate::text::{Corpus, Vocabulary, check_length, passages};
use engine::{Data, Devices, Engine, Loss, Model, Trainer};
use serde::{Deserialize, Serialize};
use std::error::Error;
use std::path::Path;
use typed_dims::file::safetensors::SafetensorsWriter;
use typed_dims::optim::checkpoint::{Checkpoint, Saved};
use typed_dims::optim::{AdamW, Optimizer, Schedule};
use typed_dims::prelude::*;
use typed_dims::program::{jit, record, spec};
use typed_dims_xla::{Mesh, MeshAxis as _, Sharding, XlaError};

/// The options of a training run.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Options {
    /// Number of layers.
    pub layers: usize,
    /// Number of attention heads.
    pub heads: usize,
    /// Features of a token.
    pub width: usize,
    /// Features inside the feed-forward network.
    pub inner: usize,
    /// Characters in a passage.
    pub context: usize,
    /// Passages in a batch.
    pub batch: usize,
    /// Number of steps.
    pub steps: usize,
    /// Number of steps until the learning rate reaches its peak.
    pub warm_up: usize,
    /// The peak learning rate.
    pub rate: f32,
    /// The seed of the initial weights and of the training passages.
    pub seed: u64,
}

impl Options {
    /// The learning rate rises to its peak, then falls along half a cosine to a tenth of the peak.
    fn schedule(&self) -> Schedule {
        let (rate, warm_up) = (f64::from(self.rate), self.warm_up as u64);
        let steps = (self.steps as u64).saturating_sub(warm_up).max(1);
        Schedule::cosine_to(rate, 0.1 * rate, steps).warm_up(warm_up)
    }

    /// The optimizer before its first step.
    fn optimizer(&self, gpt: &Gpt) -> AdamW<Gpt> {
        let mut optimizer = AdamW::new(self.schedule()).betas(0.9, 0.99).weight_decay(0.1);
        optimizer.prepare(gpt);
        optimizer
    }

    fn sizes(&self, chars: usize) -> Sizes {
        let Options { layers, heads, width, inner, .. } = *self;
        Sizes { chars, layers, heads, width, inner }
    }
}

/// The state that a training step changes: the weights and the optimizer.
pub type State = (Gpt, AdamW<Gpt>);

/// A training step on a batch. Returns the loss before the step.
pub fn step((mut gpt, mut optimizer): State, texts: &Texts, next: &Texts) -> (State, Loss) {
    let (loss, gradient) = gpt.gradient(texts, next);
    optimizer.step(&mut gpt, &gradient);
    ((gpt, optimizer), loss)
}

/// The training step on an engine.
fn trainer(
    engine: &Engine,
    state: State,
    Options { batch, context, .. }: Options,
) -> Result<Trainer<State, Texts, Texts>, XlaError> {
    let Engine::Xla { pjrt, mesh } = engine else {
        // The first call records the step, and later calls run the recorded program.
        let step = jit::<(State, &Texts, &Texts), _>(|(state, texts, next)| step(state, texts, next));
        return Ok(Trainer::cpu(state, move |state, texts, next| step.call((state, texts, next))));
    };
    let step = |(state, texts, next): (State, &Texts, &Texts)| step(state, texts, next);
    let passages = || spec((Batch.of(batch), Token.of(context)));
    let Some(Devices { data, model }) = *mesh else {
        let on_device = pjrt.put(&state)?;
        let program = record(step, (state, passages(), passages()))?;
        return Ok(Trainer::xla(on_device, pjrt.compile(&program)?));
    };
    let sharding = Sharding::new(Mesh::of((Data.of(data), Model.of(model))))
        .shard(Batch, Data)
        .shard(Head, Model)
        .shard(Inner, Model);
    let on_mesh = pjrt.put_sharded(&state, &sharding)?;
    let program = record(step, (state, passages(), passages()))?;
    Ok(Trainer::xla(on_mesh, pjrt.compile_sharded(&program, sharding)?))
}

/// A training run and its current state.
pub struct Training {
    /// The options.
    pub options: Options,
    /// The vocabulary.
    pub vocabulary: Vocabulary,
    steps: usize,
    trainer: Trainer<State, Texts, Texts>,
}

impl Training {
    /// A training run before its first step.
    ///
    /// # Errors
    ///
    /// Returns an error if the engine cannot run it.
    pub fn new(options: Options, vocabulary: Vocabulary, engine: &Engine) -> Result<Self, XlaError> {
        let gpt = Gpt::random(options.sizes(vocabulary.len()), options.seed);
        let optimizer = options.optimizer(&gpt);
        let trainer = trainer(engine, (gpt, optimizer), options)?;
        Ok(Training { options, vocabulary, steps: 0, trainer })
    }

    /// The number of steps so far.
    pub fn steps(&self) -> usize {
        self.steps
    }

    /// The learning rate of the next step.
    pub fn rate(&self) -> f64 {
        self.options.schedule().at(self.steps as u64)
    }

    /// The number of characters in a batch.
    pub fn tokens(&self) -> usize {
        self.options.batch * self.options.context
    }

    /// Calls a function with the weights and the optimizer.
    ///
    /// # Errors
    ///
    /// Returns an error if they cannot be copied from a device.
    pub fn with_state<R>(&self, f: impl FnOnce(&State) -> R) -> Result<R, XlaError> {
        self.trainer.with_state(f)
    }

    /// Trains on the next batch. Returns the loss before the step.
    ///
    /// # Errors
    ///
    /// Returns an error if the engine reports one.
    pub fn step(&mut self, corpus: &Corpus) -> Result<f32, XlaError> {
        let Options { batch, context, seed, .. } = self.options;
        let (texts, next) = passages(&corpus.training, batch, context, seed, self.steps as u64);
        let loss = self.trainer.step(&texts, &next)?.read()?;
        self.steps += 1;
        Ok(loss)
    }

    /// The mean loss of test passages, the same ones in each call. It is computed on the CPU.
    ///
    /// # Errors
    ///
    /// Returns an error if the weights cannot be copied from a device.
    pub fn test_loss(&self, corpus: &Corpus) -> Result<f32, XlaError> {
        const BATCHES: u64 = 8;
        let Options { batch, context, .. } = self.options;
        self.with_state(|(gpt, _)| {
            let losses = (0..BATCHES).map(|at| {
                let (texts, next) = passages(&corpus.test, batch, context, u64::MAX, at);
                gpt.loss(&texts, &next).order(())
            });
            losses.sum::<f32>() / BATCHES as f32
        })
    }

    /// Saves everything needed to resume, except the text. The file is replaced atomically.
    pub fn save(&self, path: &Path) -> Result<(), Box<dyn Error>> {
        let unfinished = path.with_extension("unfinished");
        self.with_state(|(gpt, optimizer)| -> Result<(), Box<dyn Error>> {
            let mut file = Checkpoint::new();
            file.put("gpt", gpt)?
                .put_optimizer("optimizer", optimizer)?
                .note("vocabulary", &String::from(&self.vocabulary))?
                .note("options", &serde_json::to_string(&self.options)?)?;
            Ok(file.save(&unfinished)?)
        })??;
        std::fs::rename(unfinished, path)?;
        Ok(())
    }

    /// Writes the passages of the next `steps` steps, those of step `N` as `texts.N` and `next.N`,
    /// so that another program can train on the same passages.
    pub fn export(&self, corpus: &Corpus, steps: usize, path: &Path) -> Result<(), Box<dyn Error>> {
        let Options { batch, context, seed, .. } = self.options;
        check_length(&corpus.training, context)?;
        let mut file = SafetensorsWriter::new();
        for step in self.steps()..self.steps() + steps {
            let (texts, next) = passages(&corpus.training, batch, context, seed, step as u64);
            file.put(&format!("texts.{step}"), texts)?.put(&format!("next.{step}"), next)?;
        }
        Ok(file.save(path)?)
    }

    /// Reads a file written by [`save`](Training::save).
    pub fn open(path: &Path, engine: &Engine) -> Result<Self, Box<dyn Error>> {
        let file = Saved::open(path)?;
        let note =
            |name| file.note(name).ok_or_else(|| format!("{}: the file has no `{name}`", path.display()));
        let options: Options = serde_json::from_str(note("options")?)?;
        let vocabulary = Vocabulary::of(note("vocabulary")?);
        let mut gpt = Gpt::random(options.sizes(vocabulary.len()), options.seed);
        file.load("gpt", &mut gpt)?;
        let mut optimizer = options.optimizer(&gpt);
        file.load_optimizer("optimizer", &mut optimizer, &gpt)?;
        let steps = optimizer.steps() as usize;
        Ok(Training { options, vocabulary, steps, trainer: trainer(engine, (gpt, optimizer), options)? })
    }
}
