//! The names of tensors in a value, and mismatches between two values.

use crate::error::DimError;
use alloc::string::String;
use core::fmt;
use smallvec::SmallVec;

/// The position of a tensor in a value, such as `layers.3.attention.query`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Path {
    segments: SmallVec<[Segment; 8]>,
}

/// One step to a part of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Segment {
    /// A field.
    Field(&'static str),
    /// A position in a tuple, an array or a `Vec`.
    Index(usize),
}

impl Path {
    /// The path to the value itself.
    pub fn new() -> Self {
        Path::default()
    }

    /// The steps, from the value to the part.
    pub fn segments(&self) -> &[Segment] {
        &self.segments
    }

    /// Calls `walk` with the path to a field of the part, and returns its result.
    pub fn field<X>(&mut self, name: &'static str, walk: impl FnOnce(&mut Self) -> X) -> X {
        self.with(Segment::Field(name), walk)
    }

    /// Calls `walk` with the path to a position in the part, and returns its result.
    pub fn index<X>(&mut self, at: usize, walk: impl FnOnce(&mut Self) -> X) -> X {
        self.with(Segment::Index(at), walk)
    }

    /// Calls `walk` with this path extended by another, and returns the result.
    pub(crate) fn part<X>(&mut self, part: &Path, walk: impl FnOnce(&mut Self) -> X) -> X {
        let len = self.segments.len();
        self.segments.extend_from_slice(&part.segments);
        let out = walk(self);
        self.segments.truncate(len);
        out
    }

    pub(crate) fn push(&mut self, segment: Segment) {
        self.segments.push(segment);
    }

    pub(crate) fn pop(&mut self) {
        self.segments.pop();
    }

    fn with<X>(&mut self, segment: Segment, walk: impl FnOnce(&mut Self) -> X) -> X {
        self.push(segment);
        let out = walk(self);
        self.pop();
        out
    }
}

/// Steps with dots between them. The path to the value itself is empty.
impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, segment) in self.segments.iter().enumerate() {
            if at > 0 {
                f.write_str(".")?;
            }
            match segment {
                Segment::Field(name) => f.write_str(name)?,
                Segment::Index(index) => write!(f, "{index}")?,
            }
        }
        Ok(())
    }
}

/// A difference in the structure of two values of the same type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Mismatch {
    /// Two `Vec`s have different lengths.
    Length {
        /// The length in the first value.
        first: usize,
        /// The length in another value.
        other: usize,
    },
    /// An `Option` is `None` in one value and not in another.
    Presence {
        /// Whether it is `Some` in the first value.
        first: bool,
    },
}

/// The names of two values in messages.
pub(crate) type Sides = [&'static str; 2];

impl fmt::Display for Mismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Mismatch::Length { first, other } => write!(f, "one has the length {first}, another {other}"),
            Mismatch::Presence { first: true } => f.write_str("the first is not `None`, another is"),
            Mismatch::Presence { first: false } => f.write_str("the first is `None`, another is not"),
        }
    }
}

impl Mismatch {
    /// The error that names the part.
    pub fn at(self, path: &Path) -> DimError {
        DimError::Shape { what: format!("{} differ: {self}", values_at(path)) }
    }

    /// The error that names the part and both values, such as `the parameters` and `the gradient`.
    #[cold]
    pub(crate) fn between(self, [first, other]: Sides, path: &Path) -> DimError {
        let what = match self {
            Mismatch::Length { first: len, other: other_len } => {
                format!("the length is {len} in {first}, {other_len} in {other}")
            }
            Mismatch::Presence { first: true } => format!("it is `None` in {other}, but not in {first}"),
            Mismatch::Presence { first: false } => format!("it is `None` in {first}, but not in {other}"),
        };
        DimError::Shape { what: format!("{} differ: {what}", values_at(path)) }
    }
}

/// The values at a path, for messages.
pub(super) fn values_at(path: &Path) -> String {
    if path.segments.is_empty() { "the values".into() } else { format!("the values of `{path}`") }
}
