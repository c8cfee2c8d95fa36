//! The words of a pattern, and where they stand.

use proc_macro2::{Ident, Span};

/// Where a word stands: a token, or a literal and the characters of its text from the first to behind the last.
#[derive(Clone, Debug)]
pub struct Place {
    pub span: Span,
    pub range: Option<(usize, usize)>,
}

/// A word.
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
    /// The text of a string literal.
    pub text: Option<String>,
    /// Behind the last word.
    pub end: Place,
    /// The axes `$n`, as long as the dim `n` of the surrounding scope.
    pub outer: Vec<Ident>,
}

/// How the words of a string are told apart.
#[derive(Clone, Copy, PartialEq)]
pub enum Notation {
    /// Names of any length, with spaces between them: einops.
    Names,
    /// As `Names`, and `[2]` is a name: an axis of coordinates, in `gather!`.
    Coordinates,
    /// Each letter is a name, and spaces do not matter: numpy.
    Letters,
}

impl Words {
    /// The pattern as it is shown in messages.
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
    /// As it is written.
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
