//! Texts that a decoder goes on with.

use crate::model::{Batch, Cache, Char, Gpt, Scores, Token};
use typed_dims::creation::random::categorical;
use typed_dims::prelude::*;

/// How a text is gone on with.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// How many characters are drawn.
    pub count: usize,
    /// Scores are divided by it: below 1 the likely becomes more likely.
    pub temperature: f32,
    /// How many characters the decoder sees at most.
    pub context: usize,
    /// Where the random numbers come from.
    pub seed: u64,
}

/// Goes on with each text of a batch, character by character. `heard` gets those that are drawn at one time, one for each text.
///
/// Each character costs one token of computation: keys and values of those before it are in a cache. When that is full, it is filled anew from the last
/// half of the context.
///
/// # Panics
///
/// If there is no text, the texts are empty or differ in length, or the context is shorter than 2.
pub fn sample(
    gpt: &Gpt,
    texts: &[Vec<u32>],
    options: Options,
    mut heard: impl FnMut(&[u32]),
) -> Vec<Vec<u32>> {
    let Options { count, temperature, context, seed } = options;
    assert!(context >= 2, "a context of {context} has no room for a character and the next one");
    let mut texts = texts.to_vec();
    let mut cache = Cache::new(gpt, texts.len(), context);
    for at in 0..count {
        let len = texts[0].len();
        let known = cache.len();
        let unseen = if at == 0 || known == context {
            cache.clear();
            len.min(context / 2)
        } else {
            1
        };
        let tokens = from_fn((Batch.of(texts.len()), Token.of(unseen)), |(b, t)| texts[b][len - unseen + t]);
        let scores: Scores = gpt.next_scores(&tokens, &mut cache);
        let last = scores.index(Token, unseen as isize - 1) / temperature;
        let drawn = categorical(last, Char, seed ^ (at as u64) << 20).order(Batch);
        let drawn: Vec<u32> = drawn.iter().map(|&id| id as u32).collect();
        for (text, &id) in texts.iter_mut().zip(&drawn) {
            text.push(id);
        }
        heard(&drawn);
    }
    texts
}
