//! Compares operations on floats and their first derivatives with high-precision numbers:
//! `accuracy.txt`, which `accuracy.py` writes.

use super::derivatives::slope;
use super::{BINARY, UNARY, held, run, written};
use crate::ops::code::{BinaryOpcode, DType, RegisterKind, UnaryOpcode};
use crate::program::ScalarProgram;
use crate::program::interpreter::ProgramOutput;
use crate::scalar::{CastTo, Real};
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

/// The allowed error of a value and of a derivative, in units in the last place.
const ULPS: [f64; 2] = [4.0, 8.0];

/// Operations that are less accurate, with the reason.
const WIDER: &[(&str, [f64; 2])] = &[
    // These derivatives are 0 near -0.75, -1.28 and 1.46, where their terms cancel.
    ("Gelu", [10.0, 150.0]),
    ("Silu", [10.0, 50.0]),
    ("LnGamma", [4.0, 100.0]),
    // Rounding `u` makes `e^-u` inaccurate by about `u` units in the last place, and `u` may be 30.
    // In `GeluTanh`, `-u` is the argument of the sigmoid. In `LogAddExp`, `u` is the distance
    // between the operands.
    ("GeluTanh", [50.0, 50.0]),
    ("LogAddExp", [4.0, 30.0]),
    // The exponent minus 1 is rounded.
    ("Powf", [4.0, 50.0]),
];

/// The name and the constant of an operation such as `Elu(0.5)`, as `of_words` takes them.
fn words(name: &str) -> (&str, Vec<u64>) {
    let Some((name, constant)) = name.split_once('(') else { return (name, Vec::new()) };
    let constant = constant.trim_end_matches(')');
    let word = match constant.parse::<i64>() {
        Ok(number) => number as u64,
        Err(_) => constant.parse::<f64>().expect("the constant is a number").to_bits(),
    };
    (name, vec![word])
}

/// The program of an operation, and the number of the operation's operands.
fn program(name: &str, dtype: DType) -> (ScalarProgram, usize) {
    let (base, words) = words(name);
    if let Some(op) = UnaryOpcode::of_words(base, &words) {
        let program = written(|build| {
            let a = build.load(0, dtype);
            build.unary(op, a)
        });
        return (program, 1);
    }
    let op = BinaryOpcode::of_words(base, &words).unwrap_or_else(|| panic!("no operation is named {name}"));
    let program = written(|build| {
        let (a, b) = (build.load(0, dtype), build.load(1, dtype));
        build.binary(op, a, b)
    });
    (program, 2)
}

/// The error of a float in units in the last place; 0 if both floats are subnormal or 0, or if both
/// are near or beyond the greatest float.
fn ulps<T: Real>(found: T, expected: f64) -> f64 {
    let (exact, least): (f64, f64) = (found.cast(), T::min_positive_value().cast());
    if expected.abs() < least && exact.abs() <= least {
        return 0.0;
    }
    let greatest: f64 = T::max_value().cast();
    if exact == expected || expected.abs() > greatest * 0.999_999 && exact.abs() >= greatest * 0.999_999 {
        return 0.0;
    }
    let epsilon: f64 = T::epsilon().cast();
    let exponent = expected.abs().max(least).log2().floor();
    let error = (exact - expected).abs() / (exponent.exp2() * epsilon);
    if error.is_nan() { f64::INFINITY } else { error }
}

trait ToF64 {
    fn cast(self) -> f64;
}
impl<T: Real> ToF64 for T {
    fn cast(self) -> f64 {
        self.to_f64().expect("each float converts to `f64`")
    }
}

/// The lines of one operation: its operands, and the expected value and derivatives.
struct Lines {
    name: &'static str,
    operands: [Vec<f64>; 2],
    expected: [Vec<f64>; 3],
}

fn lines(text: &'static str) -> Vec<Lines> {
    let mut all: Vec<Lines> = Vec::new();
    for line in text.lines() {
        let (name, numbers) = line.split_once(' ').expect("the line has a name and numbers");
        let numbers: Vec<f64> =
            numbers.split(' ').map(|number| number.parse().expect("the word is a number")).collect();
        if all.last().is_none_or(|last| last.name != name) {
            all.push(Lines { name, operands: Default::default(), expected: Default::default() });
        }
        let last = all.last_mut().expect("an item was pushed");
        let operands = numbers.len() / 2;
        for (at, &number) in numbers.iter().enumerate() {
            let to = if at < operands { &mut last.operands[at] } else { &mut last.expected[at - operands] };
            to.push(number);
        }
    }
    all
}

/// The worst line of an operation, for its value and each derivative: the error, and a message that
/// shows it.
fn worst<T: Real + ProgramOutput>(dtype: DType, lines: &Lines) -> Vec<(f64, String)>
where
    f64: CastTo<T>,
{
    let (program, operands) = program(lines.name, dtype);
    let narrow = |x: f64| -> T { x.cast_to() };
    let fits = |x: f64| ToF64::cast(narrow(x)) == x;
    let points: Vec<usize> = (0..lines.operands[0].len())
        .filter(|&at| lines.operands[..operands].iter().all(|operand| fits(operand[at])))
        .collect();
    let of = |operand: &Vec<f64>| held(&points.iter().map(|&at| narrow(operand[at])).collect::<Vec<T>>());
    let inputs: Vec<_> = lines.operands[..operands].iter().map(of).collect();
    let slopes = (0..operands as u32).map(|operand| slope(&program, operand));
    let mut all = Vec::new();
    for (program, expected) in core::iter::once(Some(program.clone())).chain(slopes).zip(&lines.expected) {
        let zeros = || vec![T::zero(); points.len()];
        let found = program.map_or_else(zeros, |program| run::<T>(&program, &inputs, points.len()));
        let mut most = (0.0, String::new());
        for (&at, found) in points.iter().zip(found) {
            let error = ulps(found, expected[at]);
            if error > most.0 {
                let operands: Vec<f64> = lines.operands[..operands].iter().map(|own| own[at]).collect();
                most = (error, format!("{found:?} instead of {} at {operands:?}", expected[at]));
            }
        }
        all.push(most);
    }
    all
}

#[test]
fn operations_lose_no_digits() {
    let all = lines(include_str!("accuracy.txt"));
    let mut wrong = String::new();
    for own in &all {
        let ulps = WIDER.iter().find(|(name, _)| *name == own.name).map_or(ULPS, |&(_, wider)| wider);
        let kinds = [("f32", worst::<f32>(DType::F32, own)), ("f64", worst::<f64>(DType::F64, own))];
        for (kind, worst) in kinds {
            for (order, (error, place)) in worst.into_iter().enumerate() {
                if error > ulps[order.min(1)] {
                    let what =
                        ["the value", "the derivative", "the derivative with respect to the second operand"]
                            [order];
                    wrong += &format!("{} of {kind}: {what} is off by {error:.1} ulp: {place}\n", own.name);
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}

#[test]
fn each_operation_on_floats_is_compared() {
    let all = lines(include_str!("accuracy.txt"));
    let unary = UNARY.iter().filter(|(op, _)| op.kind_of(RegisterKind::F64) == Some(RegisterKind::F64));
    let binary = BINARY.iter().filter(|(op, _)| op.kind_of(RegisterKind::F64) == Some(RegisterKind::F64));
    let names = unary.map(|(op, _)| op.words().0).chain(binary.map(|(op, _)| op.words().0));
    let missing: Vec<&str> = names.filter(|name| all.iter().all(|own| words(own.name).0 != *name)).collect();
    assert!(missing.is_empty(), "`accuracy.py` has no formulas for {missing:?}");
}
