//! Merges programs instruction by instruction. Equal instructions become one. Nothing else is
//! simplified, so results have the same bits.

use crate::ops::code::{BinaryOpcode, DType, Number, RegisterKind};
use crate::ops::function::Functions;
use crate::program::{Instruction, Register, ScalarProgram};
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use smallvec::SmallVec;

/// A program with several results, under construction.
#[derive(Clone, Default)]
pub(super) struct MergedPrograms {
    instructions: Vec<(Instruction, RegisterKind)>,
    functions: Functions,
    /// For each register, the instructions that have it as their first input.
    readers: Vec<SmallVec<[Register; 2]>>,
    /// The instructions that read each operand.
    loads: BTreeMap<u32, Register>,
    /// The other instructions without inputs.
    constants: Vec<Register>,
}

impl MergedPrograms {
    pub(super) fn len(&self) -> usize {
        self.instructions.len()
    }

    /// The number of operations for each position.
    pub(super) fn operations(&self) -> usize {
        self.instructions.iter().filter(|(own, _)| own.inputs().next().is_some()).count()
    }

    fn kind(&self, register: Register) -> RegisterKind {
        self.instructions[register as usize].1
    }

    fn push(&mut self, instruction: Instruction, kind: RegisterKind) -> Register {
        let first = instruction.inputs().next();
        let operand = match instruction {
            Instruction::Load(operand) | Instruction::Position(operand) => Some(operand),
            _ => None,
        };
        let known = match (first, operand) {
            (Some(first), _) => &self.readers[first as usize][..],
            (None, Some(operand)) => self.loads.get(&operand).map_or(&[][..], core::slice::from_ref),
            (None, None) => &self.constants[..],
        };
        let is_same = |&&at: &&Register| {
            let (own, own_kind) = &self.instructions[at as usize];
            *own_kind == kind && own.is_same(&instruction)
        };
        if let Some(&at) = known.iter().find(is_same) {
            return at;
        }
        let register = self.instructions.len() as Register;
        match (first, operand) {
            (Some(first), _) => self.readers[first as usize].push(register),
            (None, Some(operand)) => {
                self.loads.insert(operand, register);
            }
            (None, None) => self.constants.push(register),
        }
        self.instructions.push((instruction, kind));
        self.readers.push(SmallVec::new());
        register
    }

    pub(super) fn load(&mut self, operand: u32, kind: RegisterKind) -> Register {
        self.push(Instruction::Load(operand), kind)
    }

    /// The position along the loops, as an operand.
    pub(super) fn position(&mut self, operand: u32) -> Register {
        self.push(Instruction::Position(operand), RegisterKind::Int)
    }

    /// Appends a program, and returns the register of its result. `leaf` returns the register of an
    /// operand.
    pub(super) fn append(
        &mut self,
        program: &ScalarProgram,
        leaf: &mut dyn FnMut(&mut Self, u32) -> Register,
    ) -> Register {
        let mut own: Vec<Register> = Vec::with_capacity(program.instructions().len());
        for (at, &instruction) in program.instructions().iter().enumerate() {
            let kind = program.kind(at as Register);
            let register = match instruction.with_inputs(|register| own[register as usize]) {
                Instruction::Load(number) | Instruction::Position(number) => {
                    let register = leaf(self, number);
                    assert_eq!(self.kind(register), kind, "operands are of the kind that a program reads");
                    register
                }
                Instruction::Call(number, a, b) => {
                    let number = self.functions.number(program.functions().get(number));
                    self.push(Instruction::Call(number, a, b), kind)
                }
                instruction => self.push(instruction, kind),
            };
            own.push(register);
        }
        own[program.result() as usize]
    }

    pub(super) fn zero(&mut self, kind: RegisterKind) -> Register {
        self.push(Instruction::Constant(Number::Float(0.0)), kind)
    }

    /// `a + b`, for floats of the same kind.
    pub(super) fn sum(&mut self, a: Register, b: Register) -> Register {
        let kind = self.kind(a);
        self.push(Instruction::Binary(BinaryOpcode::Add, a, b), kind)
    }

    /// A float, converted to this kind if it has another.
    pub(super) fn converted(&mut self, a: Register, kind: RegisterKind) -> Register {
        match kind {
            _ if self.kind(a) == kind => a,
            RegisterKind::F64 => self.push(Instruction::Cast(DType::F64, a), kind),
            _ => self.push(Instruction::Cast(DType::F32, a), kind),
        }
    }

    /// A value after a round trip through memory as an element of this type.
    pub(super) fn rounded(&mut self, a: Register, dtype: DType) -> Register {
        let kind = dtype.kind();
        match dtype {
            _ if dtype.is_narrow() => self.push(Instruction::Cast(dtype, a), kind),
            _ => self.converted(a, kind),
        }
    }

    /// The program that computes these results, without other instructions, and the registers of
    /// the results in it.
    pub(super) fn finish(self, results: &[Register]) -> (ScalarProgram, Vec<Register>) {
        let mut is_needed = alloc::vec![false; self.instructions.len()];
        results.iter().for_each(|&result| is_needed[result as usize] = true);
        for (at, (instruction, _)) in self.instructions.iter().enumerate().rev() {
            if is_needed[at] {
                instruction.inputs().for_each(|input| is_needed[input as usize] = true);
            }
        }
        let mut number: Vec<Register> = alloc::vec![0; self.instructions.len()];
        let mut kept = Vec::new();
        for (at, &(instruction, kind)) in self.instructions.iter().enumerate() {
            if is_needed[at] {
                number[at] = kept.len() as Register;
                kept.push((instruction.with_inputs(|register| number[register as usize]), kind));
            }
        }
        let results: Vec<Register> = results.iter().map(|&result| number[result as usize]).collect();
        let first = results.first().copied().unwrap_or(0);
        (ScalarProgram::of(kept, self.functions, first), results)
    }
}
