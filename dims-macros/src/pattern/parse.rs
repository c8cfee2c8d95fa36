//! Parses patterns into trees.

use super::errors::Errors;
use super::words::{Place, Word, Words};

/// The arrays on both sides of `->`.
pub struct Sides {
    pub left: Vec<Array>,
    /// The arrays on the right, and the place of the arrow, if there is one.
    pub right: Option<(Vec<Array>, Place)>,
}

/// The axes of one array.
#[derive(Clone, Debug)]
pub struct Array {
    pub axes: Vec<Axis>,
    /// The first word, or the place where it is missing.
    pub place: Place,
}

/// One axis of an array, or of a group.
#[derive(Clone, Debug)]
pub struct Axis {
    pub kind: AxisKind,
    pub place: Place,
}

/// The kind of an axis.
#[derive(Clone, Debug)]
pub enum AxisKind {
    Name(String),
    Number(usize),
    Dots,
    Under,
    Star,
    /// Concatenated groups. Without `+` there is only one.
    Group(Vec<Vec<Axis>>),
}

/// How deeply groups can be nested.
const MOST_NESTED: usize = 32;

/// The maximum number of arrays of a pattern.
const MOST_ARRAYS: usize = 64;

/// The maximum number of axes of a pattern, in all arrays together.
const MOST_AXES: usize = 256;

pub fn parse(words: &Words, errors: &mut Errors) -> Sides {
    let count = |of: &dyn Fn(&Word) -> bool, most: usize| {
        words.words.iter().filter(|(word, _)| of(word)).nth(most).map(|(_, place)| place)
    };
    let axis = |word: &Word| matches!(word, Word::Name(_) | Word::Number(_) | Word::Under | Word::Star);
    for (what, most, found) in [
        ("axes", MOST_AXES, count(&axis, MOST_AXES)),
        ("arrays", MOST_ARRAYS, count(&|word| matches!(word, Word::Comma | Word::Arrow), MOST_ARRAYS - 1)),
    ] {
        let Some(place) = found else { continue };
        errors.at(words, place, format!("a pattern can have at most {most} {what}"));
        return Sides { left: vec![Array { axes: Vec::new(), place: place.clone() }], right: None };
    }
    let mut reader = Reader { words, at: 0, open: 0, errors };
    let left = reader.arrays();
    let mut sides = Sides { left, right: None };
    while let Some((word, place)) = reader.next() {
        match word {
            Word::Arrow if sides.right.is_none() => {
                let right = reader.arrays();
                sides.right = Some((right, place));
            }
            Word::Arrow => {
                reader.errors.at(words, &place, "a pattern can have only one `->`");
                reader.arrays();
            }
            Word::Close => reader.errors.at(words, &place, "this `)` has no matching `(`"),
            _ => reader.errors.at(words, &place, "put `+` and its groups in parentheses: `(w1 + w2)`"),
        }
    }
    sides
}

struct Reader<'w, 'e> {
    words: &'w Words,
    at: usize,
    /// The number of open groups around the current word.
    open: usize,
    errors: &'e mut Errors,
}

impl Reader<'_, '_> {
    fn peek(&self) -> Option<&Word> {
        self.words.words.get(self.at).map(|(word, _)| word)
    }

    fn next(&mut self) -> Option<(Word, Place)> {
        let word = self.words.words.get(self.at).cloned();
        self.at += 1;
        word
    }

    fn place(&self) -> Place {
        self.words.words.get(self.at).map_or(&self.words.end, |(_, place)| place).clone()
    }

    fn arrays(&mut self) -> Vec<Array> {
        let mut arrays = vec![self.array()];
        while self.peek() == Some(&Word::Comma) {
            self.next();
            arrays.push(self.array());
        }
        arrays
    }

    fn array(&mut self) -> Array {
        let place = self.place();
        let mut axes = self.axes();
        // Report a stray word once. The axes after it belong to the same array.
        while let Some(Word::Close | Word::Plus) = self.peek() {
            let (word, place) = self.next().expect("a word was seen");
            let what = match word {
                Word::Close => "this `)` has no matching `(`",
                _ => "put `+` and its groups in parentheses: `(w1 + w2)`",
            };
            self.errors.at(self.words, &place, what);
            axes.extend(self.axes());
        }
        Array { axes, place }
    }

    /// Axes, up to a word that is not an axis.
    fn axes(&mut self) -> Vec<Axis> {
        let mut axes = Vec::new();
        loop {
            let place = self.place();
            let kind = match self.peek() {
                Some(Word::Name(name)) => AxisKind::Name(name.clone()),
                Some(Word::Number(number)) => AxisKind::Number(*number),
                Some(Word::Dots) => AxisKind::Dots,
                Some(Word::Under) => AxisKind::Under,
                Some(Word::Star) => AxisKind::Star,
                Some(Word::Open) => {
                    self.next();
                    if self.open == MOST_NESTED {
                        let what = format!(
                            "groups are nested more than {MOST_NESTED} deep: `((h w) c)` is the same as `(h w c)`"
                        );
                        self.errors.at(self.words, &place, what);
                        (self.at, self.open) = (self.words.words.len(), 0);
                        return axes;
                    }
                    self.open += 1;
                    let groups = self.groups(&place);
                    self.open = self.open.saturating_sub(1);
                    axes.push(Axis { kind: AxisKind::Group(groups), place });
                    continue;
                }
                _ => return axes,
            };
            self.next();
            axes.push(Axis { kind, place });
        }
    }

    /// Groups, up to the closing parenthesis.
    fn groups(&mut self, open: &Place) -> Vec<Vec<Axis>> {
        let mut groups = vec![self.axes()];
        let mut commas = 0;
        loop {
            match self.peek() {
                Some(Word::Plus) => {
                    let (_, place) = self.next().expect("a word was seen");
                    if groups.last().is_some_and(Vec::is_empty) {
                        self.errors.at(
                            self.words,
                            &place,
                            "expected an axis on both sides of `+`; `1` is an axis of one element",
                        );
                    }
                    groups.push(self.axes());
                    if groups.last().is_some_and(Vec::is_empty) && self.peek() != Some(&Word::Plus) {
                        self.errors.at(
                            self.words,
                            &place,
                            "expected an axis on both sides of `+`; `1` is an axis of one element",
                        );
                    }
                }
                Some(Word::Close) => {
                    self.next();
                    return groups;
                }
                Some(Word::Comma) => {
                    let (_, place) = self.next().expect("a word was seen");
                    commas += 1;
                    if commas == 1 {
                        let what = "separate the axes of a group with spaces, not commas: `(h w)`";
                        self.errors.at(self.words, &place, what);
                    }
                    let more = self.axes();
                    groups.last_mut().expect("there is a group").extend(more);
                }
                _ => {
                    // The groups around this one end here, too.
                    let what = match self.open {
                        0 => return groups,
                        1 => "this `(` has no matching `)`".to_owned(),
                        open => format!("{open} groups are not closed: this one and those around it"),
                    };
                    self.errors.at(self.words, open, what);
                    self.open = 0;
                    return groups;
                }
            }
        }
    }
}
