//! All errors of one call, each at its word.

use super::words::{Place, Words};
use proc_macro2::{Span, TokenStream};
use quote::quote_spanned;

/// Errors of one call beyond so many are left out.
pub const MOST: usize = 8;

/// How many characters of a pattern a message shows.
const MOST_SHOWN: usize = 120;

/// A text, or the part of a long one around a position, and where the position is in it.
fn around(text: &str, at: usize) -> (String, usize) {
    let count = text.chars().count();
    if count <= MOST_SHOWN {
        return (text.to_owned(), at);
    }
    let first = at.saturating_sub(MOST_SHOWN / 2).min(count - MOST_SHOWN);
    let part: String = text.chars().skip(first).take(MOST_SHOWN).collect();
    let (before, after) =
        (if first > 0 { "…" } else { "" }, if first + MOST_SHOWN < count { "…" } else { "" });
    (format!("{before}{part}{after}"), at - first + before.chars().count())
}

/// Collects errors. Each place has one error at the most: the first.
#[derive(Default)]
pub struct Errors {
    list: Vec<(Span, String)>,
    places: Vec<(String, Option<(usize, usize)>)>,
}

impl Errors {
    /// Something is wrong at a word of a pattern.
    pub fn at(&mut self, words: &Words, place: &Place, message: impl Into<String>) {
        let key = (format!("{:?}", place.span), place.range);
        if self.list.len() >= MOST || self.places.contains(&key) {
            return;
        }
        self.places.push(key);
        let message = match (place.range, &words.text) {
            (Some((start, end)), Some(text)) => {
                let width = end.saturating_sub(start).max(1);
                let (text, start) = around(text, start);
                format!("{}\n  {text}\n  {}{}", message.into(), " ".repeat(start), "^".repeat(width))
            }
            _ => message.into(),
        };
        self.list.push((place.span, message));
    }

    /// Something is wrong at a token outside of the pattern.
    pub fn span(&mut self, span: Span, message: impl Into<String>) {
        if self.list.len() < MOST {
            self.list.push((span, message.into()));
        }
    }

    /// What syn has to say.
    pub fn syn(&mut self, error: &syn::Error) {
        for error in error.clone() {
            self.span(error.span(), error.to_string());
        }
    }

    /// Whether nothing is wrong.
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// The errors for rustc, in the place of an item.
    pub fn items(&self) -> TokenStream {
        let error =
            |(span, message): &(Span, String)| quote_spanned!(*span=> ::core::compile_error!(#message););
        self.list.iter().map(error).collect()
    }

    /// The errors for rustc. The operands stay, so that tools can look at them.
    pub fn stub(&self, operands: &TokenStream) -> TokenStream {
        let errors = self.list.iter().map(|(span, message)| {
            // At the user's own place: with the macro's hygiene, each error would have a note on the macro.
            quote_spanned!(*span=> ::core::compile_error!(#message))
        });
        let span = Span::mixed_site();
        quote_spanned!(span=> { #operands #(#errors);* })
    }
}
