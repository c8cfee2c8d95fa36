//! The errors of one call, each with its span.

use super::words::{Place, Words};
use proc_macro2::{Span, TokenStream};
use quote::quote_spanned;

/// The maximum number of errors of one call. Any others are dropped.
pub const MOST: usize = 8;

/// The maximum number of characters of a pattern that a message shows.
const MOST_SHOWN: usize = 120;

/// A text, or the part of a long text around a position, and the position in that part.
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

/// Collects errors. Keeps only the first error at each word of a pattern.
#[derive(Default)]
pub struct Errors {
    list: Vec<(Span, String)>,
    places: Vec<(String, Option<(usize, usize)>)>,
}

impl Errors {
    /// Adds an error at a word of a pattern.
    pub fn at(&mut self, words: &Words, place: &Place, message: impl Into<String>) {
        let key = (format!("{:?}", place.span), place.range);
        if self.list.len() >= MOST || self.places.contains(&key) {
            return;
        }
        self.places.push(key);
        let message = match (place.range, &words.text) {
            (Some((start, end)), Some(text)) => {
                let width = end.saturating_sub(start);
                let (text, start) = around(text, start);
                // The text may end before the word does.
                let width = width.min(text.chars().count().saturating_sub(start)).max(1);
                format!("{}\n  {text}\n  {}{}", message.into(), " ".repeat(start), "^".repeat(width))
            }
            _ => message.into(),
        };
        self.list.push((place.span, message));
    }

    /// Adds an error at any span.
    pub fn span(&mut self, span: Span, message: impl Into<String>) {
        if self.list.len() < MOST {
            self.list.push((span, message.into()));
        }
    }

    /// Adds the errors of syn.
    pub fn syn(&mut self, error: &syn::Error) {
        for error in error.clone() {
            self.span(error.span(), error.to_string());
        }
    }

    /// Whether there are no errors.
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// The errors, as items.
    pub fn items(&self) -> TokenStream {
        let error =
            |(span, message): &(Span, String)| quote_spanned!(*span=> ::core::compile_error!(#message););
        self.list.iter().map(error).collect()
    }

    /// The errors, as an expression. The operands stay in it for editors.
    pub fn stub(&self, operands: &TokenStream) -> TokenStream {
        let errors = self.list.iter().map(|(span, message)| {
            // The user's own span: with the macro's hygiene, each error would have a note about the
            // macro.
            quote_spanned!(*span=> ::core::compile_error!(#message))
        });
        let span = Span::mixed_site();
        quote_spanned!(span=> { #operands #(#errors);* })
    }
}
