//! Compares derivatives of programs, up to the third order, with finite differences, and tests
//! their values at kinks.

use super::{BINARY, UNARY, held, run, written};
use crate::ops::code::{BinaryOpcode, DType, RegisterKind, UnaryOpcode};
use crate::program::builder::Builder;
use crate::program::derivative;
use crate::program::{Register, ScalarProgram};
use alloc::vec::Vec;
use core::ops::Range;

/// The operand number of the cotangent.
const COTANGENT: u32 = 2;

/// The cotangent times the derivative with respect to an operand; `None` if it is 0 everywhere.
fn pulled_back(program: &ScalarProgram, operand: u32, cotangent: u32) -> Option<ScalarProgram> {
    let depends = derivative::depends_on(program, &[operand])?;
    let mut build = Builder::from_program(program.clone());
    let own: Vec<Register> = (0..program.instructions().len() as Register).collect();
    let given = build.load_as(cotangent, program.kind(program.result()));
    let results = derivative::pull_back(&mut build, program, &own, &depends, &[operand], given);
    results.first().map(|&(_, value)| build.finish(value))
}

/// The derivative with respect to an operand, for a cotangent of 1; `None` if it is 0 everywhere.
pub(super) fn slope(program: &ScalarProgram, operand: u32) -> Option<ScalarProgram> {
    let program = pulled_back(program, operand, COTANGENT)?;
    let mut build = Builder::new();
    let result = build
        .inline(&program, &mut |build, number, kind| (number == COTANGENT).then(|| build.float(1.0, kind)));
    Some(build.finish(result))
}

fn value(program: &ScalarProgram, at: [f64; 2]) -> f64 {
    run::<f64>(program, &[held(&at[..1]), held(&at[1..])], 1)[0]
}

/// The derivative at a point.
fn slope_at(program: &ScalarProgram, operand: u32, at: [f64; 2]) -> f64 {
    slope(program, operand).map_or(0.0, |slope| value(&slope, at))
}

/// The five-point formula: its error is of the order of `h^4`.
fn difference(program: &ScalarProgram, operand: usize, at: [f64; 2]) -> f64 {
    let h = 1e-3;
    let moved = |by: f64| {
        let mut at = at;
        at[operand] += by;
        value(program, at)
    };
    (8.0 * (moved(h) - moved(-h)) - (moved(2.0 * h) - moved(-2.0 * h))) / (12.0 * h)
}

#[track_caller]
fn assert_slopes(program: &ScalarProgram, points: &[[f64; 2]], operands: usize, orders: usize, what: &str) {
    if orders == 0 {
        return;
    }
    for operand in 0..operands {
        for &at in points {
            let (found, expected) = (slope_at(program, operand as u32, at), difference(program, operand, at));
            assert!(
                (found - expected).abs() <= 1e-7 * (1.0 + expected.abs()),
                "{what} with respect to operand {operand} at {at:?}: {found} instead of {expected}"
            );
        }
        if let Some(slope) = slope(program, operand as u32) {
            assert_slopes(
                &slope,
                points,
                operands,
                orders - 1,
                &format!("the derivative of {what} with respect to operand {operand}"),
            );
        }
    }
}

/// Points in the range, chosen to avoid kinks, integers and halves.
fn points(range: &Range<f64>) -> Vec<[f64; 2]> {
    (0..9).map(|at| [range.start + (range.end - range.start) * (f64::from(at) + 0.37) / 9.1, 0.0]).collect()
}

fn unary(op: UnaryOpcode) -> ScalarProgram {
    written(|build| {
        let a = build.load(0, DType::F64);
        build.unary(op, a)
    })
}

fn binary(op: BinaryOpcode) -> ScalarProgram {
    written(|build| {
        let (a, b) = (build.load(0, DType::F64), build.load(1, DType::F64));
        build.binary(op, a, b)
    })
}

/// Operations that are not in the table.
const FURTHER: &[(UnaryOpcode, Range<f64>)] = &[
    (UnaryOpcode::Powi(0), -2.0..2.0),
    (UnaryOpcode::Powi(1), -2.0..2.0),
    (UnaryOpcode::Powi(2), -2.0..2.0),
    (UnaryOpcode::Powi(3), -2.0..2.0),
    (UnaryOpcode::Powi(6), -1.5..1.5),
    (UnaryOpcode::Powi(-1), 0.5..3.0),
    (UnaryOpcode::Powi(-3), -3.0..-0.8),
    (UnaryOpcode::Clamp(-1.0, 2.0), -3.0..3.0),
    (UnaryOpcode::Polygamma(1), 0.6..5.0),
    (UnaryOpcode::Polygamma(2), 0.7..5.0),
    (UnaryOpcode::SincSlope(1), -3.0..3.0),
    (UnaryOpcode::SincSlope(2), -3.0..3.0),
    (UnaryOpcode::SigmoidSlope, -4.0..4.0),
    (UnaryOpcode::NormalBelow, -4.0..4.0),
    (UnaryOpcode::Bell(1.0), -3.0..3.0),
    (UnaryOpcode::Bell(0.5), -3.0..3.0),
];

#[test]
fn of_operations_on_one_operand() {
    let table = UNARY.iter().flat_map(|(op, ranges)| ranges.iter().map(move |range| (op, range)));
    for (&op, range) in table.chain(FURTHER.iter().map(|(op, range)| (op, range))) {
        assert_slopes(&unary(op), &points(range), 1, 3, &format!("{op:?}"));
    }
}

#[test]
fn tests_have_none() {
    for &(op, _) in UNARY.iter().filter(|(op, _)| op.is_test()) {
        let program = written(|build| {
            let a = build.load(0, DType::F64);
            let test = build.unary(op, a);
            build.cast(DType::F64, test)
        });
        assert_eq!(pulled_back(&program, 0, COTANGENT), None, "{op:?}");
    }
}

/// Operations that are not in the table, or not with this constant.
const FURTHER_OF_TWO: &[(BinaryOpcode, [Range<f64>; 2])] =
    &[(BinaryOpcode::SmoothL1(0.0), [-3.0..3.0, -2.0..2.0]), (BinaryOpcode::Chain, [-3.0..3.0, -2.0..2.0])];

#[test]
fn of_operations_on_two_operands() {
    let table = BINARY.iter().flat_map(|(op, ranges)| ranges.iter().map(move |ranges| (op, ranges)));
    for (&op, [first, second]) in table.chain(FURTHER_OF_TWO.iter().map(|(op, ranges)| (op, ranges))) {
        let second = points(second);
        let points: Vec<[f64; 2]> = points(first)
            .iter()
            .enumerate()
            .flat_map(|(at, &[a, _])| [[a, second[at * 4 % 9][0]], [a, second[(at * 7 + 3) % 9][0]]])
            .collect();
        assert_slopes(&binary(op), &points, 2, 2, &format!("{op:?}"));
    }
}

/// The documented values at points without a derivative, and where formulas are undefined.
#[test]
fn at_kinks() {
    let nan = f64::NAN;
    let one = |op: UnaryOpcode, at: f64, expected: f64| {
        let found = slope_at(&unary(op), 0, [at, 0.0]);
        assert_eq!(found, expected, "{op:?} at {at}");
    };
    one(UnaryOpcode::Abs, 0.0, 0.0);
    one(UnaryOpcode::Relu, 0.0, 0.0);
    one(UnaryOpcode::Relu6, 0.0, 0.0);
    one(UnaryOpcode::Relu6, 6.0, 0.0);
    one(UnaryOpcode::Clamp(-1.0, 2.0), -1.0, 0.0);
    one(UnaryOpcode::Clamp(-1.0, 2.0), 2.0, 0.0);
    one(UnaryOpcode::HardSigmoid, 3.0, 0.0);
    one(UnaryOpcode::HardSwish, 3.0, 1.0);
    one(UnaryOpcode::HardSwish, -3.0, 0.0);
    one(UnaryOpcode::HardShrink(1.0), 1.0, 0.0);
    one(UnaryOpcode::SoftShrink(1.0), -1.0, 0.0);
    one(UnaryOpcode::LeakyRelu(0.25), 0.0, 0.25);
    one(UnaryOpcode::Elu(0.5), 0.0, 0.5);
    one(UnaryOpcode::Sinc, 0.0, 0.0);
    one(UnaryOpcode::NanTo(7.0), nan, 0.0);
    one(UnaryOpcode::Powi(2), 0.0, 0.0);
    one(UnaryOpcode::Powi(1), 0.0, 1.0);
    // Far from 0, where a naive formula is infinite or NaN.
    one(UnaryOpcode::Sigmoid, -1000.0, 0.0);
    one(UnaryOpcode::Softplus, 1000.0, 1.0);
    one(UnaryOpcode::LnSigmoid, -1000.0, 1.0);
    one(UnaryOpcode::Silu, -1000.0, 0.0);
    one(UnaryOpcode::Silu, 1000.0, 1.0);
    one(UnaryOpcode::Mish, 1000.0, 1.0);
    one(UnaryOpcode::Mish, -1000.0, 0.0);
    one(UnaryOpcode::Gelu, 100.0, 1.0);
    one(UnaryOpcode::Gelu, -100.0, 0.0);
    one(UnaryOpcode::GeluTanh, -100.0, 0.0);
    one(UnaryOpcode::Elu(0.5), 1000.0, 1.0);
    one(UnaryOpcode::Celu(0.5), 1000.0, 1.0);
    one(UnaryOpcode::Selu, 1000.0, 1.050_700_987_355_480_5);
    let two = |op: BinaryOpcode, at: [f64; 2], expected: [f64; 2]| {
        let found = [0, 1].map(|operand| slope_at(&binary(op), operand, at));
        let same = |a: f64, b: f64| a == b || (a - b).abs() < 1e-12;
        assert!(
            same(found[0], expected[0]) && same(found[1], expected[1]),
            "{op:?} at {at:?}: {found:?} instead of {expected:?}"
        );
    };
    two(BinaryOpcode::Maximum, [2.0, 2.0], [0.5, 0.5]);
    two(BinaryOpcode::Minimum, [2.0, 2.0], [0.5, 0.5]);
    two(BinaryOpcode::Fmax, [2.0, 2.0], [0.5, 0.5]);
    two(BinaryOpcode::Fmax, [nan, 2.0], [0.0, 1.0]);
    two(BinaryOpcode::Fmax, [2.0, nan], [1.0, 0.0]);
    two(BinaryOpcode::Fmin, [nan, 2.0], [0.0, 1.0]);
    two(BinaryOpcode::Fmin, [2.0, nan], [1.0, 0.0]);
    two(BinaryOpcode::Powf, [0.0, 0.0], [0.0, 0.0]);
    two(BinaryOpcode::Powf, [0.0, 2.0], [0.0, 0.0]);
    two(BinaryOpcode::Powf, [0.0, 1.0], [1.0, 0.0]);
    two(BinaryOpcode::Powf, [3.0, 0.0], [0.0, 3f64.ln()]);
    two(BinaryOpcode::Xlogy, [0.0, 0.0], [0.0, 0.0]);
    two(BinaryOpcode::Xlogy, [0.0, 3.0], [3f64.ln(), 0.0]);
    two(BinaryOpcode::KlDiv, [-1.0, 0.0], [0.0, 0.0]);
    two(BinaryOpcode::Heaviside, [0.0, 3.0], [0.0, 1.0]);
    two(BinaryOpcode::Hypot, [0.0, 0.0], [0.0, 0.0]);
    two(BinaryOpcode::AbsoluteError, [1.0, 1.0], [0.0, 0.0]);
    two(BinaryOpcode::SmoothL1(0.0), [1.0, 1.0], [0.0, 0.0]);
    two(BinaryOpcode::LogAddExp, [1000.0, 0.0], [1.0, 0.0]);
    let infinity = f64::INFINITY;
    two(BinaryOpcode::LogAddExp, [infinity, infinity], [0.5, 0.5]);
    two(BinaryOpcode::LogAddExp, [-infinity, -infinity], [0.5, 0.5]);
    two(BinaryOpcode::LogAddExp, [-infinity, 1.0], [0.0, 1.0]);
    two(BinaryOpcode::Atan2, [0.0, 0.0], [0.0, 0.0]);
    two(BinaryOpcode::Atan2, [infinity, infinity], [0.0, 0.0]);
    two(BinaryOpcode::Atan2, [1.0, infinity], [0.0, 0.0]);
    two(BinaryOpcode::BceWithLogits, [infinity, 1.0], [0.0, -infinity]);
    two(BinaryOpcode::Lerp(1.0), [infinity, 2.0], [0.0, 1.0]);
    for op in [
        UnaryOpcode::Silu,
        UnaryOpcode::Mish,
        UnaryOpcode::Gelu,
        UnaryOpcode::GeluTanh,
        UnaryOpcode::HardSwish,
    ] {
        one(op, -infinity, 0.0);
        one(op, infinity, 1.0);
        assert_eq!(value(&unary(op), [-infinity, 0.0]), 0.0, "{op:?}");
        assert_eq!(value(&unary(op), [infinity, 0.0]), infinity, "{op:?}");
    }
    for (op, at, expected) in [
        (BinaryOpcode::BceWithLogits, [infinity, 1.0], 0.0),
        (BinaryOpcode::BceWithLogits, [infinity, 0.0], infinity),
        (BinaryOpcode::BceWithLogits, [-infinity, 0.0], 0.0),
        (BinaryOpcode::KlDiv, [-infinity, 0.0], 0.0),
        (BinaryOpcode::LogAddExp, [-infinity, -infinity], -infinity),
        (BinaryOpcode::Lerp(0.0), [2.0, infinity], 2.0),
        (BinaryOpcode::Lerp(1.0), [infinity, 2.0], 2.0),
    ] {
        assert_eq!(value(&binary(op), at), expected, "{op:?} at {at:?}");
    }
}

/// The second derivatives of smooth functions, at points where a formula for the first derivative
/// is not smooth.
#[test]
fn of_the_second_order_at_removable_gaps() {
    let second = |program: &ScalarProgram, first: u32, then: u32, at: [f64; 2]| {
        slope_at(&slope(program, first).expect("a derivative"), then, at)
    };
    let pi_square = core::f64::consts::PI * core::f64::consts::PI;
    for at in [0.0, 1e-9, -1e-5, 9.9e-4, 1.01e-3] {
        let found = second(&unary(UnaryOpcode::Sinc), 0, 0, [at, 0.0]);
        let expected = -pi_square / 3.0 + pi_square * pi_square / 10.0 * at * at;
        assert!((found - expected).abs() < 1e-8, "sinc at {at}: {found} instead of {expected}");
    }
    assert_eq!(second(&binary(BinaryOpcode::Powf), 0, 1, [2.0, 0.0]), 0.5);
    assert_eq!(second(&binary(BinaryOpcode::Xlogy), 0, 1, [0.0, 4.0]), 0.25);
}

/// A branch that is not taken does not make a gradient NaN, even if its slope is infinite.
#[test]
fn what_is_not_taken_does_not_count() {
    let program = written(|build| {
        let a = build.load(0, DType::F64);
        let zero = build.float(0.0, RegisterKind::F64);
        let (positive, root) = (build.binary(BinaryOpcode::Gt, a, zero), build.unary(UnaryOpcode::Sqrt, a));
        let ln = build.unary(UnaryOpcode::Ln, root);
        build.select(positive, ln, a)
    });
    assert_eq!(slope_at(&program, 0, [0.0, 0.0]), 1.0);
    assert_eq!(slope_at(&program, 0, [-2.0, 0.0]), 1.0);
    assert!((slope_at(&program, 0, [2.0, 0.0]) - 0.25).abs() < 1e-12);
}

#[test]
fn of_casts_and_of_operands_that_are_read_twice() {
    let program = written(|build| {
        let a = build.load(0, DType::F64);
        let single = build.cast(DType::F32, a);
        let square = build.unary(UnaryOpcode::Square, single);
        let wide = build.cast(DType::F64, square);
        let whole = build.cast(DType::I32, a);
        let whole = build.cast(DType::F64, whole);
        let product = build.binary(BinaryOpcode::Mul, wide, whole);
        build.binary(BinaryOpcode::Add, product, a)
    });
    // a^2 trunc(a) + a, where trunc(a) counts as a constant.
    assert_eq!(slope_at(&program, 0, [2.5, 0.0]), 2.0 * 2.5 * 2.0 + 1.0);
    let integers: fn(&mut Builder) -> Register = |build| {
        let a = build.load(0, DType::F64);
        let whole = build.cast(DType::Isize, a);
        build.cast(DType::F64, whole)
    };
    assert_eq!(pulled_back(&written(integers), 0, COTANGENT), None);
    assert_eq!(pulled_back(&written(integers), 1, COTANGENT), None);
}
