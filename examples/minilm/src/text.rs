//! Tokenizes sentences and embeds them in batches.

use crate::files::{Settings, read_json};
use crate::model::{Batch, Encoder, Token, Tokens, Width};
use serde::Deserialize;
use std::error::Error;
use std::path::Path;
use tokenizers::{Tokenizer, TruncationParams};
use typed_dims::prelude::*;

/// Tokenizes sentences.
pub struct Reader {
    tokenizer: Tokenizer,
}

/// The setting that is read from `sentence_bert_config.json`.
#[derive(Deserialize)]
struct Limit {
    max_seq_length: usize,
}

impl Reader {
    /// Opens the tokenizer in a model's folder. Texts longer than the model supports are truncated.
    pub fn open(folder: &Path, settings: Settings) -> Result<Self, Box<dyn Error>> {
        let path = folder.join("tokenizer.json");
        let mut tokenizer =
            Tokenizer::from_file(&path).map_err(|error| format!("{}: {error}", path.display()))?;
        let limit = read_json(&folder.join("sentence_bert_config.json"))
            .map_or(settings.positions, |limit: Limit| limit.max_seq_length.min(settings.positions));
        let truncation = TruncationParams { max_length: limit, ..Default::default() };
        tokenizer.with_truncation(Some(truncation)).map_err(|error| error.to_string())?;
        tokenizer.with_padding(None);
        Ok(Reader { tokenizer })
    }

    /// The token ids of each sentence.
    pub fn words<S: AsRef<str>>(&self, sentences: &[S]) -> Result<Vec<Vec<u32>>, Box<dyn Error>> {
        let sentences = sentences.iter().map(|sentence| sentence.as_ref()).collect();
        let encodings =
            self.tokenizer.encode_batch_fast::<&str>(sentences, true).map_err(|error| error.to_string())?;
        Ok(encodings.iter().map(|encoding| encoding.get_ids().to_vec()).collect())
    }
}

/// Pads sentences to the length of the longest one.
pub fn padded(sentences: &[&[u32]]) -> Tokens {
    let longest = sentences.iter().map(|words| words.len()).max().unwrap_or(0);
    let (batch, token) = (Batch.of(sentences.len()), Token.of(longest));
    Tokens {
        ids: from_fn((batch, token), |(at, token)| sentences[at].get(token).copied().unwrap_or(0)),
        lengths: from_vec(batch, sentences.iter().map(|words| words.len() as isize).collect()),
    }
}

/// The embeddings, one row for each sentence. After each batch, calls `done` with the number of
/// sentences in the batch.
pub fn embed(
    encoder: &Encoder<'_>,
    sentences: &[Vec<u32>],
    batch: usize,
    mut done: impl FnMut(usize),
) -> Array2<f32> {
    let mut out = Array2::zeros((sentences.len(), encoder.width()));
    for numbers in batches(sentences, batch) {
        let together: Vec<&[u32]> = numbers.iter().map(|&at| sentences[at].as_slice()).collect();
        let rows = encoder.encode(&padded(&together));
        out.at_mut((numbers.at(Batch), Width)).assign(rows);
        done(numbers.len());
    }
    out
}

/// Splits sentences into batches of at most `most` sentences, the longest first. To limit padding,
/// each sentence is at least half as long as the longest of its batch.
fn batches(sentences: &[Vec<u32>], most: usize) -> Vec<Vec<usize>> {
    let mut by_length: Vec<usize> = (0..sentences.len()).collect();
    by_length.sort_by_key(|&at| std::cmp::Reverse(sentences[at].len()));
    let mut batches: Vec<Vec<usize>> = Vec::new();
    for at in by_length {
        let fits = |batch: &&mut Vec<usize>| {
            batch.len() < most && 2 * sentences[at].len() >= sentences[batch[0]].len()
        };
        match batches.last_mut().filter(fits) {
            Some(batch) => batch.push(at),
            None => batches.push(vec![at]),
        }
    }
    batches
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn batches_have_each_sentence_once_and_little_padding() {
        let lengths = [3, 40, 2, 9, 8, 256, 4, 7, 39, 5, 2];
        let sentences: Vec<Vec<u32>> = lengths.iter().map(|&length| vec![1; length]).collect();
        let found = batches(&sentences, 3);
        let lengths: Vec<Vec<usize>> =
            found.iter().map(|batch| batch.iter().map(|&at| lengths[at]).collect()).collect();
        assert_eq!(lengths, [vec![256], vec![40, 39], vec![9, 8, 7], vec![5, 4, 3], vec![2, 2]]);
        let mut all = found.concat();
        all.sort_unstable();
        assert_eq!(all, (0..sentences.len()).collect::<Vec<_>>());
    }
}
