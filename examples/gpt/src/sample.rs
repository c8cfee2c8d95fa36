//! Samples texts from a decoder.

use crate::model::{Batch, Cache, Char, Gpt, Scores, Token};
use typed_dims::creation::random::categorical;
use typed_dims::prelude::*;

/// The options of sampling.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// The number of characters to sample.
    pub count: usize,
    /// The number that divides the scores: below 1, likely characters become more likely.
    pub temperature: f32,
    /// The maximum number of characters that the decoder sees.
    pub context: usize,
    /// The seed of the random numbers.
    pub seed: u64,
}

/// Continues each text of a batch, character by character. The texts must have the same length.
/// Calls `report` with the new characters of each step, one for each text.
///
/// Most steps run the decoder on a single character of each text, since a cache holds the keys and
/// values of earlier ones. The first step, and each step that finds the cache full, clears the
/// cache and runs the decoder on at most the last `context / 2` characters of each text.
///
/// # Panics
///
/// Panics if there is no text, if the texts are empty, or if the context is shorter than 2.
pub fn sample(
    gpt: &Gpt,
    texts: &[Vec<u32>],
    options: Options,
    mut report: impl FnMut(&[u32]),
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
        report(&drawn);
    }
    texts
}
