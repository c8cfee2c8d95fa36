//! Recordings as plain data that can be compared and saved: [`SavedRecording`].
//!
//! ```text
//! Recording  --write-->  SavedRecording  --read-->  Recording
//!                        plain data, with serde     after all checks
//! ```
//!
//! Values are numbered in the order of inputs, constants and steps, so recordings of the same
//! function are equal. Data that is [restored](SavedRecording::restore) may be hostile: everything
//! that unsafe code relies on is checked before a step can run. Engines that run programs elsewhere
//! read this data, too.

#![allow(missing_docs)] // Most fields have the name of the field that they save.

#[cfg(feature = "serde")]
mod formats;
mod numbers;
mod open;
mod read;
mod rules;
mod words;
mod write;

pub use numbers::Numeral;
pub use open::{BakedIn, Misfit, OpenFinder, OpenNumbers, OpenSizes, ROUNDS};
pub use read::FARTHEST;
pub(crate) use read::{RecordingReader, check, checked_volume, element_of, refused};
pub(crate) use rules::check_whole;
pub use write::{DescribedValue, bytes_of, elements_of_bytes};
pub(crate) use write::{RecordingWriter, element_bytes};

use crate::memory::runs::RowRun;
use crate::ops::code::{DType, RegisterKind};
use crate::ops::matrix::{MatrixSizes, MatrixWork};
use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;
#[cfg(feature = "serde")]
use serde::{Deserialize, Serialize};

/// A [`Recording`](super::Recording) as plain data.
#[derive(Clone, Debug, Default, PartialEq)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize))]
pub struct SavedRecording {
    /// The types and lengths of the inputs.
    pub inputs: Vec<SavedType>,
    /// Elements that are the same in each call, such as captured tensors. Their numbers follow the
    /// numbers of the inputs.
    pub constants: Vec<SavedConstant>,
    /// The tables of all places. A table reads only tables before it.
    pub tables: Vec<SavedTable>,
    /// The steps, each after those that it reads. Their numbers follow the numbers of the
    /// constants.
    pub steps: Vec<SavedStep>,
    /// The numbers of the values that are results.
    pub outputs: Vec<usize>,
}

/// The type and the number of a value's elements.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize))]
pub struct SavedType {
    pub dtype: DType,
    pub len: usize,
}

/// Captured elements.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize))]
pub struct SavedConstant {
    pub dtype: DType,
    /// The elements, little-endian. `isize` and `usize` have eight bytes.
    pub elements: SavedBytes,
}

/// Bytes; text in human-readable formats.
#[derive(Clone, Debug, PartialEq)]
pub struct SavedBytes(pub Vec<u8>);

/// The offsets of a table.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize))]
pub enum SavedTable {
    Given(Vec<isize>),
    /// Computed in each call, contiguous in an order of the indices' loops.
    Computed {
        indices: Vec<SavedIndex>,
        order: Vec<usize>,
    },
}

/// A computed index into an axis.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize))]
pub struct SavedIndex {
    pub field: SavedField,
    pub stride: isize,
    pub size: usize,
}

#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize))]
pub struct SavedStep {
    /// The type of the result.
    pub dtype: DType,
    /// The number of its elements.
    pub len: usize,
    pub work: SavedWork,
}

#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize))]
pub enum SavedWork {
    Parts(Vec<SavedPart>),
    Rule(Box<SavedRule>),
}

#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize))]
pub struct SavedPart {
    pub field: SavedField,
    pub place: SavedPlace,
}

#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize))]
pub struct SavedField {
    pub sizes: Vec<usize>,
    pub program: SavedProgramText,
    pub operands: Vec<SavedOperand>,
}

/// A [`ScalarProgram`](crate::program::ScalarProgram).
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize))]
pub struct SavedProgramText {
    pub instructions: Vec<(SavedInstruction, RegisterKind)>,
    pub result: u32,
}

#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize))]
pub enum SavedInstruction {
    Load(u32),
    Position(u32),
    /// A float, by its bits.
    Float(u64),
    Int(isize),
    Bool(bool),
    Unary(SavedOperation, u32),
    Binary(SavedOperation, u32, u32),
    Select(u32, u32, u32),
    Cast(DType, u32),
}

/// An operation by its name, and the bits of its constants.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize))]
pub struct SavedOperation(pub String, pub Vec<u64>);

#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize))]
pub struct SavedOperand {
    /// The number of the value that is read; `None` for positions.
    pub value: Option<usize>,
    pub place: SavedPlace,
}

/// A [`StridedPlace`](super::StridedPlace).
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize))]
pub struct SavedPlace {
    pub offset: isize,
    pub strides: Vec<isize>,
    pub table: Option<SavedLookup>,
}

/// How a place reads a table.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize))]
pub struct SavedLookup {
    /// The number of the table.
    pub number: usize,
    pub start: isize,
    pub strides: Vec<isize>,
}

/// A [`Rule`](super::Rule), with a variant for each type of rule.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize))]
pub enum SavedRule {
    Reduction(SavedReduction),
    MomentOfLines(SavedReduction),
    Lines(SavedLines),
    LinePullBack {
        lines: SavedLines,
        y: SavedField,
        dy: SavedField,
    },
    BestOf {
        x: SavedField,
        y: SavedField,
        order: Vec<usize>,
        axis: usize,
        dtype: DType,
    },
    Attention(SavedAttention),
    AttentionPullBack {
        attention: SavedAttention,
        dy: SavedField,
        numbers: Vec<Vec<Option<usize>>>,
        lens: Vec<usize>,
        dtype: DType,
    },
    Recurrence {
        a: Option<SavedField>,
        b: SavedField,
        axis: usize,
        order: Vec<usize>,
        backward: bool,
        dtype: DType,
    },
    Placed {
        parts: Vec<SavedPart>,
        /// The number of a constant. It has all elements, or a single element if the elements
        /// around the parts are equal.
        around: usize,
        dtype: DType,
    },
    Detached {
        field: SavedField,
        order: Vec<usize>,
        dtype: DType,
    },
    SumOfSquares(Vec<SavedField>),
    /// A step of an operator.
    Kind {
        kind: SavedKind,
        operands: Vec<SavedField>,
        /// The number of the result; `None` for the elements that the step keeps for its
        /// derivative.
        number: Option<usize>,
    },
}

#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize))]
pub struct SavedReduction {
    pub field: SavedField,
    pub kept: Vec<usize>,
    pub reduced: Vec<usize>,
    pub reduction: SavedOperation,
    pub dtype: DType,
}

#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize))]
pub struct SavedLines {
    /// A pull-back that does not read its operand has a field without operands.
    pub field: SavedField,
    pub order: Vec<usize>,
    pub lines: Vec<usize>,
    pub work: SavedOperation,
    pub dtype: DType,
    pub is_masked: bool,
}

#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize))]
pub struct SavedAttention {
    /// Queries, keys and values.
    pub operands: [SavedField; 3],
    pub mask: Option<SavedField>,
    pub bias: Option<SavedField>,
    /// A float, by its bits.
    pub scale: u64,
    pub features: Vec<usize>,
    pub over: Vec<usize>,
    pub scores: Vec<usize>,
    pub kept: Vec<usize>,
    pub dtype: DType,
}

/// A [`StepKind`](crate::step::StepKind): the step's element type, sizes and settings.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize))]
pub enum SavedKind {
    MoveRows {
        name: String,
        dtype: DType,
        outer: usize,
        size: usize,
        inner: usize,
        sources: Vec<RowRun>,
        /// One element.
        fill: SavedBytes,
    },
    AddAtPlaces {
        name: String,
        dtype: DType,
        len: usize,
        operands: Vec<SavedOperandPlaces>,
    },
    MeanOfParts {
        dtype: DType,
        parts: [usize; 4],
    },
    MaxOfParts {
        dtype: DType,
        parts: [usize; 4],
    },
    DropElements {
        dtype: DType,
        count: usize,
        p: u64,
        seed: Option<u64>,
        numbers: SavedNumbers,
    },
    StandardizeAffine {
        dtype: DType,
        lines: usize,
        len: usize,
        eps: u64,
    },
    DrawElements {
        dtype: DType,
        distribution: String,
        count: usize,
        numbers: SavedNumbers,
    },
    DrawTruths {
        dtype: DType,
        count: usize,
        numbers: SavedNumbers,
    },
    DrawOrder {
        size: usize,
    },
    SplitSeed {
        at: u64,
    },
    Sort {
        dtype: DType,
        lines: usize,
        len: usize,
        descending: bool,
        values: bool,
        positions: bool,
    },
    Extremum {
        dtype: DType,
        lines: usize,
        len: usize,
        greatest: bool,
    },
    TopK {
        dtype: DType,
        lines: usize,
        len: usize,
        k: usize,
    },
    Quantile {
        name: String,
        dtype: DType,
        lines: usize,
        len: usize,
        q: u64,
    },
    /// Restoring it requires the feature `linalg`.
    Matrices {
        dtype: DType,
        work: MatrixWork,
        sizes: MatrixSizes,
    },
}

/// The destinations of an operand's elements.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize))]
pub struct SavedOperandPlaces {
    pub start: usize,
    pub sizes: Vec<usize>,
    pub strides: Vec<isize>,
}

/// Which numbers of a seed's stream are drawn for the elements.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize))]
pub struct SavedNumbers {
    pub start: u64,
    /// The size and the factor of each axis.
    pub axes: Vec<(usize, u64)>,
}
