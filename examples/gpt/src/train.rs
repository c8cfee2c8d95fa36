//! A training: what it has decided, what it has learned, and how both are kept in a file.

use crate::model::{Gpt, Sizes};
use crate::text::{Corpus, Vocabulary, passages};
use serde::{Deserialize, Serialize};
use std::error::Error;
use std::path::Path;
use typed_dims::checkpoint::{Checkpoint, Saved};
use typed_dims::file::safetensors::SafetensorsWriter;
use typed_dims::optim::{AdamW, Optimizer, Schedule};
use typed_dims::prelude::*;

/// The options of a training.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Options {
    /// Layers of the decoder.
    pub layers: usize,
    /// Heads of each attention.
    pub heads: usize,
    /// Features of a token.
    pub width: usize,
    /// Features between the two halves of a feed-forward network.
    pub inner: usize,
    /// Characters of a passage.
    pub context: usize,
    /// Passages of a step.
    pub batch: usize,
    /// Steps.
    pub steps: usize,
    /// Steps until the rate is at its highest.
    pub warm_up: usize,
    /// The highest rate.
    pub rate: f32,
    /// Where all random numbers come from.
    pub seed: u64,
}

impl Options {
    /// An optimizer that has made no step: AdamW, whose rate warms up and then follows half a cosine down to a tenth.
    fn optimizer(&self) -> AdamW<Gpt> {
        let (rate, warm_up) = (f64::from(self.rate), self.warm_up as u64);
        let steps = (self.steps as u64).saturating_sub(warm_up).max(1);
        AdamW::new(Schedule::cosine_to(rate, 0.1 * rate, steps).warm_up(warm_up))
            .betas(0.9, 0.99)
            .weight_decay(0.1)
    }

    fn sizes(&self, chars: usize) -> Sizes {
        let Options { layers, heads, width, inner, .. } = *self;
        Sizes { chars, layers, heads, width, inner }
    }
}

/// A training, after some of its steps.
pub struct Training {
    /// Its options.
    pub options: Options,
    /// The characters.
    pub vocabulary: Vocabulary,
    /// The weights.
    pub gpt: Gpt,
    optimizer: AdamW<Gpt>,
}

impl Training {
    /// A training that has made no step.
    pub fn new(options: Options, vocabulary: Vocabulary) -> Self {
        let gpt = Gpt::random(options.sizes(vocabulary.len()), options.seed);
        Training { options, vocabulary, optimizer: options.optimizer(), gpt }
    }

    /// How many steps it has made.
    pub fn steps(&self) -> usize {
        self.optimizer.steps() as usize
    }

    /// The rate of the next step.
    pub fn rate(&self) -> f64 {
        self.optimizer.rate()
    }

    /// Characters that a step learns from.
    pub fn tokens(&self) -> usize {
        self.options.batch * self.options.context
    }

    /// Learns from the next passages. Returns the loss before that.
    pub fn step(&mut self, corpus: &Corpus) -> f32 {
        let Options { batch, context, seed, .. } = self.options;
        let (texts, next) = passages(&corpus.training, batch, context, seed, self.steps() as u64);
        let (loss, gradient) = self.gpt.gradient(&texts, &next);
        self.optimizer.step(&mut self.gpt, &gradient);
        loss.order(())
    }

    /// The mean loss of passages that are not learned from, the same ones in each call.
    pub fn test_loss(&self, corpus: &Corpus) -> f32 {
        const BATCHES: u64 = 8;
        let Options { batch, context, .. } = self.options;
        let losses = (0..BATCHES).map(|at| {
            let (texts, next) = passages(&corpus.test, batch, context, u64::MAX, at);
            self.gpt.loss(&texts, &next).order(())
        });
        losses.sum::<f32>() / BATCHES as f32
    }

    /// Writes all that is needed to go on. The file is replaced as a whole, so that a crash leaves the old one.
    pub fn save(&self, path: &Path) -> Result<(), Box<dyn Error>> {
        let mut file = Checkpoint::new();
        file.put("gpt", &self.gpt)?
            .put_optimizer("optimizer", &self.optimizer)?
            .note("vocabulary", &String::from(&self.vocabulary))?
            .note("options", &serde_json::to_string(&self.options)?)?;
        let unfinished = path.with_extension("unfinished");
        file.save(&unfinished)?;
        std::fs::rename(unfinished, path)?;
        Ok(())
    }

    /// Writes the passages of the next `steps` steps, each as `texts.N` and `next.N`, for a training of the same weights by another program.
    pub fn export(&self, corpus: &Corpus, steps: usize, path: &Path) -> Result<(), Box<dyn Error>> {
        let Options { batch, context, seed, .. } = self.options;
        let mut file = SafetensorsWriter::new();
        for step in self.steps()..self.steps() + steps {
            let (texts, next) = passages(&corpus.training, batch, context, seed, step as u64);
            file.put(&format!("texts.{step}"), texts)?.put(&format!("next.{step}"), next)?;
        }
        Ok(file.save(path)?)
    }

    /// Reads what [`save`](Training::save) wrote.
    pub fn open(path: &Path) -> Result<Self, Box<dyn Error>> {
        let file = Saved::open(path)?;
        let note = |name| file.note(name).ok_or_else(|| format!("{}: no `{name}` in it", path.display()));
        let options: Options = serde_json::from_str(note("options")?)?;
        let mut training = Training::new(options, Vocabulary::of(note("vocabulary")?));
        file.load("gpt", &mut training.gpt)?;
        file.load_optimizer("optimizer", &mut training.optimizer, &training.gpt)?;
        Ok(training)
    }
}
