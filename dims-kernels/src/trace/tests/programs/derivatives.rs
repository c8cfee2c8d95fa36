//! Derivatives of programs against differences, the derivatives of derivatives, and the values at kinks.

use super::{held, run, written};
use crate::ops::code::{BinaryOpcode, DType, RegisterKind, UnaryOpcode};
use crate::program::derivative;
use crate::program::{Builder, Register, ScalarProgram};
use alloc::vec::Vec;

/// The number of the cotangent.
const COTANGENT: u32 = 2;

/// The cotangent times the derivative by an operand; nothing where that is 0 everywhere.
fn pulled_back(program: &ScalarProgram, operand: u32, cotangent: u32) -> Option<ScalarProgram> {
    let depends = derivative::depends_on(program, &[operand])?;
    let mut build = Builder::from_program(program.clone());
    let own: Vec<Register> = (0..program.instructions().len() as Register).collect();
    let given = build.load_as(cotangent, program.kind(program.result()));
    let results = derivative::pull_back(&mut build, program, &own, &depends, &[operand], given);
    results.first().map(|&(_, value)| build.finish(value))
}

/// The derivative by an operand, for a cotangent of 1; nothing where it is 0 everywhere.
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

/// The derivative at a point, 0 where a program says that it is 0 everywhere.
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
                "{what} by {operand} at {at:?}: {found} is not {expected}"
            );
        }
        if let Some(slope) = slope(program, operand as u32) {
            assert_slopes(
                &slope,
                points,
                operands,
                orders - 1,
                &format!("the derivative by {operand} of {what}"),
            );
        }
    }
}

/// Points of which none is a kink, nor one of whole or half numbers.
fn points(low: f64, high: f64) -> Vec<[f64; 2]> {
    (0..9).map(|at| [low + (high - low) * (f64::from(at) + 0.37) / 9.1, 0.0]).collect()
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

/// The derivatives of operations on one operand, up to the third order.
macro_rules! unary_slopes {
    (tests: $($test:ident)*; others: [$($other:pat_param)|*]; $($name:ident $(($($c:expr),*))? in $low:literal .. $high:literal;)*) => {
        #[allow(dead_code)]
        fn is_listed(op: UnaryOpcode) {
            #[allow(unreachable_patterns)]
            match op {
                $(UnaryOpcode::$name { .. } => {})*
                $(UnaryOpcode::$test => {})*
                $($other)|* => {}
            }
        }

        #[test]
        fn of_operations_on_one_operand() {
            $({
                let op = UnaryOpcode::$name $(($($c),*))?;
                assert_slopes(&unary(op), &points($low, $high), 1, 3, &format!("{op:?}"));
            })*
        }

        #[test]
        fn tests_have_none() {
            $({
                let program = written(|build| {
                    let a = build.load(0, DType::F64);
                    let test = build.unary(UnaryOpcode::$test, a);
                    build.cast(DType::F64, test)
                });
                assert_eq!(pulled_back(&program, 0, COTANGENT), None);
            })*
        }
    };
}

unary_slopes! {
    tests: IsInfinite Signbit IsNan IsFinite;
    others: [UnaryOpcode::Not | UnaryOpcode::FromEnd(_)];
    Exp in -2.0 .. 2.0; ExpM1 in -2.0 .. 2.0; Ln in 0.3 .. 4.0; Ln1p in -0.7 .. 2.0; Log2 in 0.3 .. 4.0; Log10 in 0.3 .. 4.0; Exp2 in -2.0 .. 2.0;
    Sqrt in 0.3 .. 4.0; Cbrt in 0.3 .. 4.0; Rsqrt in 0.4 .. 4.0; Recip in 0.4 .. 4.0; Sin in -4.0 .. 4.0; Cos in -4.0 .. 4.0;
    Tan in -1.0 .. 1.0; Asin in -0.8 .. 0.8; Acos in -0.8 .. 0.8; Atan in -3.0 .. 3.0; Sinh in -2.0 .. 2.0; Cosh in -2.0 .. 2.0;
    Tanh in -3.0 .. 3.0; Asinh in -3.0 .. 3.0; Acosh in 1.3 .. 4.0; Atanh in -0.7 .. 0.7; Erf in -3.0 .. 3.0; Erfc in -3.0 .. 3.0;
    Floor in -3.0 .. 3.0; Ceil in -3.0 .. 3.0; Round in -3.0 .. 3.0; Trunc in -3.0 .. 3.0; RoundTiesEven in -3.0 .. 3.0; Fract in -3.0 .. 3.0;
    Sigmoid in -4.0 .. 4.0; Silu in -4.0 .. 4.0; Gelu in -4.0 .. 4.0; Softplus in -4.0 .. 4.0; LnGamma in 0.5 .. 5.0; Logit in 0.2 .. 0.8;
    LnSigmoid in -4.0 .. 4.0; Selu in -3.0 .. 3.0; Mish in -4.0 .. 4.0; HardSigmoid in -5.0 .. 5.0; HardSwish in -5.0 .. 5.0;
    Softsign in -3.0 .. 3.0; TanhShrink in -3.0 .. 3.0; GeluTanh in -4.0 .. 4.0; Sinc in -2.0 .. 2.0; ToDegrees in -3.0 .. 3.0;
    ToRadians in -3.0 .. 3.0; Neg in -3.0 .. 3.0; Abs in -3.0 .. 3.0; Square in -3.0 .. 3.0; Signum in -3.0 .. 3.0; Relu in -3.0 .. 3.0;
    Relu6 in -3.0 .. 8.0; Powi(0) in -2.0 .. 2.0; Powi(1) in -2.0 .. 2.0; Powi(2) in -2.0 .. 2.0; Powi(3) in -2.0 .. 2.0;
    Powi(6) in -1.5 .. 1.5; Powi(-1) in 0.5 .. 3.0; Powi(-3) in -3.0 .. -0.8; Clamp(-1.0, 2.0) in -3.0 .. 3.0; LeakyRelu(0.25) in -3.0 .. 3.0;
    Elu(0.5) in -3.0 .. 3.0; Celu(0.5) in -2.0 .. 2.0; HardShrink(1.0) in -3.0 .. 3.0; SoftShrink(1.0) in -3.0 .. 3.0; NanTo(7.0) in -3.0 .. 3.0;
    Polygamma(1) in 0.6 .. 5.0; Polygamma(2) in 0.7 .. 5.0; SincSlope(1) in -3.0 .. 3.0; SincSlope(2) in -3.0 .. 3.0; SigmoidSlope in -4.0 .. 4.0;
    NormalBelow in -4.0 .. 4.0; Bell(1.0) in -3.0 .. 3.0; Bell(0.5) in -3.0 .. 3.0;
}

/// The derivatives of operations on two operands, up to the second order.
macro_rules! binary_slopes {
    (others: [$($other:pat_param)|*]; $($name:ident $(($c:expr))? in $low:literal .. $high:literal, $from:literal .. $to:literal;)*) => {
        #[allow(dead_code, unreachable_patterns)] // one name is listed for several ranges
        fn are_listed(op: BinaryOpcode) {
            match op {
                $(BinaryOpcode::$name { .. } => {})*
                $($other)|* => {}
            }
        }

        #[test]
        fn of_operations_on_two_operands() {
            $({
                let op = BinaryOpcode::$name $(($c))?;
                let second = points($from, $to);
                let points: Vec<[f64; 2]> = points($low, $high).iter().enumerate()
                    .flat_map(|(at, &[a, _])| [[a, second[at * 4 % 9][0]], [a, second[(at * 7 + 3) % 9][0]]]).collect();
                assert_slopes(&binary(op), &points, 2, 2, &format!("{op:?}"));
            })*
        }
    };
}

binary_slopes! {
    others: [BinaryOpcode::Lt | BinaryOpcode::Le | BinaryOpcode::Gt | BinaryOpcode::Ge | BinaryOpcode::Eq | BinaryOpcode::Ne | BinaryOpcode::FloorDiv | BinaryOpcode::UnsignedDiv | BinaryOpcode::UnsignedRem | BinaryOpcode::And | BinaryOpcode::Or | BinaryOpcode::Xor];
    Powf in 0.4 .. 3.0, -2.0 .. 2.0; Atan2 in -3.0 .. 3.0, 0.5 .. 3.0; Hypot in -3.0 .. 3.0, 0.5 .. 3.0; Copysign in -3.0 .. 3.0, -3.0 .. 3.0;
    LogAddExp in -3.0 .. 3.0, -2.0 .. 2.0; Xlogy in -3.0 .. 3.0, 0.4 .. 3.0; AbsoluteError in -3.0 .. 3.0, -2.0 .. 2.0; Bce in 0.2 .. 0.8, 0.1 .. 0.9;
    BceWithLogits in -3.0 .. 3.0, 0.1 .. 0.9; KlDiv in -3.0 .. 3.0, 0.2 .. 0.9; Add in -3.0 .. 3.0, -2.0 .. 2.0; Offset in -3.0 .. 3.0, -2.0 .. 2.0;
    Sub in -3.0 .. 3.0, -2.0 .. 2.0; Mul in -3.0 .. 3.0, -2.0 .. 2.0; Div in -3.0 .. 3.0, 0.5 .. 3.0; Rem in -3.0 .. 3.0, 0.8 .. 2.0;
    Maximum in -3.0 .. 3.0, -2.0 .. 2.0; Minimum in -3.0 .. 3.0, -2.0 .. 2.0; Remainder in -3.0 .. 3.0, 0.8 .. 2.0; Fmax in -3.0 .. 3.0, -2.0 .. 2.0;
    Fmin in -3.0 .. 3.0, -2.0 .. 2.0; Heaviside in -3.0 .. 3.0, -2.0 .. 2.0; SquaredError in -3.0 .. 3.0, -2.0 .. 2.0;
    Huber(1.37) in -3.0 .. 3.0, -2.0 .. 2.0; SmoothL1(0.5) in -3.0 .. 3.0, -2.0 .. 2.0; SmoothL1(0.0) in -3.0 .. 3.0, -2.0 .. 2.0; Lerp(0.25) in -3.0 .. 3.0, -2.0 .. 2.0;
    Chain in -3.0 .. 3.0, -2.0 .. 2.0;
}

/// The documented values where there is no derivative, and where formulas have none.
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
    // Far out, where a naive formula is infinite or not a number.
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
            "{op:?} at {at:?}: {found:?} is not {expected:?}"
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

/// What is smooth where a formula for its derivative is not: the second derivative there, too.
#[test]
fn of_the_second_order_at_removable_gaps() {
    let second = |program: &ScalarProgram, first: u32, then: u32, at: [f64; 2]| {
        slope_at(&slope(program, first).expect("a derivative"), then, at)
    };
    let pi_square = core::f64::consts::PI * core::f64::consts::PI;
    for at in [0.0, 1e-9, -1e-5, 9.9e-4, 1.01e-3] {
        let found = second(&unary(UnaryOpcode::Sinc), 0, 0, [at, 0.0]);
        let expected = -pi_square / 3.0 + pi_square * pi_square / 10.0 * at * at;
        assert!((found - expected).abs() < 1e-8, "sinc at {at}: {found} is not {expected}");
    }
    assert_eq!(second(&binary(BinaryOpcode::Powf), 0, 1, [2.0, 0.0]), 0.5);
    assert_eq!(second(&binary(BinaryOpcode::Xlogy), 0, 1, [0.0, 4.0]), 0.25);
}

/// Neither infinite slopes nor what is not taken makes a gradient not-a-number.
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

/// An operand that is read several times, by registers of several kinds.
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
    // a^2 trunc(a) + a, whose whole part is a constant.
    assert_eq!(slope_at(&program, 0, [2.5, 0.0]), 2.0 * 2.5 * 2.0 + 1.0);
    let integers: fn(&mut Builder) -> Register = |build| {
        let a = build.load(0, DType::F64);
        let whole = build.cast(DType::Isize, a);
        build.cast(DType::F64, whole)
    };
    assert_eq!(pulled_back(&written(integers), 0, COTANGENT), None);
    assert_eq!(pulled_back(&written(integers), 1, COTANGENT), None);
}
