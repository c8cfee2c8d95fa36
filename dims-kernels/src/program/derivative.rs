//! Derivatives of programs.
//!
//! Conventions where a function has none are PyTorch's: 0 for `abs`, `relu` and `clamp` at their kinks, half to each operand of a maximum of equal
//! ones. A product of a cotangent and a derivative is 0 if one of them is, so neither the infinite slope of a root at 0 nor what a `select` did not
//! take makes it not-a-number.

use crate::ops::code::{Binary, Kind, Number, Unary};
use crate::program::{Builder, Instruction, Program, Register};
use alloc::sync::Arc;
use core::f64::consts::{FRAC_2_SQRT_PI, LN_2, LN_10, PI};
use smallvec::SmallVec;

/// Whether each value of a program depends on some of its operands by floats; nothing if the result does not.
pub fn depends_on(program: &Program, operands: &[u32]) -> Option<SmallVec<[bool; 16]>> {
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
    program: &Program,
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
                Some(sum) => build.binary(Binary::Add, sum, value),
                None => value,
            });
        };
        match instructions[at] {
            Instruction::Load(number) => {
                let number = operands.iter().position(|&operand| operand == number);
                let result = &mut results[number.expect("it depends on an operand")];
                *result = Some(match *result {
                    Some(sum) => build.binary(Binary::Add, sum, adjoint),
                    None => adjoint,
                });
            }
            Instruction::Position(_) | Instruction::Constant(_) => {}
            Instruction::Unary(op, a) => {
                let value =
                    unary(build, op, of(a), value).map(|slope| build.binary(Binary::Chain, adjoint, slope));
                add(build, a, value);
            }
            Instruction::Binary(op, a, b) => {
                let asked = [depends[a as usize], depends[b as usize]];
                let [left, right] = binary(build, op, of(a), of(b), value, asked);
                let value = left.map(|slope| build.binary(Binary::Chain, adjoint, slope));
                add(build, a, value);
                let value = right.map(|slope| build.binary(Binary::Chain, adjoint, slope));
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
                    let value = build.binary(Binary::Chain, adjoint, slope);
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

fn is_float(kind: Kind) -> bool {
    matches!(kind, Kind::F32 | Kind::F64)
}

/// Short names for what derivatives are made of.
struct Terms<'b> {
    build: &'b mut Builder,
    kind: Kind,
}

impl Terms<'_> {
    fn c(&mut self, value: f64) -> Register {
        self.build.float(value, self.kind)
    }
    fn add(&mut self, a: Register, b: Register) -> Register {
        self.build.binary(Binary::Add, a, b)
    }
    fn sub(&mut self, a: Register, b: Register) -> Register {
        self.build.binary(Binary::Sub, a, b)
    }
    fn mul(&mut self, a: Register, b: Register) -> Register {
        self.build.binary(Binary::Mul, a, b)
    }
    fn div(&mut self, a: Register, b: Register) -> Register {
        self.build.binary(Binary::Div, a, b)
    }
    fn of(&mut self, op: Unary, a: Register) -> Register {
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
        self.of(Unary::Square, a)
    }
    fn is(&mut self, op: Binary, a: Register, b: Register) -> Register {
        self.build.binary(op, a, b)
    }
    /// Whether a comparison with a constant holds.
    fn is_to(&mut self, op: Binary, a: Register, value: f64) -> Register {
        let value = self.c(value);
        self.is(op, a, value)
    }
    fn pick(&mut self, cond: Register, a: Register, b: Register) -> Register {
        self.build.select(cond, a, b)
    }
    /// One of two constants.
    fn choose(&mut self, cond: Register, a: f64, b: f64) -> Register {
        let (a, b) = (self.c(a), self.c(b));
        self.pick(cond, a, b)
    }
}

/// The derivative of an operation on one operand, `y = op(a)`; nothing where it is 0 everywhere.
fn unary(build: &mut Builder, op: Unary, a: Register, y: Register) -> Option<Register> {
    let kind = build.kind(y);
    let mut t = Terms { build, kind };
    Some(match op {
        Unary::Neg => t.c(-1.0),
        Unary::Abs => t.of(Unary::Signum, a),
        Unary::Exp => y,
        Unary::ExpM1 => t.of(Unary::Exp, a),
        Unary::Ln => t.of(Unary::Recip, a),
        Unary::Ln1p => {
            let one = t.plus(a, 1.0);
            t.of(Unary::Recip, one)
        }
        Unary::Log2 => t.over(1.0 / LN_2, a),
        Unary::Log10 => t.over(1.0 / LN_10, a),
        Unary::Exp2 => t.scaled(y, LN_2),
        Unary::Sqrt => t.over(0.5, y),
        Unary::Cbrt => {
            let square = t.square(y);
            t.over(1.0 / 3.0, square)
        }
        Unary::Rsqrt => {
            let slope = t.div(y, a);
            t.scaled(slope, -0.5)
        }
        Unary::Recip => {
            let square = t.square(y);
            t.of(Unary::Neg, square)
        }
        Unary::Square => t.scaled(a, 2.0),
        Unary::Erf | Unary::Erfc => {
            let square = t.square(a);
            let negative = t.of(Unary::Neg, square);
            let bell = t.of(Unary::Exp, negative);
            t.scaled(bell, if op == Unary::Erf { FRAC_2_SQRT_PI } else { -FRAC_2_SQRT_PI })
        }
        Unary::Floor | Unary::Ceil | Unary::Round | Unary::RoundTiesEven | Unary::Trunc | Unary::Signum => {
            return None;
        }
        Unary::Fract => t.c(1.0),
        Unary::LnGamma => t.of(Unary::Polygamma(1), a),
        Unary::Polygamma(order) => t.of(Unary::Polygamma(order + 1), a),
        Unary::Logit => {
            let rest = t.from(1.0, a);
            let product = t.mul(a, rest);
            t.of(Unary::Recip, product)
        }
        Unary::Sinc => {
            // (cos(pi a) - sinc(a)) / a; near 0, where these are nearly equal, its series.
            let angle = t.scaled(a, PI);
            let cos = t.of(Unary::Cos, angle);
            let difference = t.sub(cos, y);
            let slope = t.div(difference, a);
            let square = t.square(a);
            let cubic = t.scaled(square, PI * PI * PI * PI / 30.0);
            let factor = t.plus(cubic, -PI * PI / 3.0);
            let (series, size) = (t.mul(a, factor), t.of(Unary::Abs, a));
            let is_near = t.is_to(Binary::Lt, size, 1e-3);
            t.pick(is_near, series, slope)
        }
        Unary::ToDegrees => t.c(180.0 / PI),
        Unary::ToRadians => t.c(PI / 180.0),
        Unary::Powi(n) => match n {
            0 => return None,
            1 => t.c(1.0),
            2 => t.scaled(a, 2.0),
            n => {
                let power = t.of(Unary::Powi(n.saturating_sub(1)), a);
                t.scaled(power, f64::from(n))
            }
        },
        Unary::Clamp(low, high) => inside(&mut t, a, low, high),
        Unary::NanTo(_) => {
            let nan = t.of(Unary::IsNan, a);
            t.choose(nan, 0.0, 1.0)
        }
        Unary::IsInfinite
        | Unary::Signbit
        | Unary::IsNan
        | Unary::IsFinite
        | Unary::Not
        | Unary::FromEnd(_) => return None,
        Unary::Sigmoid
        | Unary::Relu
        | Unary::Relu6
        | Unary::Silu
        | Unary::Gelu
        | Unary::GeluTanh
        | Unary::Softplus
        | Unary::LnSigmoid
        | Unary::Selu
        | Unary::Mish
        | Unary::HardSigmoid
        | Unary::HardSwish
        | Unary::Softsign
        | Unary::TanhShrink
        | Unary::LeakyRelu(_)
        | Unary::Elu(_)
        | Unary::Celu(_)
        | Unary::HardShrink(_)
        | Unary::SoftShrink(_) => activation(&mut t, op, a, y),
        Unary::Sin
        | Unary::Cos
        | Unary::Tan
        | Unary::Asin
        | Unary::Acos
        | Unary::Atan
        | Unary::Sinh
        | Unary::Cosh
        | Unary::Tanh
        | Unary::Asinh
        | Unary::Acosh
        | Unary::Atanh => circular(&mut t, op, a, y),
    })
}

/// The same of a circular or hyperbolic function, or an inverse of one.
fn circular(t: &mut Terms<'_>, op: Unary, a: Register, y: Register) -> Register {
    match op {
        Unary::Sin => t.of(Unary::Cos, a),
        Unary::Cos => {
            let sin = t.of(Unary::Sin, a);
            t.of(Unary::Neg, sin)
        }
        Unary::Tan => {
            let square = t.square(y);
            t.plus(square, 1.0)
        }
        Unary::Asin | Unary::Acos => {
            let square = t.square(a);
            let rest = t.from(1.0, square);
            let slope = t.of(Unary::Rsqrt, rest);
            if op == Unary::Asin { slope } else { t.of(Unary::Neg, slope) }
        }
        Unary::Atan => {
            let square = t.square(a);
            let sum = t.plus(square, 1.0);
            t.of(Unary::Recip, sum)
        }
        Unary::Sinh => t.of(Unary::Cosh, a),
        Unary::Cosh => t.of(Unary::Sinh, a),
        Unary::Tanh => {
            let square = t.square(y);
            t.from(1.0, square)
        }
        Unary::Asinh => {
            let square = t.square(a);
            let sum = t.plus(square, 1.0);
            t.of(Unary::Rsqrt, sum)
        }
        Unary::Acosh => {
            let square = t.square(a);
            let rest = t.plus(square, -1.0);
            t.of(Unary::Rsqrt, rest)
        }
        Unary::Atanh => {
            let square = t.square(a);
            let rest = t.from(1.0, square);
            t.of(Unary::Recip, rest)
        }
        _ => unreachable!("`unary` has the rules of the others"),
    }
}

/// The same of an activation of a neural network.
fn activation(t: &mut Terms<'_>, op: Unary, a: Register, y: Register) -> Register {
    match op {
        Unary::Sigmoid => {
            let rest = t.from(1.0, y);
            t.mul(y, rest)
        }
        Unary::Relu => {
            let on = t.is_to(Binary::Gt, a, 0.0);
            t.choose(on, 1.0, 0.0)
        }
        Unary::Relu6 => inside(t, a, 0.0, 6.0),
        Unary::Silu => {
            // s + a s (1 - s)
            let s = t.of(Unary::Sigmoid, a);
            let rest = t.from(1.0, s);
            let slope = t.mul(y, rest);
            t.add(s, slope)
        }
        Unary::Gelu => gelu(t, a),
        Unary::GeluTanh => gelu_tanh(t, a),
        Unary::Softplus => t.of(Unary::Sigmoid, a),
        Unary::LnSigmoid => {
            let negative = t.of(Unary::Neg, a);
            t.of(Unary::Sigmoid, negative)
        }
        Unary::Selu => {
            let (scale, alpha) = (1.050_700_987_355_480_5, 1.673_263_242_354_377_2);
            let exp = t.of(Unary::Exp, a);
            let below = t.scaled(exp, scale * alpha);
            let on = t.is_to(Binary::Gt, a, 0.0);
            let above = t.c(scale);
            t.pick(on, above, below)
        }
        Unary::Mish => {
            // tanh(sp) + a (1 - tanh^2(sp)) sigmoid(a)
            let softplus = t.of(Unary::Softplus, a);
            let tanh = t.of(Unary::Tanh, softplus);
            let square = t.square(tanh);
            let rest = t.from(1.0, square);
            let s = t.of(Unary::Sigmoid, a);
            let weighted = t.mul(a, s);
            let slope = t.mul(rest, weighted);
            t.add(tanh, slope)
        }
        Unary::HardSigmoid => {
            let on = inside(t, a, -3.0, 3.0);
            t.scaled(on, 1.0 / 6.0)
        }
        Unary::HardSwish => {
            // 0 below -3, 1 above 3, else a / 3 + 1/2.
            let third = t.scaled(a, 1.0 / 3.0);
            let middle = t.plus(third, 0.5);
            let (above, below) = (t.is_to(Binary::Ge, a, 3.0), t.is_to(Binary::Le, a, -3.0));
            let (zero, one) = (t.c(0.0), t.c(1.0));
            let low = t.pick(below, zero, middle);
            t.pick(above, one, low)
        }
        Unary::Softsign => {
            let size = t.of(Unary::Abs, a);
            let sum = t.plus(size, 1.0);
            let square = t.square(sum);
            t.of(Unary::Recip, square)
        }
        Unary::TanhShrink => {
            let tanh = t.of(Unary::Tanh, a);
            t.square(tanh)
        }
        Unary::LeakyRelu(slope) => {
            let on = t.is_to(Binary::Gt, a, 0.0);
            t.choose(on, 1.0, slope)
        }
        Unary::Elu(alpha) => {
            let exp = t.of(Unary::Exp, a);
            let below = t.scaled(exp, alpha);
            let on = t.is_to(Binary::Gt, a, 0.0);
            let one = t.c(1.0);
            t.pick(on, one, below)
        }
        Unary::Celu(alpha) => {
            let scaled = t.scaled(a, 1.0 / alpha);
            let below = t.of(Unary::Exp, scaled);
            let on = t.is_to(Binary::Gt, a, 0.0);
            let one = t.c(1.0);
            t.pick(on, one, below)
        }
        Unary::HardShrink(lambda) | Unary::SoftShrink(lambda) => {
            let size = t.of(Unary::Abs, a);
            let on = t.is_to(Binary::Gt, size, lambda);
            t.choose(on, 1.0, 0.0)
        }
        _ => unreachable!("`unary` has the rules of the others"),
    }
}

/// The derivative of GELU.
fn gelu(t: &mut Terms<'_>, a: Register) -> Register {
    // The distribution function, and `a` times its density.
    let scaled = t.scaled(a, core::f64::consts::FRAC_1_SQRT_2);
    let erf = t.of(Unary::Erf, scaled);
    let half = t.scaled(erf, 0.5);
    let share = t.plus(half, 0.5);
    let square = t.square(a);
    let exponent = t.scaled(square, -0.5);
    let bell = t.of(Unary::Exp, exponent);
    let density = t.scaled(bell, 0.5 * FRAC_2_SQRT_PI * core::f64::consts::FRAC_1_SQRT_2);
    let slope = t.mul(a, density);
    t.add(share, slope)
}

/// The derivative of GELU's approximation by `tanh`.
fn gelu_tanh(t: &mut Terms<'_>, a: Register) -> Register {
    // u = c (a + k a^3); (1 + tanh u) / 2 + a / 2 (1 - tanh^2 u) c (1 + 3 k a^2)
    let (c, k) = (0.797_884_560_802_865_4, 0.044_715);
    let square = t.square(a);
    let cubic = t.scaled(square, k);
    let sum = t.plus(cubic, 1.0);
    let line = t.scaled(a, c);
    let u = t.mul(line, sum);
    let tanh = t.of(Unary::Tanh, u);
    let half = t.scaled(tanh, 0.5);
    let share = t.plus(half, 0.5);
    let tanh_square = t.square(tanh);
    let rest = t.from(1.0, tanh_square);
    let triple = t.scaled(square, 3.0 * k * c * 0.5);
    let inner = t.plus(triple, c * 0.5);
    let weighted = t.mul(a, inner);
    let slope = t.mul(rest, weighted);
    t.add(share, slope)
}

/// 1 strictly between the bounds, else 0.
fn inside(t: &mut Terms<'_>, a: Register, low: f64, high: f64) -> Register {
    let (above, below) = (t.is_to(Binary::Gt, a, low), t.is_to(Binary::Lt, a, high));
    let on = t.is(Binary::And, above, below);
    t.choose(on, 1.0, 0.0)
}

/// The derivatives of an operation on two operands, `y = op(a, b)`, for those of them that are `wanted`; nothing where one is 0 everywhere.
fn binary(
    build: &mut Builder,
    op: Binary,
    a: Register,
    b: Register,
    y: Register,
    wanted: [bool; 2],
) -> [Option<Register>; 2] {
    let kind = build.kind(y);
    let mut t = Terms { build, kind };
    let first = wanted[0].then(|| left(&mut t, op, a, b, y)).flatten();
    let second = wanted[1].then(|| right(&mut t, op, a, b, y)).flatten();
    [first, second]
}

/// 1 where the comparison holds, 1/2 where the operands are equal, else 0.
fn share(t: &mut Terms<'_>, op: Binary, a: Register, b: Register) -> Register {
    let (is, same) = (t.is(op, a, b), t.is(Binary::Eq, a, b));
    let (one, other) = (t.c(1.0), t.choose(same, 0.5, 0.0));
    t.pick(is, one, other)
}

/// As `share`; of a number and not-a-number, the number has it.
fn share_of_numbers(t: &mut Terms<'_>, op: Binary, a: Register, b: Register) -> Register {
    let (own, one) = (share(t, op, a, b), t.c(1.0));
    let (here, there) = (t.of(Unary::IsNan, a), t.of(Unary::IsNan, b));
    let zero = t.c(0.0);
    let number = t.pick(there, one, own);
    t.pick(here, zero, number)
}

/// `a / y`, and 0 where the length `y` is 0.
fn share_of_length(t: &mut Terms<'_>, a: Register, y: Register) -> Register {
    let (slope, none, zero) = (t.div(a, y), t.is_to(Binary::Eq, y, 0.0), t.c(0.0));
    t.pick(none, zero, slope)
}

fn left(t: &mut Terms<'_>, op: Binary, a: Register, b: Register, y: Register) -> Option<Register> {
    Some(match op {
        Binary::Add | Binary::Offset | Binary::Sub | Binary::Rem | Binary::Remainder => t.c(1.0),
        Binary::Mul | Binary::Chain => b,
        Binary::Div => t.of(Unary::Recip, b),
        Binary::Maximum => share(t, Binary::Gt, a, b),
        Binary::Minimum => share(t, Binary::Lt, a, b),
        Binary::Fmax => share_of_numbers(t, Binary::Gt, a, b),
        Binary::Fmin => share_of_numbers(t, Binary::Lt, a, b),
        Binary::Powf => {
            // b a^(b - 1), and 0 for 0^0.
            let less = t.plus(b, -1.0);
            let power = t.is(Binary::Powf, a, less);
            let slope = t.mul(b, power);
            let (base, exponent) = (t.is_to(Binary::Eq, a, 0.0), t.is_to(Binary::Eq, b, 0.0));
            let (none, zero) = (t.is(Binary::And, base, exponent), t.c(0.0));
            t.pick(none, zero, slope)
        }
        Binary::Atan2 => {
            let square = squares(t, a, b);
            t.div(b, square)
        }
        Binary::Hypot => share_of_length(t, a, y),
        Binary::Copysign => {
            let (sign, signs) = (t.of(Unary::Signum, a), t.of(Unary::Signum, y));
            t.mul(sign, signs)
        }
        Binary::LogAddExp => {
            let difference = t.sub(a, b);
            t.of(Unary::Sigmoid, difference)
        }
        Binary::Xlogy => {
            // ln(b), and 0 where the value is 0 although that is infinite or not-a-number.
            let ln = t.of(Unary::Ln, b);
            let (factor, base) = (t.is_to(Binary::Eq, a, 0.0), t.is_to(Binary::Le, b, 0.0));
            let (none, zero) = (t.is(Binary::And, factor, base), t.c(0.0));
            t.pick(none, zero, ln)
        }
        Binary::Heaviside => return None,
        Binary::SquaredError => {
            let difference = t.sub(a, b);
            t.scaled(difference, 2.0)
        }
        Binary::AbsoluteError => {
            let difference = t.sub(a, b);
            t.of(Unary::Signum, difference)
        }
        Binary::Bce => {
            // (a - b) / (a (1 - a)), the product at least 1e-12, as PyTorch has it.
            let (difference, rest) = (t.sub(a, b), t.from(1.0, a));
            let (product, least) = (t.mul(a, rest), t.c(1e-12));
            let divisor = t.is(Binary::Maximum, product, least);
            t.div(difference, divisor)
        }
        Binary::BceWithLogits => {
            let s = t.of(Unary::Sigmoid, a);
            t.sub(s, b)
        }
        Binary::KlDiv => t.of(Unary::Neg, b),
        Binary::Huber(delta) => {
            let difference = t.sub(a, b);
            t.of(Unary::Clamp(-delta, delta), difference)
        }
        Binary::SmoothL1(beta) => {
            let difference = t.sub(a, b);
            if beta == 0.0 {
                t.of(Unary::Signum, difference)
            } else {
                let clamped = t.of(Unary::Clamp(-beta, beta), difference);
                t.scaled(clamped, 1.0 / beta)
            }
        }
        Binary::Lerp(weight) => t.c(1.0 - weight),
        Binary::FloorDiv | Binary::And | Binary::Or | Binary::Xor => return None,
        Binary::Lt | Binary::Le | Binary::Gt | Binary::Ge | Binary::Eq | Binary::Ne => return None,
    })
}

fn right(t: &mut Terms<'_>, op: Binary, a: Register, b: Register, y: Register) -> Option<Register> {
    Some(match op {
        Binary::Add | Binary::Offset => t.c(1.0),
        Binary::Sub => t.c(-1.0),
        Binary::Mul | Binary::Chain => a,
        Binary::Div => {
            let quotient = t.div(y, b);
            t.of(Unary::Neg, quotient)
        }
        Binary::Rem | Binary::Remainder => {
            let quotient = t.div(a, b);
            let whole = t.of(if op == Binary::Rem { Unary::Trunc } else { Unary::Floor }, quotient);
            t.of(Unary::Neg, whole)
        }
        Binary::Maximum => share(t, Binary::Gt, b, a),
        Binary::Minimum => share(t, Binary::Lt, b, a),
        Binary::Fmax => share_of_numbers(t, Binary::Gt, b, a),
        Binary::Fmin => share_of_numbers(t, Binary::Lt, b, a),
        Binary::Powf => {
            // y ln(a), and 0 for a base of 0 with an exponent that is not negative.
            let ln = t.of(Unary::Ln, a);
            let slope = t.mul(y, ln);
            let (base, exponent) = (t.is_to(Binary::Eq, a, 0.0), t.is_to(Binary::Ge, b, 0.0));
            let (none, zero) = (t.is(Binary::And, base, exponent), t.c(0.0));
            t.pick(none, zero, slope)
        }
        Binary::Atan2 => {
            let square = squares(t, a, b);
            let quotient = t.div(a, square);
            t.of(Unary::Neg, quotient)
        }
        Binary::Hypot => share_of_length(t, b, y),
        Binary::LogAddExp => {
            let difference = t.sub(b, a);
            t.of(Unary::Sigmoid, difference)
        }
        Binary::Xlogy => {
            // a / b, and 0 where both are.
            let (slope, factor, base) =
                (t.div(a, b), t.is_to(Binary::Eq, a, 0.0), t.is_to(Binary::Eq, b, 0.0));
            let (none, zero) = (t.is(Binary::And, factor, base), t.c(0.0));
            t.pick(none, zero, slope)
        }
        Binary::Heaviside => {
            let at_0 = t.is_to(Binary::Eq, a, 0.0);
            t.choose(at_0, 1.0, 0.0)
        }
        Binary::SquaredError => {
            let difference = t.sub(b, a);
            t.scaled(difference, 2.0)
        }
        Binary::AbsoluteError => {
            let difference = t.sub(b, a);
            t.of(Unary::Signum, difference)
        }
        Binary::Bce => {
            // ln(1 - a) - ln(a), each at least -100.
            let rest = t.from(1.0, a);
            let (first, second, least) = (t.of(Unary::Ln, rest), t.of(Unary::Ln, a), t.c(-100.0));
            let (first, second) = (t.is(Binary::Maximum, first, least), t.is(Binary::Maximum, second, least));
            t.sub(first, second)
        }
        Binary::BceWithLogits => t.of(Unary::Neg, a),
        Binary::KlDiv => {
            // ln(b) + 1 - a, and 0 where b is 0.
            let ln = t.of(Unary::Ln, b);
            let sum = t.plus(ln, 1.0);
            let slope = t.sub(sum, a);
            let (none, zero) = (t.is_to(Binary::Eq, b, 0.0), t.c(0.0));
            t.pick(none, zero, slope)
        }
        Binary::Huber(_) | Binary::SmoothL1(_) => {
            let slope = left(t, op, a, b, y)?;
            t.of(Unary::Neg, slope)
        }
        Binary::Lerp(weight) => t.c(weight),
        Binary::Copysign | Binary::FloorDiv | Binary::And | Binary::Or | Binary::Xor => return None,
        Binary::Lt | Binary::Le | Binary::Gt | Binary::Ge | Binary::Eq | Binary::Ne => return None,
    })
}

/// `a^2 + b^2`
fn squares(t: &mut Terms<'_>, a: Register, b: Register) -> Register {
    let (a, b) = (t.square(a), t.square(b));
    t.add(a, b)
}
