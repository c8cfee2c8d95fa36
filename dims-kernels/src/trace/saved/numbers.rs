//! Visits the numbers of a saved recording, to compare and replace them. The numbers of registers
//! and operands in programs are not visited. The elements of a constant are visited only if they
//! are equal, and are `f32` or `f64`.

use super::write::SavedElement;
use super::{
    SavedAttention, SavedConstant, SavedField, SavedIndex, SavedInstruction, SavedKind, SavedLines,
    SavedLookup, SavedNumbers, SavedOperand, SavedOperandPlaces, SavedOperation, SavedPart, SavedPlace,
    SavedProgramText, SavedRecording, SavedReduction, SavedRule, SavedStep, SavedTable, SavedType, SavedWork,
};
use crate::memory::runs::RowRun;
use crate::ops::code::DType;
use crate::ops::matrix::MatrixSizes;
use crate::program::interpreter::ProgramOutput;
use crate::scalar::Real;
use alloc::vec::Vec;

/// A number in saved data.
pub enum Numeral<'n> {
    /// An unsigned number, such as a size, a number of elements, or the number of a value.
    Unsigned(&'n mut usize),
    /// A stride, an offset, or an integer constant of a program.
    Signed(&'n mut isize),
    /// A seed, the number of a derived seed, or a start or a factor in a stream of random numbers.
    Word(&'n mut u64),
    /// A float, an element, or a constant of an operation, by its bits as an `f64`.
    Float(&'n mut u64),
    /// The number of elements of a constant whose elements are all equal. It is at least 1.
    Count(&'n mut usize),
}

pub(super) type VisitNumber<'v> = &'v mut dyn FnMut(Numeral<'_>);

pub(super) trait HasNumbers {
    /// Calls `visit` with each number, always in the same order.
    fn numbers(&mut self, visit: VisitNumber<'_>);
}

impl HasNumbers for usize {
    fn numbers(&mut self, visit: VisitNumber<'_>) {
        visit(Numeral::Unsigned(self));
    }
}

impl HasNumbers for isize {
    fn numbers(&mut self, visit: VisitNumber<'_>) {
        visit(Numeral::Signed(self));
    }
}

impl<X: HasNumbers> HasNumbers for Vec<X> {
    fn numbers(&mut self, visit: VisitNumber<'_>) {
        self.iter_mut().for_each(|own| own.numbers(visit));
    }
}

impl<X: HasNumbers, const LEN: usize> HasNumbers for [X; LEN] {
    fn numbers(&mut self, visit: VisitNumber<'_>) {
        self.iter_mut().for_each(|own| own.numbers(visit));
    }
}

impl<X: HasNumbers> HasNumbers for Option<X> {
    fn numbers(&mut self, visit: VisitNumber<'_>) {
        self.iter_mut().for_each(|own| own.numbers(visit));
    }
}

/// Implements the trait for structs: these fields have numbers.
macro_rules! structs {
    ($($name:ident: $($field:ident)*;)*) => {$(
        impl HasNumbers for $name {
            fn numbers(&mut self, visit: VisitNumber<'_>) {
                $(self.$field.numbers(visit);)*
            }
        }
    )*};
}

structs! {
    SavedType: len;
    SavedStep: len work;
    SavedPart: field place;
    SavedField: sizes program operands;
    SavedOperand: value place;
    SavedPlace: offset strides table;
    SavedLookup: number start strides;
    SavedIndex: field stride size;
    SavedReduction: field kept reduced reduction;
    SavedLines: field order lines work;
    SavedOperandPlaces: start sizes strides;
    RowRun: count first step;
}

impl SavedRecording {
    /// Calls `visit` with each number of the inputs, constants, tables and outputs.
    pub(super) fn numbers_around(&mut self, visit: VisitNumber<'_>) {
        self.inputs.numbers(visit);
        self.constants.numbers(visit);
        self.tables.numbers(visit);
        self.outputs.numbers(visit);
    }
}

impl HasNumbers for SavedConstant {
    fn numbers(&mut self, visit: VisitNumber<'_>) {
        let bytes = self.dtype.saved_bytes();
        let elements = &mut self.elements.0;
        let (first, others) = elements.split_at_checked(bytes).unwrap_or_default();
        if first.is_empty() || others.chunks_exact(bytes).any(|other| other != first) {
            return;
        }
        let (mut element, mut count) = (first.to_vec(), elements.len() / bytes);
        visit(Numeral::Count(&mut count));
        match self.dtype {
            DType::F32 => visit_element::<f32>(&mut element, visit),
            DType::F64 => visit_element::<f64>(&mut element, visit),
            // Elements of half precision do not tell how they depend on sizes: at the recorded
            // sizes, `1 / n` and `1 / (n - 1)` differ in `bf16` by at most one unit in the last
            // place.
            _ => {}
        }
        // If the elements do not fit into memory, the constant becomes empty.
        let mut all = Vec::new();
        if all.try_reserve_exact(count.saturating_mul(bytes)).is_ok() {
            (0..count).for_each(|_| all.extend_from_slice(&element));
        }
        *elements = all;
    }
}

/// Calls `visit` with a float, given and set by its bytes.
fn visit_element<T: SavedElement + ProgramOutput + Real>(element: &mut Vec<u8>, visit: VisitNumber<'_>) {
    let Some(value) = T::read(element) else { return };
    let known = num_traits::ToPrimitive::to_f64(&value).unwrap_or(f64::NAN).to_bits();
    let mut bits = known;
    visit(Numeral::Float(&mut bits));
    // (An unchanged float is not written, because the conversion could change the bits of a NaN.)
    if bits != known {
        element.clear();
        T::of(f64::from_bits(bits)).write(element);
    }
}

impl HasNumbers for SavedTable {
    fn numbers(&mut self, visit: VisitNumber<'_>) {
        match self {
            SavedTable::Given(offsets) => offsets.numbers(visit),
            SavedTable::Computed { indices, order } => {
                indices.numbers(visit);
                order.numbers(visit);
            }
        }
    }
}

impl HasNumbers for SavedWork {
    fn numbers(&mut self, visit: VisitNumber<'_>) {
        match self {
            SavedWork::Parts(parts) => parts.numbers(visit),
            SavedWork::Rule(rule) => rule.numbers(visit),
        }
    }
}

impl HasNumbers for SavedProgramText {
    fn numbers(&mut self, visit: VisitNumber<'_>) {
        for (instruction, _) in &mut self.instructions {
            match instruction {
                SavedInstruction::Float(bits) => visit(Numeral::Float(bits)),
                SavedInstruction::Int(value) => visit(Numeral::Signed(value)),
                SavedInstruction::Unary(operation, _) | SavedInstruction::Binary(operation, ..) => {
                    operation.numbers(visit);
                }
                SavedInstruction::Load(_)
                | SavedInstruction::Position(_)
                | SavedInstruction::Bool(_)
                | SavedInstruction::Select(..)
                | SavedInstruction::Cast(..) => {}
            }
        }
    }
}

impl HasNumbers for SavedOperation {
    fn numbers(&mut self, visit: VisitNumber<'_>) {
        self.1.iter_mut().for_each(|bits| visit(Numeral::Float(bits)));
    }
}

impl HasNumbers for SavedAttention {
    fn numbers(&mut self, visit: VisitNumber<'_>) {
        let SavedAttention { operands, mask, bias, scale, features, over, scores, kept, dtype: _ } = self;
        operands.numbers(visit);
        mask.numbers(visit);
        bias.numbers(visit);
        visit(Numeral::Float(scale));
        [features, over, scores, kept].into_iter().for_each(|own| own.numbers(visit));
    }
}

impl HasNumbers for SavedNumbers {
    fn numbers(&mut self, visit: VisitNumber<'_>) {
        visit(Numeral::Word(&mut self.start));
        for (size, factor) in &mut self.axes {
            size.numbers(visit);
            visit(Numeral::Word(factor));
        }
    }
}

impl HasNumbers for SavedRule {
    fn numbers(&mut self, visit: VisitNumber<'_>) {
        match self {
            SavedRule::Reduction(own) | SavedRule::MomentOfLines(own) => own.numbers(visit),
            SavedRule::Lines(own) => own.numbers(visit),
            SavedRule::LinePullBack { lines, y, dy } => {
                lines.numbers(visit);
                y.numbers(visit);
                dy.numbers(visit);
            }
            SavedRule::BestOf { x, y, order, axis, dtype: _ } => {
                x.numbers(visit);
                y.numbers(visit);
                order.numbers(visit);
                axis.numbers(visit);
            }
            SavedRule::Attention(own) => own.numbers(visit),
            SavedRule::AttentionPullBack { attention, dy, numbers, lens, dtype: _ } => {
                attention.numbers(visit);
                dy.numbers(visit);
                numbers.numbers(visit);
                lens.numbers(visit);
            }
            SavedRule::Recurrence { a, b, axis, order, backward: _, dtype: _ } => {
                a.numbers(visit);
                b.numbers(visit);
                axis.numbers(visit);
                order.numbers(visit);
            }
            SavedRule::Placed { parts, around, dtype: _ } => {
                parts.numbers(visit);
                around.numbers(visit);
            }
            SavedRule::Detached { field, order, dtype: _ } => {
                field.numbers(visit);
                order.numbers(visit);
            }
            SavedRule::SumOfSquares(operands) => operands.numbers(visit),
            SavedRule::Kind { kind, operands, number } => {
                kind.numbers(visit);
                operands.numbers(visit);
                number.numbers(visit);
            }
        }
    }
}

impl HasNumbers for SavedKind {
    fn numbers(&mut self, visit: VisitNumber<'_>) {
        let mut unsigned = |all: &mut [&mut usize]| all.iter_mut().for_each(|own| own.numbers(visit));
        match self {
            SavedKind::MoveRows { outer, size, inner, sources, name: _, dtype: _, fill: _ } => {
                unsigned(&mut [outer, size, inner]);
                sources.numbers(visit);
            }
            SavedKind::AddAtPlaces { len, operands, name: _, dtype: _ } => {
                unsigned(&mut [len]);
                operands.numbers(visit);
            }
            SavedKind::MeanOfParts { parts, dtype: _ } | SavedKind::MaxOfParts { parts, dtype: _ } => {
                parts.numbers(visit);
            }
            SavedKind::DropElements { count, p, seed, numbers, dtype: _ } => {
                unsigned(&mut [count]);
                visit(Numeral::Float(p));
                if let Some(seed) = seed {
                    visit(Numeral::Word(seed));
                }
                numbers.numbers(visit);
            }
            SavedKind::StandardizeAffine { lines, len, eps, dtype: _ } => {
                unsigned(&mut [lines, len]);
                visit(Numeral::Float(eps));
            }
            SavedKind::DrawElements { count, numbers, dtype: _, distribution: _ }
            | SavedKind::DrawTruths { count, numbers, dtype: _ } => {
                unsigned(&mut [count]);
                numbers.numbers(visit);
            }
            SavedKind::DrawOrder { size } => unsigned(&mut [size]),
            SavedKind::SplitSeed { at } => visit(Numeral::Word(at)),
            SavedKind::Sort { lines, len, dtype: _, descending: _, values: _, positions: _ }
            | SavedKind::Extremum { lines, len, dtype: _, greatest: _ } => unsigned(&mut [lines, len]),
            SavedKind::TopK { lines, len, k, dtype: _ } => unsigned(&mut [lines, len, k]),
            SavedKind::Quantile { lines, len, q, name: _, dtype: _ } => {
                unsigned(&mut [lines, len]);
                visit(Numeral::Float(q));
            }
            SavedKind::Matrices { dtype: _, work: _, sizes } => {
                let MatrixSizes { batch, rows, columns, right } = sizes;
                unsigned(&mut [batch, rows, columns, right]);
            }
        }
    }
}
