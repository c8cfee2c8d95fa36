//! Tests what the builder of programs simplifies, and what it must not.

use super::{held, run, written};
use crate::ops::code::{BinaryOpcode, DType, Number, RegisterKind, UnaryOpcode};
use crate::program::builder::Builder;
use crate::program::{Instruction, Register, ScalarProgram};

fn len(program: &ScalarProgram) -> usize {
    program.instructions().len()
}

fn of_one(f: impl FnOnce(&mut Builder, Register) -> Register) -> ScalarProgram {
    written(|build| {
        let a = build.load(0, DType::F64);
        f(build, a)
    })
}

/// Asserts that the program only returns its operand.
#[track_caller]
fn assert_same(program: &ScalarProgram) {
    assert_eq!((program.instructions(), program.result()), (&[Instruction::Load(0)][..], 0));
}

#[test]
fn neutral_constants_are_left_out() {
    for (op, neutral) in [
        (BinaryOpcode::Add, 0.0),
        (BinaryOpcode::Sub, 0.0),
        (BinaryOpcode::Mul, 1.0),
        (BinaryOpcode::Chain, 1.0),
        (BinaryOpcode::Div, 1.0),
    ] {
        assert_same(&of_one(|build, a| {
            let c = build.float(neutral, RegisterKind::F64);
            build.binary(op, a, c)
        }));
        if matches!(op, BinaryOpcode::Add | BinaryOpcode::Mul | BinaryOpcode::Chain) {
            assert_same(&of_one(|build, a| {
                let c = build.float(neutral, RegisterKind::F64);
                build.binary(op, c, a)
            }));
        }
    }
    assert_same(&of_one(|build, a| {
        let negative = build.unary(UnaryOpcode::Neg, a);
        build.unary(UnaryOpcode::Neg, negative)
    }));
    assert_same(&of_one(|build, a| {
        let on = build.unary(UnaryOpcode::IsNan, a);
        build.select(on, a, a)
    }));
    assert_same(&of_one(|build, a| build.cast(DType::F64, a)));
}

#[test]
fn products_with_minus_one_are_negations() {
    let negated = of_one(|build, a| build.unary(UnaryOpcode::Neg, a));
    for (op, left) in [(BinaryOpcode::Mul, -1.0), (BinaryOpcode::Chain, -1.0), (BinaryOpcode::Sub, 0.0)] {
        let program = of_one(|build, a| {
            let c = build.float(left, RegisterKind::F64);
            build.binary(op, c, a)
        });
        assert_eq!(program, negated, "{op:?}");
    }
    // 1 / a and 1 - a are not simplified.
    for op in [BinaryOpcode::Div, BinaryOpcode::Sub] {
        let program = of_one(|build, a| {
            let c = build.float(1.0, RegisterKind::F64);
            build.binary(op, c, a)
        });
        assert_eq!(len(&program), 3, "{op:?}");
    }
}

#[test]
fn constants_are_computed_at_once() {
    let program = of_one(|build, _| {
        let (a, b) = (build.float(2.0, RegisterKind::F64), build.float(3.0, RegisterKind::F64));
        let sum = build.binary(BinaryOpcode::Add, a, b);
        let product = build.binary(BinaryOpcode::Mul, sum, b);
        build.unary(UnaryOpcode::Neg, product)
    });
    assert_eq!(program.instructions(), [Instruction::Constant(Number::Float(-15.0))]);
}

#[test]
fn a_chain_with_0_is_0_and_a_product_is_not() {
    let chain = of_one(|build, a| {
        let zero = build.float(0.0, RegisterKind::F64);
        build.binary(BinaryOpcode::Chain, a, zero)
    });
    assert_eq!(chain.instructions(), [Instruction::Constant(Number::Float(0.0))]);
    for [a, b] in [[0.0, f64::INFINITY], [f64::NAN, 0.0]] {
        let constants = written(|build| {
            let [a, b] = [a, b].map(|value| build.float(value, RegisterKind::F64));
            build.binary(BinaryOpcode::Chain, a, b)
        });
        assert_eq!(run::<f64>(&constants, &[], 1), [0.0]);
    }
    let product = of_one(|build, a| {
        let zero = build.float(0.0, RegisterKind::F64);
        build.binary(BinaryOpcode::Mul, a, zero)
    });
    assert!(run::<f64>(&product, &[held(&[f64::INFINITY])], 1)[0].is_nan());
    let both = written(|build| {
        let (a, b) = (build.load(0, DType::F64), build.load(1, DType::F64));
        build.binary(BinaryOpcode::Chain, a, b)
    });
    let (a, b) = ([0.0, f64::INFINITY, 2.0, f64::NAN, 0.0], [f64::INFINITY, 0.0, 3.0, 0.0, f64::NAN]);
    assert_eq!(run::<f64>(&both, &[held(&a), held(&b)], 5), [0.0, 0.0, 6.0, 0.0, 0.0]);
}

#[test]
fn equal_instructions_are_one() {
    let program = of_one(|build, a| {
        let (first, second) = (build.unary(UnaryOpcode::Exp, a), build.unary(UnaryOpcode::Exp, a));
        assert_eq!(first, second);
        build.binary(BinaryOpcode::Mul, first, second)
    });
    assert_eq!(len(&program), 3);
    // Constants of operations are compared by their bits.
    let program = of_one(|build, a| {
        let low = build.unary(UnaryOpcode::Clamp(0.0, 1.0), a);
        let negative = build.unary(UnaryOpcode::Clamp(-0.0, 1.0), a);
        assert_ne!(low, negative);
        assert_eq!(
            build.unary(UnaryOpcode::LeakyRelu(f64::NAN), a),
            build.unary(UnaryOpcode::LeakyRelu(f64::NAN), a)
        );
        build.binary(BinaryOpcode::Mul, low, negative)
    });
    assert_eq!(len(&program), 4);
    // The same number, in registers of two kinds.
    let mut build = Builder::new();
    assert_ne!(build.float(0.5, RegisterKind::F32), build.float(0.5, RegisterKind::F64));
    assert_eq!(build.float(0.5, RegisterKind::F32), build.float(0.5, RegisterKind::F32));
}

#[test]
fn zeros_of_both_signs_are_two_constants() {
    let program = of_one(|build, a| {
        let (zero, negative) = (build.float(0.0, RegisterKind::F64), build.float(-0.0, RegisterKind::F64));
        let (first, second) = (
            build.binary(BinaryOpcode::Copysign, a, zero),
            build.binary(BinaryOpcode::Copysign, a, negative),
        );
        let two = build.float(2.0, RegisterKind::F64);
        let second = build.binary(BinaryOpcode::Mul, second, two);
        build.binary(BinaryOpcode::Add, first, second)
    });
    assert_eq!(run::<f64>(&program, &[held(&[3.0])], 1), [3.0 - 6.0]);
}

#[test]
fn what_nothing_needs_is_left_out() {
    let program = of_one(|build, a| {
        build.unary(UnaryOpcode::Exp, a);
        let b = build.load(1, DType::F64);
        build.binary(BinaryOpcode::Add, a, b);
        build.unary(UnaryOpcode::Sin, a)
    });
    assert_eq!((len(&program), program.reads(0), program.reads(1)), (2, true, false));
}

#[test]
fn factors_of_products() {
    let program = written(|build| {
        let (a, b) = (build.load(0, DType::F64), build.load(1, DType::F64));
        let three = build.float(3.0, RegisterKind::F64);
        let product = build.binary(BinaryOpcode::Mul, a, three);
        build.binary(BinaryOpcode::Mul, product, b)
    });
    assert_eq!(program.product(), Some((vec![0, 1], 3.0)));
    assert_eq!(of_one(|build, a| build.unary(UnaryOpcode::Exp, a)).product(), None);
}

#[test]
fn programs_are_put_into_others() {
    let inner = written(|build| {
        let (a, b) = (build.load(0, DType::F64), build.load(1, DType::F64));
        build.binary(BinaryOpcode::Sub, a, b)
    });
    let program = written(|build| {
        let a = build.load(0, DType::F64);
        let square = build.unary(UnaryOpcode::Square, a);
        build.inline(&inner, &mut |_, number, _| (number == 1).then_some(square))
    });
    assert_eq!(run::<f64>(&program, &[held(&[3.0, 0.5])], 2), [3.0 - 9.0, 0.5 - 0.25]);
    let moved = inner.with_operands(|number| 1 - number);
    assert_eq!(run::<f64>(&moved, &[held(&[3.0]), held(&[5.0])], 1), [2.0]);
}
