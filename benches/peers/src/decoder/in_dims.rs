//! The decoder of `examples/gpt`.

use super::{ADAM_EPSILON, BETAS, CONTEXT, DECAY, Decoder, FIRST, RATE, TEMPERATURE, TEXTS, texts};
use gpt::model::{Batch, Cache, Char, Gpt, Texts, Token};
use gpt::sample::{Options, sample};
use typed_dims::optim::AdamW;
use typed_dims::prelude::*;

pub struct Ours {
    gpt: Gpt,
    optimizer: AdamW<Gpt>,
    texts: Texts,
    next: Texts,
}

impl Ours {
    pub fn new(gpt: Gpt) -> Self {
        let optimizer = AdamW::new(RATE).betas(BETAS.0, BETAS.1).epsilon(ADAM_EPSILON).weight_decay(DECAY);
        let [texts, next] = [0, 1].map(|shift| {
            let texts = texts(shift);
            from_fn((Batch.of(TEXTS), Token.of(CONTEXT)), |(b, t): (usize, usize)| texts[b][t])
        });
        Ours { gpt, optimizer, texts, next }
    }
}

impl Decoder for Ours {
    fn name(&self) -> &'static str {
        "typed-dims"
    }

    fn loss(&self) -> f32 {
        self.gpt.loss(&self.texts, &self.next).order(())
    }

    fn step(&mut self) -> f32 {
        let (loss, gradient) = self.gpt.gradient(&self.texts, &self.next);
        self.optimizer.step(&mut self.gpt, &gradient);
        loss.order(())
    }

    fn scores(&self, texts: &[Vec<u32>]) -> Vec<f32> {
        let mut cache = Cache::new(&self.gpt, texts.len(), CONTEXT);
        let scores = (0..CONTEXT).map(|at| {
            let ids = from_fn((Batch.of(texts.len()), Token.of(1)), |(b, _)| texts[b][at]);
            self.gpt.next_scores(&ids, &mut cache).index(Token, 0).order((Batch, Char)).into_iter()
        });
        scores.flatten().collect()
    }

    fn sample(&self, texts: usize, drawn: &mut dyn FnMut()) {
        let options = Options { count: CONTEXT - 1, temperature: TEMPERATURE, context: CONTEXT, seed: 0 };
        sample(&self.gpt, &vec![vec![FIRST]; texts], options, |_| drawn());
    }
}
