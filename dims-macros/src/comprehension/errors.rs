//! Errors of a call. They are reported together, and the operands stay in the expansion for
//! editors.

use crate::pattern::errors::MOST;
use proc_macro2::TokenStream;
use quote::quote;
use std::fmt::Display;
use syn::Error;

/// The mistakes found so far: their number, and the first errors.
#[derive(Default)]
pub struct Mistakes(usize, Option<Error>);

impl Mistakes {
    /// Adds a mistake at these tokens.
    pub fn at(&mut self, tokens: impl quote::ToTokens, message: impl Display) {
        self.add(Error::new_spanned(tokens, message));
    }

    pub fn add(&mut self, error: Error) {
        self.0 += 1;
        match &mut self.1 {
            Some(all) if self.0 <= MOST => all.combine(error),
            Some(_) => {}
            None => self.1 = Some(error),
        }
    }

    pub fn count(&self) -> usize {
        self.0
    }

    /// The value, if there were no mistakes.
    pub fn or<T>(self, value: T) -> Result<T, Error> {
        self.1.map_or(Ok(value), Err)
    }
}

/// An expression that makes rustc report these errors, and none that follow from them. The operands
/// stay in it, so that editors know their types and complete their names.
pub fn refuse(error: &Error, bases: &[TokenStream]) -> TokenStream {
    let errors = error.to_compile_error();
    quote!({ #(let _ = &#bases;)* #errors })
}

/// The known name that was probably meant: the nearest, at most one edit away for a short name and
/// two for a longer one.
pub fn nearest<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let allowed = if name.chars().count() < 4 { 1 } else { 2 };
    known
        .into_iter()
        .map(|other| (distance(name, other), other))
        .filter(|&(edits, other)| edits <= allowed && edits < other.chars().count())
        .min_by_key(|&(edits, _)| edits)
        .map(|(_, other)| other)
}

/// The number of letters to add, remove or change (Levenshtein distance).
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, letter) in a.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for j in 0..b.len() {
            let changed = diagonal + usize::from(letter != b[j]);
            diagonal = row[j + 1];
            row[j + 1] = changed.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}
