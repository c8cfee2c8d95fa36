//! Derivatives of programs.
//!
//! Conventions where a function has none are PyTorch's: 0 for `abs`, `relu` and `clamp` at their kinks, half to each operand of a maximum of equal
//! ones. A product of a cotangent and a derivative is 0 if one of them is, so neither the infinite slope of a root at 0 nor what a `select` did not
//! take makes it not-a-number.

use crate::ops::code::{BinaryOpcode, Number, RegisterKind, UnaryOpcode};
use crate::program::{Builder, Instruction, Register, ScalarProgram};
use alloc::sync::Arc;
use core::f64::consts::{FRAC_2_SQRT_PI, LN_2, LN_10, PI};
use smallvec::SmallVec;

/// Whether each value of a program depends on some of its operands by floats; nothing if the result does not.
pub fn depends_on(program: &ScalarProgram, operands: &[u32]) -> Option<SmallVec<[bool; 16]>> {
    let mut depends: SmallVec<[bool; 16]> = SmallVec::new();
    for (at, instruction) in program.instructions().iter().enumerate() {
        let reads = match *instruction {
            Instruction::Load(number) => operands.contains(&number),
            Instruction::Select(_, a, b) => depends[a as usize] || depends[b as usize],
            other => other.inputs().any(|input| depends[input as usize]),
        };
        depends.push(reads && is_float(program.kind(at as Register)));
    }
    depends[program.result() as usize].then_some(depends)
}

/// Writes the values `cotangent * d program / d operand` for some operands of a program that is part of what is built: `own` has the register of each of its values, and
/// `depends` says which [depend](depends_on) on the operands. Returns the position of each operand in the list with the register of its value; those whose value is 0
/// everywhere are left out.
///
/// An operand that is read several times counts as one.
pub fn pull_back(
    build: &mut Builder,
    program: &ScalarProgram,
    own: &[Register],
    depends: &[bool],
    operands: &[u32],
    cotangent: Register,
) -> SmallVec<[(usize, Register); 4]> {
    let instructions = program.instructions();
    let mut adjoints: SmallVec<[Option<Register>; 16]> = SmallVec::from_elem(None, instructions.len());
    adjoints[program.result() as usize] = Some(cotangent);
    let mut results: SmallVec<[Option<Register>; 4]> = SmallVec::from_elem(None, operands.len());
    for at in (0..instructions.len()).rev() {
        let (Some(adjoint), true) = (adjoints[at], depends[at]) else { continue };
        let value = own[at];
        let of = |register: Register| own[register as usize];
        let kind = program.kind(at as Register);
        let mut add = |build: &mut Builder, to: Register, value: Option<Register>| {
            let Some(value) = value.filter(|_| depends[to as usize]) else { return };
            let place = &mut adjoints[to as usize];
            *place = Some(match *place {
                Some(sum) => build.binary(BinaryOpcode::Add, sum, value),
                None => value,
            });
        };
        match instructions[at] {
            Instruction::Load(number) => {
                let number = operands.iter().position(|&operand| operand == number);
                let result = &mut results[number.expect("it depends on an operand")];
                *result = Some(match *result {
                    Some(sum) => build.binary(BinaryOpcode::Add, sum, adjoint),
                    None => adjoint,
                });
            }
            Instruction::Position(_) | Instruction::Constant(_) => {}
            Instruction::Unary(op, a) => {
                let value = unary(build, op, of(a), value)
                    .map(|slope| build.binary(BinaryOpcode::Chain, adjoint, slope));
                add(build, a, value);
            }
            Instruction::Binary(op, a, b) => {
                let asked = [depends[a as usize], depends[b as usize]];
                let [left, right] = binary(build, op, of(a), of(b), value, asked);
                let value = left.map(|slope| build.binary(BinaryOpcode::Chain, adjoint, slope));
                add(build, a, value);
                let value = right.map(|slope| build.binary(BinaryOpcode::Chain, adjoint, slope));
                add(build, b, value);
            }
            Instruction::Select(cond, a, b) => {
                let zero = build.float(0.0, kind);
                let value = build.select(of(cond), adjoint, zero);
                add(build, a, Some(value));
                let value = build.select(of(cond), zero, adjoint);
                add(build, b, Some(value));
            }
            Instruction::Cast(_, a) => {
                let value = build.cast_kind(program.kind(a), adjoint);
                add(build, a, Some(value));
            }
            Instruction::Call(number, a, b) => {
                let function = Arc::clone(program.functions().get(number));
                for (at, to) in [a, b].into_iter().enumerate().take(function.operands()) {
                    if !depends[to as usize] {
                        continue;
                    }
                    let slope = function.derivative(at).unwrap_or_else(|| underivable(function.name()));
                    let slope = build.call(&slope, &[of(a), of(b)]);
                    let slope = build.cast_kind(kind, slope);
                    let value = build.binary(BinaryOpcode::Chain, adjoint, slope);
                    let value = build.cast_kind(program.kind(to), value);
                    add(build, to, Some(value));
                }
            }
        }
    }
    let is_zero =
        |result: Register| matches!(build.instruction(result), Instruction::Constant(Number::Float(0.0)));
    let results = results.into_iter().enumerate();
    results.filter_map(|(at, result)| Some((at, result.filter(|&result| !is_zero(result))?))).collect()
}

/// (An operation without a derivative is not recorded: this is the derivative of one, in a gradient of a gradient.)
#[cold]
fn underivable(name: &str) -> ! {
    panic!(
        "no gradient of a gradient can be taken here: `{name}` has no derivative; `Derivative::of(op)` takes an operation that can have one"
    )
}

fn is_float(kind: RegisterKind) -> bool {
    matches!(kind, RegisterKind::F32 | RegisterKind::F64)
}

/// Short names for what derivatives are made of.
struct TermBuilder<'b> {
    build: &'b mut Builder,
    kind: RegisterKind,
}

impl TermBuilder<'_> {
    fn c(&mut self, value: f64) -> Register {
        self.build.float(value, self.kind)
    }
    fn add(&mut self, a: Register, b: Register) -> Register {
        self.build.binary(BinaryOpcode::Add, a, b)
    }
    fn sub(&mut self, a: Register, b: Register) -> Register {
        self.build.binary(BinaryOpcode::Sub, a, b)
    }
    fn mul(&mut self, a: Register, b: Register) -> Register {
        self.build.binary(BinaryOpcode::Mul, a, b)
    }
    /// `a * b`, and 0 if one of them is, whatever the other.
    fn chain(&mut self, a: Register, b: Register) -> Register {
        self.build.binary(BinaryOpcode::Chain, a, b)
    }
    fn div(&mut self, a: Register, b: Register) -> Register {
        self.build.binary(BinaryOpcode::Div, a, b)
    }
    fn of(&mut self, op: UnaryOpcode, a: Register) -> Register {
        self.build.unary(op, a)
    }
    fn scaled(&mut self, a: Register, by: f64) -> Register {
        let by = self.c(by);
        self.mul(a, by)
    }
    fn plus(&mut self, a: Register, value: f64) -> Register {
        let value = self.c(value);
        self.add(a, value)
    }
    /// `value - a`
    fn from(&mut self, value: f64, a: Register) -> Register {
        let value = self.c(value);
        self.sub(value, a)
    }
    /// `value / a`
    fn over(&mut self, value: f64, a: Register) -> Register {
        let value = self.c(value);
        self.div(value, a)
    }
    fn square(&mut self, a: Register) -> Register {
        self.of(UnaryOpcode::Square, a)
    }
    fn is(&mut self, op: BinaryOpcode, a: Register, b: Register) -> Register {
        self.build.binary(op, a, b)
    }
    /// Whether a comparison with a constant holds.
    fn is_to(&mut self, op: BinaryOpcode, a: Register, value: f64) -> Register {
        let value = self.c(value);
        self.is(op, a, value)
    }
    fn pick(&mut self, cond: Register, a: Register, b: Register) -> Register {
        self.build.select(cond, a, b)
    }
    /// A slope that is chosen by comparisons with `a`, or NaN where `a` is NaN: then none of them holds.
    fn unless_nan(&mut self, a: Register, slope: Register) -> Register {
        let (number, nan) = (self.is(BinaryOpcode::Eq, a, a), self.c(f64::NAN));
        self.pick(number, slope, nan)
    }
    /// One of two constants.
    fn choose(&mut self, cond: Register, a: f64, b: f64) -> Register {
        let (a, b) = (self.c(a), self.c(b));
        self.pick(cond, a, b)
    }
}

/// The derivative of an operation on one operand, `y = op(a)`; nothing where it is 0 everywhere.
fn unary(build: &mut Builder, op: UnaryOpcode, a: Register, y: Register) -> Option<Register> {
    let kind = build.kind(y);
    let mut t = TermBuilder { build, kind };
    Some(match op {
        UnaryOpcode::Neg => t.c(-1.0),
        UnaryOpcode::Abs => t.of(UnaryOpcode::Signum, a),
        UnaryOpcode::Exp => y,
        UnaryOpcode::ExpM1 => t.of(UnaryOpcode::Exp, a),
        UnaryOpcode::Ln => t.of(UnaryOpcode::Recip, a),
        UnaryOpcode::Ln1p => {
            let one = t.plus(a, 1.0);
            t.of(UnaryOpcode::Recip, one)
        }
        UnaryOpcode::Log2 => t.over(1.0 / LN_2, a),
        UnaryOpcode::Log10 => t.over(1.0 / LN_10, a),
        UnaryOpcode::Exp2 => t.scaled(y, LN_2),
        UnaryOpcode::Sqrt => t.over(0.5, y),
        UnaryOpcode::Cbrt => {
            let square = t.square(y);
            t.over(1.0 / 3.0, square)
        }
        UnaryOpcode::Rsqrt => {
            let slope = t.div(y, a);
            t.scaled(slope, -0.5)
        }
        UnaryOpcode::Recip => {
            let square = t.square(y);
            t.of(UnaryOpcode::Neg, square)
        }
        UnaryOpcode::Square => t.scaled(a, 2.0),
        UnaryOpcode::Erf | UnaryOpcode::Erfc => {
            let bell = t.of(UnaryOpcode::Bell(1.0), a);
            t.scaled(bell, if op == UnaryOpcode::Erf { FRAC_2_SQRT_PI } else { -FRAC_2_SQRT_PI })
        }
        UnaryOpcode::Floor
        | UnaryOpcode::Ceil
        | UnaryOpcode::Round
        | UnaryOpcode::RoundTiesEven
        | UnaryOpcode::Trunc
        | UnaryOpcode::Signum => {
            return None;
        }
        UnaryOpcode::Fract => t.c(1.0),
        UnaryOpcode::LnGamma => t.of(UnaryOpcode::Polygamma(1), a),
        UnaryOpcode::Polygamma(order) => t.of(UnaryOpcode::Polygamma(order + 1), a),
        UnaryOpcode::Logit => {
            let rest = t.from(1.0, a);
            let product = t.mul(a, rest);
            t.of(UnaryOpcode::Recip, product)
        }
        UnaryOpcode::Sinc => t.of(UnaryOpcode::SincSlope(1), a),
        UnaryOpcode::SincSlope(order) => t.of(UnaryOpcode::SincSlope(order + 1), a),
        UnaryOpcode::NormalBelow => normal_density(&mut t, a),
        UnaryOpcode::Bell(c) => {
            let factor = t.scaled(a, -2.0 * c);
            t.chain(y, factor)
        }
        UnaryOpcode::ToDegrees => t.c(180.0 / PI),
        UnaryOpcode::ToRadians => t.c(PI / 180.0),
        UnaryOpcode::Powi(n) => match n {
            0 => return None,
            1 => t.c(1.0),
            2 => t.scaled(a, 2.0),
            n => {
                let power = t.of(UnaryOpcode::Powi(n.saturating_sub(1)), a);
                t.scaled(power, f64::from(n))
            }
        },
        UnaryOpcode::Clamp(low, high) => inside(&mut t, a, low, high),
        UnaryOpcode::NanTo(_) => {
            let nan = t.of(UnaryOpcode::IsNan, a);
            t.choose(nan, 0.0, 1.0)
        }
        UnaryOpcode::IsInfinite
        | UnaryOpcode::Signbit
        | UnaryOpcode::IsNan
        | UnaryOpcode::IsFinite
        | UnaryOpcode::Not
        | UnaryOpcode::FromEnd(_) => return None,
        UnaryOpcode::Sigmoid
        | UnaryOpcode::SigmoidSlope
        | UnaryOpcode::Relu
        | UnaryOpcode::Relu6
        | UnaryOpcode::Silu
        | UnaryOpcode::Gelu
        | UnaryOpcode::GeluTanh
        | UnaryOpcode::Softplus
        | UnaryOpcode::LnSigmoid
        | UnaryOpcode::Selu
        | UnaryOpcode::Mish
        | UnaryOpcode::HardSigmoid
        | UnaryOpcode::HardSwish
        | UnaryOpcode::Softsign
        | UnaryOpcode::TanhShrink
        | UnaryOpcode::LeakyRelu(_)
        | UnaryOpcode::Elu(_)
        | UnaryOpcode::Celu(_)
        | UnaryOpcode::HardShrink(_)
        | UnaryOpcode::SoftShrink(_) => activation(&mut t, op, a, y),
        UnaryOpcode::Sin
        | UnaryOpcode::Cos
        | UnaryOpcode::Tan
        | UnaryOpcode::Asin
        | UnaryOpcode::Acos
        | UnaryOpcode::Atan
        | UnaryOpcode::Sinh
        | UnaryOpcode::Cosh
        | UnaryOpcode::Tanh
        | UnaryOpcode::Asinh
        | UnaryOpcode::Acosh
        | UnaryOpcode::Atanh => circular(&mut t, op, a, y),
    })
}

/// The same of a circular or hyperbolic function, or an inverse of one.
fn circular(t: &mut TermBuilder<'_>, op: UnaryOpcode, a: Register, y: Register) -> Register {
    match op {
        UnaryOpcode::Sin => t.of(UnaryOpcode::Cos, a),
        UnaryOpcode::Cos => {
            let sin = t.of(UnaryOpcode::Sin, a);
            t.of(UnaryOpcode::Neg, sin)
        }
        UnaryOpcode::Tan => {
            let square = t.square(y);
            t.plus(square, 1.0)
        }
        UnaryOpcode::Asin | UnaryOpcode::Acos => {
            let rest = rest_of_square(t, a);
            let slope = t.of(UnaryOpcode::Rsqrt, rest);
            if op == UnaryOpcode::Asin { slope } else { t.of(UnaryOpcode::Neg, slope) }
        }
        UnaryOpcode::Atan => {
            let square = t.square(a);
            let sum = t.plus(square, 1.0);
            t.of(UnaryOpcode::Recip, sum)
        }
        UnaryOpcode::Sinh => t.of(UnaryOpcode::Cosh, a),
        UnaryOpcode::Cosh => t.of(UnaryOpcode::Sinh, a),
        UnaryOpcode::Tanh => tanh_slope(t, a),
        UnaryOpcode::Asinh => {
            let one = t.c(1.0);
            let length = t.is(BinaryOpcode::Hypot, a, one);
            t.of(UnaryOpcode::Recip, length)
        }
        UnaryOpcode::Acosh => {
            // Two roots: the product could overflow.
            let (below, above) = (t.plus(a, -1.0), t.plus(a, 1.0));
            let (below, above) = (t.of(UnaryOpcode::Rsqrt, below), t.of(UnaryOpcode::Rsqrt, above));
            t.mul(below, above)
        }
        UnaryOpcode::Atanh => {
            let rest = rest_of_square(t, a);
            t.of(UnaryOpcode::Recip, rest)
        }
        _ => unreachable!("`unary` has the rules of the others"),
    }
}

/// `1 - a^2`, without loss near 1 and -1.
fn rest_of_square(t: &mut TermBuilder<'_>, a: Register) -> Register {
    let (below, above) = (t.from(1.0, a), t.plus(a, 1.0));
    t.mul(below, above)
}

/// `1 - tanh(a)^2`, which is `4 sigmoid(2a) sigmoid(-2a)`.
fn tanh_slope(t: &mut TermBuilder<'_>, a: Register) -> Register {
    let twice = t.scaled(a, 2.0);
    let slope = t.of(UnaryOpcode::SigmoidSlope, twice);
    t.scaled(slope, 4.0)
}

/// The density of a standard normal distribution.
fn normal_density(t: &mut TermBuilder<'_>, a: Register) -> Register {
    let bell = t.of(UnaryOpcode::Bell(0.5), a);
    t.scaled(bell, 0.5 * FRAC_2_SQRT_PI * core::f64::consts::FRAC_1_SQRT_2)
}

/// The same of an activation of a neural network.
fn activation(t: &mut TermBuilder<'_>, op: UnaryOpcode, a: Register, y: Register) -> Register {
    match op {
        UnaryOpcode::Sigmoid => t.of(UnaryOpcode::SigmoidSlope, a),
        UnaryOpcode::SigmoidSlope => {
            let half = t.scaled(a, -0.5);
            let tanh = t.of(UnaryOpcode::Tanh, half);
            t.mul(y, tanh)
        }
        UnaryOpcode::Relu => {
            // (The result is 0 where it is not the operand, and NaN where that is.)
            let (on, one) = (t.is_to(BinaryOpcode::Gt, a, 0.0), t.c(1.0));
            t.pick(on, one, y)
        }
        UnaryOpcode::Relu6 => inside(t, a, 0.0, 6.0),
        UnaryOpcode::Silu => {
            // s + a s'
            let (s, slope) = (t.of(UnaryOpcode::Sigmoid, a), t.of(UnaryOpcode::SigmoidSlope, a));
            let weighted = t.chain(slope, a);
            t.add(s, weighted)
        }
        UnaryOpcode::Gelu => gelu(t, a),
        UnaryOpcode::GeluTanh => gelu_tanh(t, a),
        UnaryOpcode::Softplus => t.of(UnaryOpcode::Sigmoid, a),
        UnaryOpcode::LnSigmoid => {
            let negative = t.of(UnaryOpcode::Neg, a);
            t.of(UnaryOpcode::Sigmoid, negative)
        }
        UnaryOpcode::Selu => {
            let (scale, alpha) = (1.050_700_987_355_480_5, 1.673_263_242_354_377_2);
            let exp = t.of(UnaryOpcode::Exp, a);
            let below = t.scaled(exp, scale * alpha);
            let on = t.is_to(BinaryOpcode::Gt, a, 0.0);
            let above = t.c(scale);
            t.pick(on, above, below)
        }
        UnaryOpcode::Mish => {
            // tanh(sp) + a (1 - tanh^2(sp)) sigmoid(a)
            let softplus = t.of(UnaryOpcode::Softplus, a);
            let tanh = t.of(UnaryOpcode::Tanh, softplus);
            let rest = tanh_slope(t, softplus);
            let s = t.of(UnaryOpcode::Sigmoid, a);
            let weighted = t.chain(s, a);
            let slope = t.chain(rest, weighted);
            t.add(tanh, slope)
        }
        UnaryOpcode::HardSigmoid => {
            let on = inside(t, a, -3.0, 3.0);
            t.scaled(on, 1.0 / 6.0)
        }
        UnaryOpcode::HardSwish => {
            // 0 below -3, 1 above 3, else (2a + 3) / 6.
            let twice = t.scaled(a, 2.0);
            let raised = t.plus(twice, 3.0);
            let middle = t.scaled(raised, 1.0 / 6.0);
            let (above, below) = (t.is_to(BinaryOpcode::Ge, a, 3.0), t.is_to(BinaryOpcode::Le, a, -3.0));
            let (zero, one) = (t.c(0.0), t.c(1.0));
            let low = t.pick(below, zero, middle);
            t.pick(above, one, low)
        }
        UnaryOpcode::Softsign => {
            let size = t.of(UnaryOpcode::Abs, a);
            let sum = t.plus(size, 1.0);
            let share = t.of(UnaryOpcode::Recip, sum);
            t.square(share)
        }
        UnaryOpcode::TanhShrink => {
            let tanh = t.of(UnaryOpcode::Tanh, a);
            t.square(tanh)
        }
        UnaryOpcode::LeakyRelu(slope) => {
            let on = t.is_to(BinaryOpcode::Gt, a, 0.0);
            let slope = t.choose(on, 1.0, slope);
            t.unless_nan(a, slope)
        }
        UnaryOpcode::Elu(alpha) => {
            let exp = t.of(UnaryOpcode::Exp, a);
            let below = t.scaled(exp, alpha);
            let on = t.is_to(BinaryOpcode::Gt, a, 0.0);
            let one = t.c(1.0);
            t.pick(on, one, below)
        }
        UnaryOpcode::Celu(alpha) => {
            let scaled = t.scaled(a, 1.0 / alpha);
            let below = t.of(UnaryOpcode::Exp, scaled);
            let on = t.is_to(BinaryOpcode::Gt, a, 0.0);
            let one = t.c(1.0);
            t.pick(on, one, below)
        }
        UnaryOpcode::HardShrink(lambda) | UnaryOpcode::SoftShrink(lambda) => {
            let size = t.of(UnaryOpcode::Abs, a);
            let on = t.is_to(BinaryOpcode::Gt, size, lambda);
            let slope = t.choose(on, 1.0, 0.0);
            t.unless_nan(a, slope)
        }
        _ => unreachable!("`unary` has the rules of the others"),
    }
}

/// The derivative of GELU.
fn gelu(t: &mut TermBuilder<'_>, a: Register) -> Register {
    // The distribution function, and `a` times its density.
    let (share, density) = (t.of(UnaryOpcode::NormalBelow, a), normal_density(t, a));
    let slope = t.chain(density, a);
    t.add(share, slope)
}

/// The derivative of GELU's approximation by `tanh`.
fn gelu_tanh(t: &mut TermBuilder<'_>, a: Register) -> Register {
    // With u = 2c (a + k a^3), the value is a s(u), and its derivative s(u) + a s'(u) 2c (1 + 3 k a^2).
    let (c, k) = (0.797_884_560_802_865_4, 0.044_715);
    let square = t.square(a);
    let cubic = t.scaled(square, k);
    let sum = t.plus(cubic, 1.0);
    let line = t.scaled(a, 2.0 * c);
    let u = t.mul(line, sum);
    let (s, rest) = (t.of(UnaryOpcode::Sigmoid, u), t.of(UnaryOpcode::SigmoidSlope, u));
    let triple = t.scaled(square, 6.0 * k * c);
    let inner = t.plus(triple, 2.0 * c);
    let weighted = t.mul(a, inner);
    let slope = t.chain(rest, weighted);
    t.add(s, slope)
}

/// 1 strictly between the bounds, else 0; NaN of NaN.
fn inside(t: &mut TermBuilder<'_>, a: Register, low: f64, high: f64) -> Register {
    let (above, below) = (t.is_to(BinaryOpcode::Gt, a, low), t.is_to(BinaryOpcode::Lt, a, high));
    let on = t.is(BinaryOpcode::And, above, below);
    let slope = t.choose(on, 1.0, 0.0);
    t.unless_nan(a, slope)
}

/// The derivatives of an operation on two operands, `y = op(a, b)`, for those of them that are `wanted`; nothing where one is 0 everywhere.
fn binary(
    build: &mut Builder,
    op: BinaryOpcode,
    a: Register,
    b: Register,
    y: Register,
    wanted: [bool; 2],
) -> [Option<Register>; 2] {
    let kind = build.kind(y);
    let mut t = TermBuilder { build, kind };
    let first = wanted[0].then(|| left(&mut t, op, a, b, y)).flatten();
    let second = wanted[1].then(|| right(&mut t, op, a, b, y)).flatten();
    [first, second]
}

/// 1 where the comparison holds, 1/2 where the operands are equal, else 0.
fn share(t: &mut TermBuilder<'_>, op: BinaryOpcode, a: Register, b: Register) -> Register {
    let (is, same) = (t.is(op, a, b), t.is(BinaryOpcode::Eq, a, b));
    let (one, other) = (t.c(1.0), t.choose(same, 0.5, 0.0));
    t.pick(is, one, other)
}

/// As `share`; of a number and not-a-number, the number has it.
fn share_of_numbers(t: &mut TermBuilder<'_>, op: BinaryOpcode, a: Register, b: Register) -> Register {
    let (own, one) = (share(t, op, a, b), t.c(1.0));
    let (here, there) = (t.of(UnaryOpcode::IsNan, a), t.of(UnaryOpcode::IsNan, b));
    let zero = t.c(0.0);
    let number = t.pick(there, one, own);
    t.pick(here, zero, number)
}

/// `a / y`, and 0 where the length `y` is 0.
fn share_of_length(t: &mut TermBuilder<'_>, a: Register, y: Register) -> Register {
    let (slope, none, zero) = (t.div(a, y), t.is_to(BinaryOpcode::Eq, y, 0.0), t.c(0.0));
    t.pick(none, zero, slope)
}

fn left(
    t: &mut TermBuilder<'_>,
    op: BinaryOpcode,
    a: Register,
    b: Register,
    y: Register,
) -> Option<Register> {
    Some(match op {
        BinaryOpcode::Add
        | BinaryOpcode::Offset
        | BinaryOpcode::Sub
        | BinaryOpcode::Rem
        | BinaryOpcode::Remainder => t.c(1.0),
        BinaryOpcode::Mul | BinaryOpcode::Chain => b,
        BinaryOpcode::Div => t.of(UnaryOpcode::Recip, b),
        BinaryOpcode::Maximum => {
            let share = share(t, BinaryOpcode::Gt, a, b);
            t.unless_nan(y, share)
        }
        BinaryOpcode::Minimum => {
            let share = share(t, BinaryOpcode::Lt, a, b);
            t.unless_nan(y, share)
        }
        BinaryOpcode::Fmax => share_of_numbers(t, BinaryOpcode::Gt, a, b),
        BinaryOpcode::Fmin => share_of_numbers(t, BinaryOpcode::Lt, a, b),
        BinaryOpcode::Powf => {
            // b a^(b - 1), and 0 for 0^0.
            let less = t.plus(b, -1.0);
            let power = t.is(BinaryOpcode::Powf, a, less);
            let slope = t.mul(b, power);
            let (base, exponent) = (t.is_to(BinaryOpcode::Eq, a, 0.0), t.is_to(BinaryOpcode::Eq, b, 0.0));
            let (none, zero) = (t.is(BinaryOpcode::And, base, exponent), t.c(0.0));
            t.pick(none, zero, slope)
        }
        BinaryOpcode::Atan2 => slope_of_angle(t, a, b, b),
        BinaryOpcode::Hypot => share_of_length(t, a, y),
        BinaryOpcode::Copysign => {
            let (sign, signs) = (t.of(UnaryOpcode::Signum, a), t.of(UnaryOpcode::Signum, y));
            t.mul(sign, signs)
        }
        BinaryOpcode::LogAddExp => share_of_exp(t, a, b),
        BinaryOpcode::Xlogy => {
            // ln(b), and 0 where the value is 0 although that is infinite or not-a-number.
            let ln = t.of(UnaryOpcode::Ln, b);
            let (factor, base) = (t.is_to(BinaryOpcode::Eq, a, 0.0), t.is_to(BinaryOpcode::Le, b, 0.0));
            let (none, zero) = (t.is(BinaryOpcode::And, factor, base), t.c(0.0));
            t.pick(none, zero, ln)
        }
        BinaryOpcode::Heaviside => return None,
        BinaryOpcode::SquaredError => {
            let difference = t.sub(a, b);
            t.scaled(difference, 2.0)
        }
        BinaryOpcode::AbsoluteError => {
            let difference = t.sub(a, b);
            t.of(UnaryOpcode::Signum, difference)
        }
        BinaryOpcode::Bce => {
            // (a - b) / (a (1 - a)), the product at least 1e-12, as PyTorch has it.
            let (difference, rest) = (t.sub(a, b), t.from(1.0, a));
            let (product, least) = (t.mul(a, rest), t.c(1e-12));
            let divisor = t.is(BinaryOpcode::Maximum, product, least);
            t.div(difference, divisor)
        }
        BinaryOpcode::BceWithLogits => {
            // s(a) - b, as s(a) (1 - b) - s(-a) b: neither term loses digits.
            let negative = t.of(UnaryOpcode::Neg, a);
            let (s, other) = (t.of(UnaryOpcode::Sigmoid, a), t.of(UnaryOpcode::Sigmoid, negative));
            let rest = t.from(1.0, b);
            let (first, second) = (t.mul(s, rest), t.mul(other, b));
            t.sub(first, second)
        }
        BinaryOpcode::KlDiv => t.of(UnaryOpcode::Neg, b),
        BinaryOpcode::Huber(delta) => {
            let difference = t.sub(a, b);
            t.of(UnaryOpcode::Clamp(-delta, delta), difference)
        }
        BinaryOpcode::SmoothL1(beta) => {
            let difference = t.sub(a, b);
            if beta == 0.0 {
                t.of(UnaryOpcode::Signum, difference)
            } else {
                let clamped = t.of(UnaryOpcode::Clamp(-beta, beta), difference);
                t.scaled(clamped, 1.0 / beta)
            }
        }
        BinaryOpcode::Lerp(weight) => t.c(1.0 - weight),
        BinaryOpcode::FloorDiv
        | BinaryOpcode::UnsignedDiv
        | BinaryOpcode::UnsignedRem
        | BinaryOpcode::And
        | BinaryOpcode::Or
        | BinaryOpcode::Xor => return None,
        BinaryOpcode::Lt
        | BinaryOpcode::Le
        | BinaryOpcode::Gt
        | BinaryOpcode::Ge
        | BinaryOpcode::Eq
        | BinaryOpcode::Ne => return None,
    })
}

fn right(
    t: &mut TermBuilder<'_>,
    op: BinaryOpcode,
    a: Register,
    b: Register,
    y: Register,
) -> Option<Register> {
    Some(match op {
        BinaryOpcode::Add | BinaryOpcode::Offset => t.c(1.0),
        BinaryOpcode::Sub => t.c(-1.0),
        BinaryOpcode::Mul | BinaryOpcode::Chain => a,
        BinaryOpcode::Div => {
            let quotient = t.div(y, b);
            t.of(UnaryOpcode::Neg, quotient)
        }
        BinaryOpcode::Rem | BinaryOpcode::Remainder => {
            // How often `b` was taken off: the quotient `a / b` could be rounded to another whole number.
            let taken = t.sub(a, y);
            let quotient = t.div(taken, b);
            let whole = t.of(UnaryOpcode::Round, quotient);
            t.of(UnaryOpcode::Neg, whole)
        }
        BinaryOpcode::Maximum => {
            let share = share(t, BinaryOpcode::Gt, b, a);
            t.unless_nan(y, share)
        }
        BinaryOpcode::Minimum => {
            let share = share(t, BinaryOpcode::Lt, b, a);
            t.unless_nan(y, share)
        }
        BinaryOpcode::Fmax => share_of_numbers(t, BinaryOpcode::Gt, b, a),
        BinaryOpcode::Fmin => share_of_numbers(t, BinaryOpcode::Lt, b, a),
        BinaryOpcode::Powf => {
            // y ln(a), and 0 for a base of 0 with an exponent that is not negative.
            let ln = t.of(UnaryOpcode::Ln, a);
            let slope = t.mul(y, ln);
            let (base, exponent) = (t.is_to(BinaryOpcode::Eq, a, 0.0), t.is_to(BinaryOpcode::Ge, b, 0.0));
            let (none, zero) = (t.is(BinaryOpcode::And, base, exponent), t.c(0.0));
            t.pick(none, zero, slope)
        }
        BinaryOpcode::Atan2 => {
            let slope = slope_of_angle(t, a, b, a);
            t.of(UnaryOpcode::Neg, slope)
        }
        BinaryOpcode::Hypot => share_of_length(t, b, y),
        BinaryOpcode::LogAddExp => share_of_exp(t, b, a),
        BinaryOpcode::Xlogy => {
            // a / b, and 0 where both are.
            let (slope, factor, base) =
                (t.div(a, b), t.is_to(BinaryOpcode::Eq, a, 0.0), t.is_to(BinaryOpcode::Eq, b, 0.0));
            let (none, zero) = (t.is(BinaryOpcode::And, factor, base), t.c(0.0));
            t.pick(none, zero, slope)
        }
        BinaryOpcode::Heaviside => {
            let at_0 = t.is_to(BinaryOpcode::Eq, a, 0.0);
            t.choose(at_0, 1.0, 0.0)
        }
        BinaryOpcode::SquaredError => {
            let difference = t.sub(b, a);
            t.scaled(difference, 2.0)
        }
        BinaryOpcode::AbsoluteError => {
            let difference = t.sub(b, a);
            t.of(UnaryOpcode::Signum, difference)
        }
        BinaryOpcode::Bce => {
            // ln(1 - a) - ln(a), each at least -100, and then the other is 0.
            let logit = t.of(UnaryOpcode::Logit, a);
            let bounded = t.of(UnaryOpcode::Clamp(-100.0, 100.0), logit);
            t.of(UnaryOpcode::Neg, bounded)
        }
        BinaryOpcode::BceWithLogits => t.of(UnaryOpcode::Neg, a),
        BinaryOpcode::KlDiv => {
            // ln(b) + 1 - a, and 0 where b is 0.
            let ln = t.of(UnaryOpcode::Ln, b);
            let sum = t.plus(ln, 1.0);
            let slope = t.sub(sum, a);
            let (none, zero) = (t.is_to(BinaryOpcode::Eq, b, 0.0), t.c(0.0));
            t.pick(none, zero, slope)
        }
        BinaryOpcode::Huber(_) | BinaryOpcode::SmoothL1(_) => {
            let slope = left(t, op, a, b, y)?;
            t.of(UnaryOpcode::Neg, slope)
        }
        BinaryOpcode::Lerp(weight) => t.c(weight),
        BinaryOpcode::Copysign
        | BinaryOpcode::FloorDiv
        | BinaryOpcode::UnsignedDiv
        | BinaryOpcode::UnsignedRem
        | BinaryOpcode::And
        | BinaryOpcode::Or
        | BinaryOpcode::Xor => return None,
        BinaryOpcode::Lt
        | BinaryOpcode::Le
        | BinaryOpcode::Gt
        | BinaryOpcode::Ge
        | BinaryOpcode::Eq
        | BinaryOpcode::Ne => return None,
    })
}

/// `side / (a^2 + b^2)` for one of the two as the side, and 0 at the origin and at infinite points. The squares could overflow, or be 0.
fn slope_of_angle(t: &mut TermBuilder<'_>, a: Register, b: Register, side: Register) -> Register {
    let length = t.is(BinaryOpcode::Hypot, a, b);
    let share = t.div(side, length);
    let slope = t.div(share, length);
    let (none, far) = (t.is_to(BinaryOpcode::Eq, length, 0.0), t.of(UnaryOpcode::IsInfinite, length));
    let (none, zero) = (t.is(BinaryOpcode::Or, none, far), t.c(0.0));
    t.pick(none, zero, slope)
}

/// `e^a / (e^a + e^b)`; equal infinities have half each.
fn share_of_exp(t: &mut TermBuilder<'_>, a: Register, b: Register) -> Register {
    let (difference, zero) = (t.sub(a, b), t.c(0.0));
    let (same, infinite) = (t.is(BinaryOpcode::Eq, a, b), t.of(UnaryOpcode::IsInfinite, a));
    let none = t.is(BinaryOpcode::And, same, infinite);
    let difference = t.pick(none, zero, difference);
    t.of(UnaryOpcode::Sigmoid, difference)
}
