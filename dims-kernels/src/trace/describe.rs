//! Programs as text, for plans and listings.

use crate::ops::code::Number;
use crate::program::{Instruction, Register, ScalarProgram};
use alloc::string::String;
use core::fmt::Write;
use smallvec::SmallVec;

impl ScalarProgram {
    /// The program as text. Deeply nested values are written as `..`.
    pub fn describe(&self) -> String {
        self.describe_value(self.result())
    }

    /// A value of the program as text.
    pub(in crate::trace) fn describe_value(&self, value: Register) -> String {
        self.describe_by(value, &|number| format!("x{number}"))
    }

    /// The number of operations for each element.
    pub(in crate::trace) fn operations(&self) -> usize {
        let is_operation = |own: &&Instruction| {
            !matches!(own, Instruction::Load(_) | Instruction::Position(_) | Instruction::Constant(_))
        };
        self.instructions().iter().filter(is_operation).count()
    }

    /// The program as text. `name` gives the names of the operands that it loads.
    pub(super) fn describe_with(&self, name: &dyn Fn(u32) -> String) -> String {
        self.describe_by(self.result(), name)
    }

    fn describe_by(&self, value: Register, name: &dyn Fn(u32) -> String) -> String {
        fn words(
            program: &ScalarProgram,
            register: u32,
            depth: usize,
            name: &dyn Fn(u32) -> String,
        ) -> String {
            let inner = |register: u32| {
                if depth > 6 { "..".into() } else { words(program, register, depth + 1, name) }
            };
            match program.instruction(register) {
                Instruction::Load(number) => name(number),
                Instruction::Position(number) => format!("position{number}"),
                Instruction::Constant(Number::Float(value)) => format!("{value}"),
                Instruction::Constant(Number::Int(value)) => format!("{value}"),
                Instruction::Constant(Number::Bool(value)) => format!("{value}"),
                Instruction::Unary(op, a) => call(op.method(), &inner(a)),
                Instruction::Binary(op, a, b) => call(op.method(), &format!("{}, {}", inner(a), inner(b))),
                Instruction::Select(c, a, b) => format!("select({}, {}, {})", inner(c), inner(a), inner(b)),
                Instruction::Cast(_, a) => format!("cast({})", inner(a)),
                Instruction::Call(number, a, b) => {
                    let function = program.functions().get(number);
                    match function.operands() {
                        1 => format!("{}({})", function.name(), inner(a)),
                        _ => format!("{}({}, {})", function.name(), inner(a), inner(b)),
                    }
                }
            }
        }
        words(self, value, 0, name)
    }
}

/// The call of a method with these operands and constants: `nan_to(%1, 0.5)` for the operand `%1`.
fn call((method, constants): (&str, SmallVec<[Number; 2]>), operands: &str) -> String {
    let mut text = format!("{method}({operands}");
    for constant in constants {
        // Writing to a string does not fail.
        let _ = match constant {
            Number::Float(value) => write!(text, ", {value:?}"),
            Number::Int(value) => write!(text, ", {value}"),
            Number::Bool(value) => write!(text, ", {value}"),
        };
    }
    text.push(')');
    text
}
