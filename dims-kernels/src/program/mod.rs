//! Small programs of scalar operations: the computation of each element of an expression, as data.
//!
//! A [`ScalarProgram`] is straight-line code. Each instruction computes a value that later ones
//! can read. Operands are numbered in the order of their rows of strides in a
//! [nest](crate::loops::nest). Recorded steps contain such programs. [`builder`] writes them,
//! [`derivative`] derives new ones from them, and [`interpreter`] runs them tile by tile.

pub mod builder;
pub mod derivative;
pub mod interpreter;
pub mod lowered;
pub mod symbol;

pub use crate::ops::code;
use crate::ops::code::{BinaryOpcode, DType, Number, RegisterKind, UnaryOpcode};
use crate::ops::function::Functions;
use alloc::vec::Vec;
use core::mem::discriminant;
use smallvec::SmallVec;

/// The index of an instruction, which stands for its value.
pub type Register = u32;

/// One instruction.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Instruction {
    /// The element of an operand.
    Load(u32),
    /// The position along the loops, computed from the row of strides of an operand without memory.
    Position(u32),
    /// A constant.
    Constant(Number),
    /// An operation on one value.
    Unary(UnaryOpcode, Register),
    /// An operation on two values.
    Binary(BinaryOpcode, Register, Register),
    /// The second value if the first is true, otherwise the third.
    Select(Register, Register, Register),
    /// A value converted to another type.
    Cast(DType, Register),
    /// The function with this index, applied to two values. If it takes one value, the second is
    /// the first again.
    Call(u32, Register, Register),
}

impl Instruction {
    /// Whether two instructions are the same. As constants, 0 and -0 differ, and NaNs with the same
    /// bits are the same.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        match (self, other) {
            (Instruction::Constant(Number::Float(a)), Instruction::Constant(Number::Float(b))) => {
                a.to_bits() == b.to_bits()
            }
            (Instruction::Unary(op, a), Instruction::Unary(other, b)) => {
                a == b && discriminant(op) == discriminant(other) && op.words() == other.words()
            }
            (Instruction::Binary(op, a, b), Instruction::Binary(other, c, d)) => {
                (a, b) == (c, d) && discriminant(op) == discriminant(other) && op.words() == other.words()
            }
            _ => self == other,
        }
    }

    /// The same instruction with other registers as its inputs.
    pub(crate) fn with_inputs(self, of: impl Fn(Register) -> Register) -> Self {
        match self {
            Instruction::Load(_) | Instruction::Position(_) | Instruction::Constant(_) => self,
            Instruction::Unary(op, a) => Instruction::Unary(op, of(a)),
            Instruction::Binary(op, a, b) => Instruction::Binary(op, of(a), of(b)),
            Instruction::Select(cond, a, b) => Instruction::Select(of(cond), of(a), of(b)),
            Instruction::Cast(to, a) => Instruction::Cast(to, of(a)),
            Instruction::Call(number, a, b) => Instruction::Call(number, of(a), of(b)),
        }
    }

    /// The values that the instruction reads.
    pub(crate) fn inputs(self) -> impl Iterator<Item = Register> {
        let inputs = match self {
            Instruction::Load(_) | Instruction::Position(_) | Instruction::Constant(_) => [None; 3],
            Instruction::Unary(_, a) | Instruction::Cast(_, a) => [Some(a), None, None],
            Instruction::Binary(_, a, b) | Instruction::Call(_, a, b) => [Some(a), Some(b), None],
            Instruction::Select(a, b, c) => [Some(a), Some(b), Some(c)],
        };
        inputs.into_iter().flatten()
    }
}

/// Straight-line code over the elements of operands.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ScalarProgram {
    instructions: SmallVec<[Instruction; 8]>,
    kinds: SmallVec<[RegisterKind; 8]>,
    functions: Functions,
    result: Register,
}

impl ScalarProgram {
    /// A program of these instructions, with the kind of each value and the functions that the
    /// instructions call.
    #[cfg(feature = "std")]
    pub(crate) fn of(
        instructions: impl IntoIterator<Item = (Instruction, RegisterKind)>,
        functions: Functions,
        result: Register,
    ) -> Self {
        let (instructions, kinds) = instructions.into_iter().unzip();
        ScalarProgram { instructions, kinds, functions, result }
    }

    /// The instructions. The result need not be the last one.
    pub fn instructions(&self) -> &[Instruction] {
        &self.instructions
    }

    /// The kind of an instruction's value.
    pub fn kind(&self, register: Register) -> RegisterKind {
        self.kinds[register as usize]
    }

    /// The functions that the program calls.
    pub fn functions(&self) -> &Functions {
        &self.functions
    }

    /// Whether two programs have equal instructions, and therefore equal results for equal
    /// operands.
    #[cfg(feature = "std")]
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        let instructions = self.instructions.iter().zip(&other.instructions);
        (self.result, self.instructions.len()) == (other.result, other.instructions.len())
            && self.kinds == other.kinds
            && self.functions == other.functions
            && instructions.into_iter().all(|(a, b)| a.is_same(b))
    }

    /// The register of the result.
    pub fn result(&self) -> Register {
        self.result
    }

    pub(crate) fn instruction(&self, register: Register) -> Instruction {
        self.instructions[register as usize]
    }

    /// Whether an operand is read.
    pub fn reads(&self, operand: u32) -> bool {
        self.instructions
            .iter()
            .any(|own| matches!(own, Instruction::Load(at) | Instruction::Position(at) if *at == operand))
    }

    /// The operands that a value is computed from.
    #[cfg(feature = "std")]
    pub(crate) fn read_by(&self, register: Register) -> Vec<u32> {
        let mut needed: SmallVec<[bool; 16]> = SmallVec::from_elem(false, self.instructions.len());
        mark_needed(&self.instructions, &mut needed, &[register]);
        let needed = self.instructions.iter().zip(needed).filter(|&(_, needed)| needed);
        needed
            .filter_map(|(own, _)| match *own {
                Instruction::Load(at) | Instruction::Position(at) => Some(at),
                _ => None,
            })
            .collect()
    }

    /// The operands that are multiplied, and the constant factor, if the program is a product of
    /// unchanged operands and float constants.
    pub fn product(&self) -> Option<(Vec<u32>, f64)> {
        let (mut factors, mut scale) = (Vec::new(), 1.0);
        let mut open = vec![self.result];
        while let Some(register) = open.pop() {
            match self.instruction(register) {
                Instruction::Load(operand) => factors.push(operand),
                Instruction::Constant(Number::Float(value)) => scale *= value,
                Instruction::Binary(BinaryOpcode::Mul | BinaryOpcode::Chain, a, b) => open.extend([b, a]),
                _ => return None,
            }
        }
        Some((factors, scale))
    }

    /// Whether a register holds the bits of an unsigned integer that is as wide as the register.
    /// `load` says whether an operand has such elements.
    pub(crate) fn is_unsigned(&self, register: Register, load: impl Fn(u32) -> bool) -> bool {
        if self.kind(register) != RegisterKind::Int {
            return false;
        }
        let mut at = register;
        loop {
            match self.instruction(at) {
                Instruction::Load(operand) => return load(operand),
                Instruction::Cast(to, _) => return to.is_unsigned_word(),
                Instruction::Call(number, ..) => {
                    return self.functions.get(number).dtype().is_unsigned_word();
                }
                Instruction::Position(_)
                | Instruction::Constant(_)
                | Instruction::Unary(UnaryOpcode::FromEnd(_), _) => return false,
                // Both operands have the same type.
                Instruction::Unary(_, a) | Instruction::Binary(_, a, _) | Instruction::Select(_, a, _) => {
                    at = a;
                }
            }
        }
    }

    /// The program with its operands renumbered.
    pub fn with_operands(mut self, number: impl Fn(u32) -> u32) -> Self {
        for instruction in &mut self.instructions {
            if let Instruction::Load(at) | Instruction::Position(at) = instruction {
                *at = number(*at);
            }
        }
        self
    }
}

/// Marks the instructions that some results need.
fn mark_needed(instructions: &[Instruction], needed: &mut [bool], results: &[Register]) {
    results.iter().for_each(|&result| needed[result as usize] = true);
    for (at, instruction) in instructions.iter().enumerate().rev() {
        if needed[at] {
            instruction.inputs().for_each(|input| needed[input as usize] = true);
        }
    }
}
