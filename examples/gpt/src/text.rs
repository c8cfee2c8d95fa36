//! The default text, vocabularies, and random passages of a text. The default text is the American
//! King James Version of the Bible, which is in the public domain, from the crate `bible-lib`.

use crate::model::{Batch, Texts, Token};
use bible_lib::{Bible, Translation};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use std::error::Error;
use typed_dims::prelude::*;

/// The whole Bible: one line per verse, and an empty line after each chapter.
pub fn bible() -> Result<String, Box<dyn Error>> {
    let bible = Bible::new(Translation::AmericanKingJames).map_err(|error| error.to_string())?;
    let mut text = String::new();
    for book in bible.get_sorted_books() {
        let mut chapters = bible.get_chapters(&book).map_err(|error| error.to_string())?;
        chapters.sort_unstable();
        for chapter in chapters {
            let mut verses = bible.get_verses(&book, chapter).map_err(|error| error.to_string())?;
            verses.sort_unstable();
            for verse in verses {
                let place = bible_lib::BibleLookup::new(book.as_str(), chapter, verse);
                text.push_str(bible.get_verse(place, false).map_err(|error| error.to_string())?.trim());
                text.push('\n');
            }
            text.push('\n');
        }
    }
    Ok(text)
}

/// The distinct characters of a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Vocabulary(Vec<char>);

impl Vocabulary {
    /// The vocabulary of a text, sorted.
    pub fn of(text: &str) -> Self {
        let mut chars: Vec<char> =
            text.chars().collect::<std::collections::BTreeSet<_>>().into_iter().collect();
        chars.shrink_to_fit();
        Vocabulary(chars)
    }

    /// The number of characters.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there are no characters.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The text as indices into the vocabulary.
    ///
    /// # Errors
    ///
    /// Returns an error if the text has a character that is not in the vocabulary.
    pub fn encode(&self, text: &str) -> Result<Vec<u32>, String> {
        text.chars()
            .map(|char| match self.0.binary_search(&char) {
                Ok(at) => Ok(at as u32),
                Err(_) => Err(format!("the character {char:?} is not in the text that the model learned")),
            })
            .collect()
    }

    /// The text with these indices.
    pub fn decode(&self, ids: &[u32]) -> String {
        ids.iter().map(|&id| self.0[id as usize]).collect()
    }
}

impl From<&Vocabulary> for String {
    fn from(vocabulary: &Vocabulary) -> String {
        vocabulary.0.iter().collect()
    }
}

/// A text split into a part to train on, and the last twentieth to test with.
pub struct Corpus {
    /// The part to train on.
    pub training: Vec<u32>,
    /// The part to test with.
    pub test: Vec<u32>,
}

impl Corpus {
    /// Splits a text.
    pub fn new(mut ids: Vec<u32>) -> Self {
        let test = ids.split_off(ids.len() - ids.len() / 20);
        Corpus { training: ids, test }
    }
}

/// An error if a text is too short for [`passages`] of this length.
pub fn check_length(ids: &[u32], passage: usize) -> Result<(), String> {
    if ids.len() <= passage {
        return Err(format!("the text is too short for passages of {passage} characters"));
    }
    Ok(())
}

/// Random passages of a text, and the same passages shifted by one character. They are the same in
/// each call with the same arguments, so a resumed run gets the same passages.
///
/// # Panics
///
/// Panics if the text is not longer than a passage.
pub fn passages(ids: &[u32], batch: usize, len: usize, seed: u64, step: u64) -> (Texts, Texts) {
    assert!(ids.len() > len, "a text of {} characters is not longer than a passage of {len}", ids.len());
    let mut rng = StdRng::seed_from_u64(seed ^ step.wrapping_mul(0x9E37_79B9_7F4A_7C15));
    let starts: Vec<usize> = (0..batch).map(|_| rng.random_range(0..ids.len() - len)).collect();
    let cut = |by: usize| from_fn((Batch.of(batch), Token.of(len)), |(b, t)| ids[starts[b] + t + by]);
    (cut(0), cut(1))
}
