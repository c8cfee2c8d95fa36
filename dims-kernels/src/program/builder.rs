//! Writes programs.

use super::{Instruction, Register, ScalarProgram, mark_needed};
use crate::ops::code::{BinaryOpcode, Code, DType, Number, RegisterKind, UnaryOpcode};
use crate::ops::function::{self, Function};
use alloc::sync::Arc;
use alloc::vec::Vec;
use smallvec::SmallVec;

/// Writes a program, and simplifies it: equal instructions are merged, and operations without
/// effect, such as products with 1 and sums with 0, are removed.
#[derive(Clone, Debug, Default)]
pub struct Builder {
    program: ScalarProgram,
    /// Whether the program must compute the same bits as the operations. Then it is simplified only
    /// where the result is the same for all values.
    exact: bool,
    /// Registers whose elements have fewer bits than the register, and the type of these elements.
    narrow: SmallVec<[(Register, DType); 2]>,
    /// Operands of unsigned integers that fill a register.
    unsigned: SmallVec<[u32; 2]>,
}

impl Builder {
    /// An empty program.
    pub fn new() -> Self {
        Builder::default()
    }

    /// An empty program that is only simplified where no bit of a result changes. So `x + 0` does
    /// not become `x`, because `-0 + 0` is 0, and `0 - x` does not become `-x`, because `0 - 0` is
    /// 0.
    pub fn exact() -> Self {
        Builder { exact: true, ..Builder::default() }
    }

    /// Continues a program.
    pub fn from_program(program: ScalarProgram) -> Self {
        Builder { program, ..Builder::default() }
    }

    /// The kind of a value.
    pub fn kind(&self, register: Register) -> RegisterKind {
        self.program.kind(register)
    }

    pub(crate) fn instruction(&self, register: Register) -> Instruction {
        self.program.instruction(register)
    }

    fn push(&mut self, instruction: Instruction, kind: RegisterKind) -> Register {
        self.push_typed(instruction, kind, None)
    }

    /// An instruction. The type only matters for constants: equal constants of different types have
    /// different registers, because operations on them are wrapped around or rounded differently.
    fn push_typed(&mut self, instruction: Instruction, kind: RegisterKind, dtype: Option<DType>) -> Register {
        let is_constant = matches!(instruction, Instruction::Constant(_));
        let is_same = |&at: &Register| {
            self.kind(at) == kind
                && self.instruction(at).is_same(&instruction)
                && (!is_constant || self.narrow_type(at) == dtype)
        };
        let next = self.program.kinds.len() as Register;
        if let Some(at) = (0..next).find(is_same) {
            return at;
        }
        self.program.instructions.push(instruction);
        self.program.kinds.push(kind);
        next
    }

    /// The element of an operand of this type.
    pub fn load(&mut self, operand: u32, dtype: DType) -> Register {
        let register = self.push(Instruction::Load(operand), dtype.kind());
        if dtype.is_unsigned_word() && !self.unsigned.contains(&operand) {
            self.unsigned.push(operand);
        }
        self.of_type(register, dtype)
    }

    /// Records the type of elements that have fewer bits than their register.
    pub(crate) fn of_type(&mut self, register: Register, dtype: DType) -> Register {
        if dtype.is_narrow() && self.narrow_type(register).is_none() {
            self.narrow.push((register, dtype));
        }
        register
    }

    fn narrow_type(&self, register: Register) -> Option<DType> {
        self.narrow.iter().find(|(own, _)| *own == register).map(|&(_, dtype)| dtype)
    }

    fn is_unsigned(&self, register: Register) -> bool {
        self.program.is_unsigned(register, |operand| self.unsigned.contains(&operand))
    }

    /// The result of an operation on elements of a type, wrapped around or rounded to that type.
    /// `leaves_type` tells whether the result may be a value that the type does not have.
    fn wrapped(&mut self, result: Register, dtype: Option<DType>, leaves_type: bool) -> Register {
        match dtype {
            Some(dtype) if self.kind(result) == dtype.kind() => {
                if leaves_type {
                    self.cast(dtype, result)
                } else {
                    self.of_type(result, dtype)
                }
            }
            _ => result,
        }
    }

    /// The element of an operand, in a register of this kind.
    pub fn load_as(&mut self, operand: u32, kind: RegisterKind) -> Register {
        self.push(Instruction::Load(operand), kind)
    }

    /// A position along the loops.
    pub fn position(&mut self, operand: u32) -> Register {
        self.push(Instruction::Position(operand), RegisterKind::Int)
    }

    /// A constant.
    pub fn constant(&mut self, number: Number, kind: RegisterKind) -> Register {
        self.push(Instruction::Constant(number), kind)
    }

    /// A constant of an element type.
    #[cfg(feature = "std")]
    pub(crate) fn constant_of(&mut self, number: Number, dtype: DType) -> Register {
        let narrow = dtype.is_narrow().then_some(dtype);
        let constant = self.push_typed(Instruction::Constant(number), dtype.kind(), narrow);
        let constant = self.of_type(constant, dtype);
        // Only a cast can mark a constant as an unsigned integer that fills a register.
        self.cast(dtype, constant)
    }

    /// A constant float.
    pub fn float(&mut self, value: f64, kind: RegisterKind) -> Register {
        self.constant(Number::Float(value), kind)
    }

    /// The value of a register, if it is a float constant.
    fn known(&self, register: Register) -> Option<f64> {
        match self.instruction(register) {
            Instruction::Constant(Number::Float(value)) => Some(value),
            _ => None,
        }
    }

    /// An operation on one value.
    pub fn unary(&mut self, op: UnaryOpcode, a: Register) -> Register {
        let kind = if op.is_test() { RegisterKind::Bool } else { self.kind(a) };
        // These two simplifications are exact.
        if let (UnaryOpcode::Neg, Some(value)) = (op, self.known(a)) {
            let dtype = self.narrow_type(a);
            let negated = self.push_typed(Instruction::Constant(Number::Float(-value)), kind, dtype);
            return self.wrapped(negated, dtype, false);
        }
        if let (UnaryOpcode::Neg, Instruction::Unary(UnaryOpcode::Neg, inner)) = (op, self.instruction(a)) {
            return inner;
        }
        let result = self.push(Instruction::Unary(op, a), kind);
        if matches!(op, UnaryOpcode::FromEnd(_)) {
            return result;
        }
        let leaves_type = if kind == RegisterKind::Int { op.leaves_type() } else { op != UnaryOpcode::Neg };
        self.wrapped(result, self.narrow_type(a), leaves_type)
    }

    /// An operation on two values.
    pub fn binary(&mut self, op: BinaryOpcode, a: Register, b: Register) -> Register {
        let kind = if op.is_comparison() { RegisterKind::Bool } else { self.kind(a) };
        let (mut a, mut b) = (a, b);
        if op.is_symmetric() && self.known(a).is_some() && !self.exact {
            (a, b) = (b, a);
        }
        match (op, self.known(a), self.known(b)) {
            _ if self.exact => {}
            (BinaryOpcode::Add, Some(x), Some(y)) => return self.float(x + y, kind),
            (BinaryOpcode::Chain, Some(0.0), Some(_)) => return a,
            (BinaryOpcode::Chain, Some(_), Some(0.0)) => return b,
            (BinaryOpcode::Mul | BinaryOpcode::Chain, Some(x), Some(y)) => return self.float(x * y, kind),
            (BinaryOpcode::Add | BinaryOpcode::Sub, _, Some(0.0)) => return a,
            (BinaryOpcode::Sub, Some(0.0), _) => return self.unary(UnaryOpcode::Neg, b),
            (BinaryOpcode::Mul | BinaryOpcode::Chain | BinaryOpcode::Div, _, Some(1.0)) => return a,
            (BinaryOpcode::Mul | BinaryOpcode::Chain, _, Some(-1.0)) => {
                return self.unary(UnaryOpcode::Neg, a);
            }
            (BinaryOpcode::Chain, _, Some(0.0)) => return b,
            // For a finite constant other than 0, a plain product has the same result, except for
            // the sign of 0.
            (BinaryOpcode::Chain, _, Some(value)) if value.is_finite() => {
                return self.push(Instruction::Binary(BinaryOpcode::Mul, a, b), kind);
            }
            _ => {}
        }
        let result = self.push(Instruction::Binary(op, a, b), kind);
        // A constant without a type has the type of the other operand.
        let leaves_type = kind != RegisterKind::Int || op.leaves_type();
        self.wrapped(result, self.narrow_type(a).or(self.narrow_type(b)), leaves_type)
    }

    /// `if cond { a } else { b }`
    pub fn select(&mut self, cond: Register, a: Register, b: Register) -> Register {
        if a == b {
            return a;
        }
        let result = self.push(Instruction::Select(cond, a, b), self.kind(a));
        self.wrapped(result, self.narrow_type(a).or(self.narrow_type(b)), false)
    }

    /// A value converted to another type.
    pub fn cast(&mut self, to: DType, a: Register) -> Register {
        let is_same = match to.kind() {
            RegisterKind::Int => {
                self.kind(a) == RegisterKind::Int
                    && self.narrow_type(a) == to.is_narrow().then_some(to)
                    && self.is_unsigned(a) == to.is_unsigned_word()
            }
            kind => self.kind(a) == kind && self.narrow_type(a) == to.is_narrow().then_some(to),
        };
        if is_same {
            return a;
        }
        let result = self.push(Instruction::Cast(to, a), to.kind());
        self.of_type(result, to)
    }

    /// A value converted to a register of this kind.
    pub fn cast_kind(&mut self, to: RegisterKind, a: Register) -> Register {
        let to = match to {
            RegisterKind::F32 => DType::F32,
            RegisterKind::F64 => DType::F64,
            RegisterKind::Bool => DType::Bool,
            RegisterKind::Int => DType::Isize,
        };
        if to.is_float() && self.is_unsigned(a) {
            return self.unsigned_as_float(to, a);
        }
        self.cast(to, a)
    }

    /// A call of a function with one value or two.
    pub fn call(&mut self, function: &Arc<dyn Function>, operands: &[Register]) -> Register {
        let number = self.program.functions.number(function);
        let (a, b) = (operands[0], operands[operands.len() - 1]);
        self.push(Instruction::Call(number, a, b), function::kind(&**function))
    }

    /// A scalar operation; `None` if programs do not support it.
    pub fn operation(&mut self, code: Code, operands: &[Register]) -> Option<Register> {
        let is_unsigned = operands.iter().any(|&operand| self.is_unsigned(operand));
        match (code, operands) {
            (Code::Unary(op), &[a]) if is_unsigned => self.unsigned_unary(op, a),
            (Code::Binary(op), &[a, b]) if is_unsigned => Some(self.unsigned_binary(op, a, b)),
            (Code::Cast(to), &[a]) if is_unsigned && to.is_float() => Some(self.unsigned_as_float(to, a)),
            (Code::Unary(op), &[a]) if self.kind(a) == RegisterKind::Int => match op {
                UnaryOpcode::Clamp(low, high) if !is_bound(low) || !is_bound(high) => None,
                UnaryOpcode::LeakyRelu(slope) if !is_exact(slope) => None,
                op => Some(self.unary(op, a)),
            },
            (Code::Unary(op), &[a]) => Some(self.unary(op, a)),
            (Code::Binary(op), &[a, b]) => Some(self.binary(op, a, b)),
            (Code::Cast(to), &[a]) => Some(self.cast(to, a)),
            (Code::Same, &[a]) if is_unsigned => Some(self.unsigned_as_index(a)),
            // An integer as an index.
            (Code::Same, &[a]) if self.kind(a) == RegisterKind::Int => Some(self.cast(DType::Isize, a)),
            (Code::Same, &[a]) | (Code::Left, &[a, _]) | (Code::Right, &[_, a]) => Some(a),
            _ => None,
        }
    }

    fn integer(&mut self, value: isize) -> Register {
        self.constant(Number::Int(value), RegisterKind::Int)
    }

    /// Flips the top bit. Signed comparisons of the results order the operands as unsigned
    /// integers.
    fn in_other_order(&mut self, a: Register) -> Register {
        let least = self.integer(isize::MIN);
        self.binary(BinaryOpcode::Xor, a, least)
    }

    /// An operation on an unsigned integer; `None` if its constants are too large for programs.
    fn unsigned_unary(&mut self, op: UnaryOpcode, a: Register) -> Option<Register> {
        Some(match op {
            UnaryOpcode::Abs | UnaryOpcode::Relu | UnaryOpcode::LeakyRelu(_) => a,
            UnaryOpcode::Signum => {
                let (zero, one) = (self.integer(0), self.integer(1));
                let is_zero = self.binary(BinaryOpcode::Eq, a, zero);
                self.select(is_zero, a, one)
            }
            UnaryOpcode::Relu6 => {
                let most = self.integer(6);
                self.unsigned_binary(BinaryOpcode::Minimum, a, most)
            }
            UnaryOpcode::Clamp(low, high) => {
                if !is_exact(low) || !is_exact(high) {
                    return None;
                }
                let (low, high) = (self.integer(low as isize), self.integer(high as isize));
                let above = self.unsigned_binary(BinaryOpcode::Maximum, a, low);
                self.unsigned_binary(BinaryOpcode::Minimum, above, high)
            }
            // Only negative indices count from the end, and an unsigned integer is not negative.
            UnaryOpcode::FromEnd(_) => self.unsigned_as_index(a),
            _ => self.unary(op, a),
        })
    }

    /// An unsigned integer as an index. Integers above `isize::MAX` become `isize::MAX`.
    fn unsigned_as_index(&mut self, a: Register) -> Register {
        let (zero, most) = (self.integer(0), self.integer(isize::MAX));
        let index = self.cast(DType::Isize, a);
        let is_large = self.binary(BinaryOpcode::Lt, index, zero);
        self.select(is_large, most, index)
    }

    fn unsigned_binary(&mut self, op: BinaryOpcode, a: Register, b: Register) -> Register {
        use BinaryOpcode::*;
        match op {
            Lt | Le | Gt | Ge => {
                let (a, b) = (self.in_other_order(a), self.in_other_order(b));
                self.binary(op, a, b)
            }
            Maximum | Minimum | Fmax | Fmin => {
                let (a, b) = (self.in_other_order(a), self.in_other_order(b));
                let chosen = self.binary(op, a, b);
                self.in_other_order(chosen)
            }
            Heaviside => {
                let (zero, one) = (self.integer(0), self.integer(1));
                let is_zero = self.binary(Eq, a, zero);
                self.select(is_zero, b, one)
            }
            Div | FloorDiv => self.binary(UnsignedDiv, a, b),
            Rem | Remainder => self.binary(UnsignedRem, a, b),
            _ => self.binary(op, a, b),
        }
    }

    fn unsigned_as_float(&mut self, to: DType, a: Register) -> Register {
        let (zero, one, two) = (self.integer(0), self.integer(1), self.integer(2));
        // An integer above `isize::MAX` is halved, converted and doubled. The lost last bit is
        // merged into the half, so that the half is rounded as the whole would be.
        let (half, last) =
            (self.binary(BinaryOpcode::UnsignedDiv, a, two), self.binary(BinaryOpcode::And, a, one));
        let half = self.binary(BinaryOpcode::Or, half, last);
        let half = self.push(Instruction::Cast(to, half), to.kind());
        let twice = self.binary(BinaryOpcode::Add, half, half);
        let own = self.push(Instruction::Cast(to, a), to.kind());
        let is_large = self.binary(BinaryOpcode::Lt, a, zero);
        let result = self.select(is_large, twice, own);
        self.of_type(result, to)
    }

    /// Copies the instructions of another program. `operand` returns the value that replaces a
    /// loaded operand, or `None` if it stays an operand with its number. Returns the result.
    pub fn inline(
        &mut self,
        program: &ScalarProgram,
        operand: &mut dyn FnMut(&mut Self, u32, RegisterKind) -> Option<Register>,
    ) -> Register {
        let values = self.copy(program, &mut |build, leaf, kind| match leaf {
            Instruction::Load(number) => operand(build, number, kind),
            _ => None,
        });
        values[program.result as usize]
    }

    /// Copies the instructions of another program, and renumbers its operands. Returns the value of
    /// each instruction.
    #[cfg(feature = "std")]
    pub(crate) fn inline_all(
        &mut self,
        program: &ScalarProgram,
        number: &dyn Fn(u32) -> u32,
    ) -> Vec<Register> {
        self.copy(program, &mut |build, leaf, kind| match leaf {
            Instruction::Load(at) => Some(build.push(Instruction::Load(number(at)), kind)),
            Instruction::Position(at) => Some(build.push(Instruction::Position(number(at)), kind)),
            _ => None,
        })
    }

    /// Copies the instructions of another program. `leaf` returns the value that replaces an
    /// instruction without inputs, or `None` if it is copied.
    fn copy(
        &mut self,
        program: &ScalarProgram,
        leaf: &mut dyn FnMut(&mut Self, Instruction, RegisterKind) -> Option<Register>,
    ) -> Vec<Register> {
        let mut own: Vec<Register> = Vec::with_capacity(program.instructions.len());
        for (&instruction, &kind) in program.instructions.iter().zip(&program.kinds) {
            let at = |register: Register| own[register as usize];
            let register = match instruction {
                Instruction::Load(_) | Instruction::Position(_) | Instruction::Constant(_) => {
                    match leaf(self, instruction, kind) {
                        Some(register) => register,
                        None => self.push(instruction, kind),
                    }
                }
                Instruction::Unary(op, a) => self.unary(op, at(a)),
                Instruction::Binary(op, a, b) => self.binary(op, at(a), at(b)),
                Instruction::Select(cond, a, b) => self.select(at(cond), at(a), at(b)),
                // The cast says whether the integer is signed. The types of the operands are not
                // known here, so the cast must stay.
                Instruction::Cast(to, a)
                    if kind == RegisterKind::Int && !to.is_narrow() && self.kind(at(a)) == kind =>
                {
                    self.push(Instruction::Cast(to, at(a)), kind)
                }
                // The program already has all roundings. No type is noted for the result, so that
                // later operations add none.
                Instruction::Cast(to, a) if to.is_narrow() && to.is_float() => {
                    self.push(Instruction::Cast(to, at(a)), kind)
                }
                Instruction::Cast(to, a) => self.cast(to, at(a)),
                Instruction::Call(number, a, b) => self.call(program.functions.get(number), &[at(a), at(b)]),
            };
            own.push(register);
        }
        own
    }

    /// The program that computes this value, without instructions that it does not need.
    pub fn finish(self, result: Register) -> ScalarProgram {
        self.finish_all(&[result]).0
    }

    /// The program that computes these values, without instructions that they do not need, and
    /// their registers. Its result is the first value.
    pub(crate) fn finish_all(self, results: &[Register]) -> (ScalarProgram, SmallVec<[Register; 4]>) {
        let mut program = self.program;
        let mut needed: SmallVec<[bool; 16]> = SmallVec::from_elem(false, program.instructions.len());
        mark_needed(&program.instructions, &mut needed, results);
        if !needed.contains(&false) {
            program.result = results[0];
            return (program, SmallVec::from_slice(results));
        }
        let ScalarProgram { instructions, kinds, functions, .. } = program;
        let mut number: SmallVec<[Register; 16]> = SmallVec::from_elem(0, instructions.len());
        let mut program = ScalarProgram { functions, ..ScalarProgram::default() };
        for (at, instruction) in instructions.into_iter().enumerate() {
            if !needed[at] {
                continue;
            }
            number[at] = program.instructions.len() as Register;
            program.instructions.push(instruction.with_inputs(|register| number[register as usize]));
            program.kinds.push(kinds[at]);
        }
        let results: SmallVec<[Register; 4]> =
            results.iter().map(|&result| number[result as usize]).collect();
        program.result = results[0];
        (program, results)
    }
}

/// Whether an integer that is stored as an `f64` was stored exactly. Greater integers are rounded.
fn is_exact(value: f64) -> bool {
    value.abs() < (1_u64 << 53) as f64
}

/// Like [`is_exact`], but also true for the least and the greatest 64-bit integer: the greatest is
/// stored as 2^63, which is converted back to the greatest integer, because conversions saturate.
/// (For integers near these two that `f64` does not hold, `value` is NaN.)
fn is_bound(value: f64) -> bool {
    is_exact(value) || value.abs() >= (1_u64 << 63) as f64
}
