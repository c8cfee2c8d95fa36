//! The words of a pattern, and their places.

use proc_macro2::{Ident, Span};

/// The place of a word: a token, or a literal with a range of its characters.
#[derive(Clone, Debug)]
pub struct Place {
    pub span: Span,
    pub range: Option<(usize, usize)>,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Word {
    Name(String),
    Number(usize),
    Dots,
    Under,
    Star,
    Open,
    Close,
    Plus,
    Comma,
    Arrow,
}

/// A pattern as words.
pub struct Words {
    pub words: Vec<(Word, Place)>,
    /// The text, if the pattern is a string literal.
    pub text: Option<String>,
    /// The place for errors about missing words: the last token, or after the text of a literal.
    pub end: Place,
    /// The axes `$n`, whose size is that of the dim `n` in the surrounding scope.
    pub outer: Vec<Ident>,
}

/// How a pattern is split into words.
#[derive(Clone, Copy, PartialEq)]
pub enum Notation {
    /// Names of any length, separated by spaces, as in einops.
    Names,
    /// Like `Names`, but `[2]` is also a name: a coordinate axis, in `gather!`.
    Coordinates,
    /// Each letter is a name, and spaces are ignored, as in numpy.
    Letters,
}

impl Words {
    /// The pattern, as messages show it.
    pub fn shown(&self) -> String {
        if let Some(text) = &self.text {
            return text.trim().to_owned();
        }
        let mut shown = String::new();
        let mut last: Option<&Word> = None;
        for (word, _) in &self.words {
            let tight = matches!(last, None | Some(Word::Open)) || matches!(word, Word::Close | Word::Comma);
            if !tight {
                shown.push(' ');
            }
            shown.push_str(&word.shown());
            last = Some(word);
        }
        shown
    }
}

impl Word {
    /// The word as written.
    pub fn shown(&self) -> String {
        match self {
            Word::Name(name) => name.clone(),
            Word::Number(number) => number.to_string(),
            Word::Dots => "...".into(),
            Word::Under => "_".into(),
            Word::Star => "*".into(),
            Word::Open => "(".into(),
            Word::Close => ")".into(),
            Word::Plus => "+".into(),
            Word::Comma => ",".into(),
            Word::Arrow => "->".into(),
        }
    }
}
