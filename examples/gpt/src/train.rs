//! A training: what it has decided, what it has learned, and how both are kept in a file.

use crate::model::{Char, Gpt, Sizes};
use crate::optim::{AdamW, Schedule};
use crate::text::{Corpus, Vocabulary, passages};
use serde::{Deserialize, Serialize};
use std::error::Error;
use std::path::Path;
use typed_dims::file::FileError;
use typed_dims::file::load::Weights;
use typed_dims::file::safetensors::{Reader, Writer};
use typed_dims::prelude::*;

/// What a training is asked to do.
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
    fn schedule(&self) -> Schedule {
        Schedule { rate: self.rate, warm_up: self.warm_up, steps: self.steps }
    }

    fn sizes(&self, chars: usize) -> Sizes {
        let Options { layers, heads, width, inner, .. } = *self;
        Sizes { chars, layers, heads, width, inner }
    }
}

/// A training, after some of its steps.
pub struct Training {
    /// What it is asked to do.
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
        Training { options, vocabulary, optimizer: AdamW::new(&gpt), gpt }
    }

    /// How many steps it has made.
    pub fn steps(&self) -> usize {
        self.optimizer.steps
    }

    /// The rate of the next step.
    pub fn rate(&self) -> f32 {
        self.options.schedule().rate(self.steps())
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
        let rate = self.rate();
        self.optimizer.step(&mut self.gpt, &gradient, rate);
        loss
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
        let mut file = Writer::new();
        put(&mut file, "gpt", &self.gpt)?;
        put(&mut file, "first", &self.optimizer.first)?;
        put(&mut file, "second", &self.optimizer.second)?;
        file.note("steps", &self.steps().to_string())?;
        file.note("vocabulary", &String::from(&self.vocabulary))?;
        file.note("options", &serde_json::to_string(&self.options)?)?;
        let unfinished = path.with_extension("unfinished");
        file.save(&unfinished)?;
        std::fs::rename(unfinished, path)?;
        Ok(())
    }

    /// Writes the passages of the next `steps` steps, each as `texts.N` and `next.N`, for a training of the same weights by another program.
    pub fn export(&self, corpus: &Corpus, steps: usize, path: &Path) -> Result<(), Box<dyn Error>> {
        let Options { batch, context, seed, .. } = self.options;
        let mut file = Writer::new();
        for step in self.steps()..self.steps() + steps {
            let (texts, next) = passages(&corpus.training, batch, context, seed, step as u64);
            file.put(&format!("texts.{step}"), texts)?.put(&format!("next.{step}"), next)?;
        }
        Ok(file.save(path)?)
    }

    /// Reads what [`save`](Training::save) wrote.
    pub fn open(path: &Path) -> Result<Self, Box<dyn Error>> {
        #[derive(Load)]
        struct Tensors {
            gpt: Gpt,
            first: Gpt,
            second: Gpt,
        }

        let file = Reader::open(path)?;
        let note = |name| file.note(name).ok_or_else(|| format!("{}: no `{name}` in it", path.display()));
        let steps = note("steps")?.parse()?;
        let options = serde_json::from_str(note("options")?)?;
        let vocabulary = Vocabulary::of(note("vocabulary")?);
        let Tensors { gpt, first, second } = Weights::of(&file)?.load()?;
        if gpt.chars.size(Char) != vocabulary.len() {
            return Err(format!("{}: the vocabulary is not that of the weights", path.display()).into());
        }
        Ok(Training { options, vocabulary, gpt, optimizer: AdamW { first, second, steps } })
    }
}

fn put(file: &mut Writer, name: &str, gpt: &Gpt) -> Result<(), FileError> {
    file.put(&format!("{name}.chars"), &gpt.chars)?;
    file.put(&format!("{name}.norm.gain"), &gpt.norm.gain)?;
    for (at, layer) in gpt.layers.iter().enumerate() {
        let name = |field: &str| format!("{name}.layers.{at}.{field}");
        file.put(&name("attention_norm.gain"), &layer.attention_norm.gain)?
            .put(&name("attention.query"), &layer.attention.query)?
            .put(&name("attention.key"), &layer.attention.key)?
            .put(&name("attention.value"), &layer.attention.value)?
            .put(&name("attention.out"), &layer.attention.out)?
            .put(&name("glu_norm.gain"), &layer.glu_norm.gain)?
            .put(&name("glu.gate"), &layer.glu.gate)?
            .put(&name("glu.up"), &layer.glu.up)?
            .put(&name("glu.down"), &layer.glu.down)?;
    }
    Ok(())
}
