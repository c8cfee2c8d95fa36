//! Derivatives of programs. Derivatives of operations are in the [table](crate::ops::table). The
//! longer ones are functions here.
//!
//! Where a function has no derivative, a convention applies, for example 0 at the kinks of `abs`,
//! `relu` and `clamp`, and one half for each operand of a maximum of equal operands. The product of
//! a cotangent and a derivative is 0 if either is 0, so a value that a `select` did not take does
//! not make a gradient NaN.

use crate::ops::code::{BinaryOpcode, Number, RegisterKind, UnaryOpcode};
use crate::program::builder::Builder;
use crate::program::symbol::{FormulaTerm, Symbol, select};
use crate::program::{Instruction, Register, ScalarProgram};
use alloc::sync::Arc;
use core::cell::RefCell;
use core::f64::consts::{FRAC_1_SQRT_2, FRAC_2_SQRT_PI, LN_2, LN_10, PI};
use smallvec::SmallVec;

/// Whether each value of a program depends on any of these `operands` through floats; `None` if the
/// result does not.
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

/// Writes the gradients `cotangent * d program / d operand` for some operands of a program that has
/// been inlined: `own` has the register of each of the program's values, and `depends` tells which
/// values [depend](depends_on) on the operands. Returns the position of each operand in `operands`,
/// with the register of its gradient. Operands whose gradient is the constant 0 are left out.
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
                let result = &mut results[number.expect("the value depends on an operand")];
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

/// Panics because the operation `name` has no derivative. An operation from floats to floats is
/// recorded only if it has a derivative. So this happens only in a gradient of a gradient, if
/// `name` is itself the derivative of an operation.
#[cold]
fn underivable(name: &str) -> ! {
    panic!(
        "no gradient of a gradient can be taken here: `{name}` has no derivative; `Derivative::of(op)` takes an operation that can have one"
    )
}

fn is_float(kind: RegisterKind) -> bool {
    matches!(kind, RegisterKind::F32 | RegisterKind::F64)
}

/// The derivative of an operation on one operand, `y = op(x)`; `None` if it is 0 everywhere.
fn unary(build: &mut Builder, op: UnaryOpcode, x: Register, y: Register) -> Option<Register> {
    let build = RefCell::new(build);
    let symbol = |register| Symbol::new(&build, register);
    unary_slope(op, symbol(x), symbol(y)).map(Symbol::register)
}

/// The derivatives of an operation on two operands, `z = op(x, y)`, for the operands that are
/// `wanted`; `None` if a derivative is 0 everywhere.
fn binary(
    build: &mut Builder,
    op: BinaryOpcode,
    x: Register,
    y: Register,
    z: Register,
    wanted: [bool; 2],
) -> [Option<Register>; 2] {
    let build = RefCell::new(build);
    let [x, y, z] = [x, y, z].map(|register| Symbol::new(&build, register));
    [0, 1].map(|at| if wanted[at] { binary_slope(op, at, x, y, z).map(Symbol::register) } else { None })
}

/// A derivative that is 0 everywhere.
fn zero<'b>() -> Option<Symbol<'b>> {
    None
}

/// The derivative in a line of the table. Operations without one have `bool`s as results, or take
/// no floats.
macro_rules! slope {
    ($bound:ident $out:tt $slope:expr) => {
        Option::from($slope)
    };
    (Logic T) => {
        zero()
    };
    (Integer T) => {
        zero()
    };
    ($bound:ident bool) => {
        zero()
    };
}

macro_rules! unary_slopes {
    (operations { $(
        $(#[$doc:meta])* $name:ident $method:ident($x:ident: $bound:ident) -> $out:tt $(, $property:ident)* {
            value: $value:expr $(, slope($y:tt): $slope:expr, on: $on:expr)?
        }
    )* } constants { $(
        $(#[$with_doc:meta])* $with:ident $with_method:ident($with_x:ident: $with_bound:ident, $c:ident = $sample:literal)
            -> T $(, $with_property:ident)*
        { value: $with_value:expr, slope($with_y:tt): $with_slope:expr, on: $with_on:expr }
    )* }) => {
        #[allow(unused_variables)] // constant derivatives use none
        fn unary_slope<'b>(op: UnaryOpcode, x: Symbol<'b>, y: Symbol<'b>) -> Option<Symbol<'b>> {
            match op {
                $(UnaryOpcode::$name => {
                    let $x = x;
                    $(let $y = y;)?
                    slope!($bound $out $($slope)?)
                })*
                $(UnaryOpcode::$with($c) => {
                    let ($with_x, $with_y) = (x, y);
                    slope!($with_bound T $with_slope)
                })*
                UnaryOpcode::Polygamma(order) => Some(x.polygamma(order + 1)),
                UnaryOpcode::SincSlope(order) => Some(x.sinc_slope(order + 1)),
                UnaryOpcode::SigmoidSlope => Some(y * (x * -0.5).tanh()),
                UnaryOpcode::NormalBelow => Some(normal_density(x)),
                UnaryOpcode::Bell(c) => Some(y.chain(x * (-2.0 * c))),
                UnaryOpcode::Powi(0) | UnaryOpcode::FromEnd(_) => zero(),
                UnaryOpcode::Powi(1) => Some(x.constant(1.0)),
                UnaryOpcode::Powi(2) => Some(x * 2.0),
                UnaryOpcode::Powi(n) => Some(x.powi(n.saturating_sub(1)) * f64::from(n)),
                UnaryOpcode::Clamp(low, high) => Some(inside(x, low, high)),
            }
        }
    };
}

crate::unary_operations!(unary_slopes);

macro_rules! binary_slopes {
    (operations { $(
        $(#[$doc:meta])* $name:ident $method:ident($x:ident, $y:ident: $bound:ident) -> $out:tt $(, $property:ident)* {
            value: $value:expr $(, slopes($z:tt): [$left:expr, $right:expr], on: $on:expr)?
        }
    )* } constants { $(
        $(#[$with_doc:meta])* $with:ident $with_method:ident($with_x:ident, $with_y:ident: Real, $c:ident = $sample:literal)
            -> T $(, $with_property:ident)*
        { value: $with_value:expr, slopes($with_z:tt): [$with_left:expr, $with_right:expr], on: $with_on:expr }
    )* }) => {
        /// The derivative with respect to the first or the second operand.
        #[allow(unused_variables)] // constant derivatives use none
        fn binary_slope<'b>(op: BinaryOpcode, at: usize, x: Symbol<'b>, y: Symbol<'b>, z: Symbol<'b>) -> Option<Symbol<'b>> {
            match op {
                $(BinaryOpcode::$name => {
                    let ($x, $y) = (x, y);
                    $(let $z = z;)?
                    if at == 0 { slope!($bound $out $($left)?) } else { slope!($bound $out $($right)?) }
                })*
                $(BinaryOpcode::$with($c) => {
                    let ($with_x, $with_y, $with_z) = (x, y, z);
                    if at == 0 { slope!(Real T $with_left) } else { slope!(Real T $with_right) }
                })*
                BinaryOpcode::Chain => Some(if at == 0 { y } else { x }),
                BinaryOpcode::UnsignedDiv | BinaryOpcode::UnsignedRem => zero(),
            }
        }
    };
}

crate::binary_operations!(binary_slopes);

/// Operations that are not in the table.
impl<'b> Symbol<'b> {
    fn powi(self, n: i32) -> Self {
        self.unary(UnaryOpcode::Powi(n))
    }

    fn clamp(self, low: f64, high: f64) -> Self {
        self.unary(UnaryOpcode::Clamp(low, high))
    }

    fn polygamma(self, order: u32) -> Self {
        self.unary(UnaryOpcode::Polygamma(order))
    }

    fn sinc_slope(self, order: u32) -> Self {
        self.unary(UnaryOpcode::SincSlope(order))
    }

    fn sigmoid_slope(self) -> Self {
        self.unary(UnaryOpcode::SigmoidSlope)
    }

    fn normal_below(self) -> Self {
        self.unary(UnaryOpcode::NormalBelow)
    }

    /// `e^(-c x^2)`
    fn bell(self, c: f64) -> Self {
        self.unary(UnaryOpcode::Bell(c))
    }

    /// The product; 0 if either factor is 0, whatever the other is.
    fn chain(self, other: impl FormulaTerm<'b>) -> Self {
        self.binary(BinaryOpcode::Chain, other)
    }
}

/// `slope`, or NaN if `x` is NaN. Comparisons with `x`, which choose the slope, do not keep NaN.
fn unless_nan<'b>(x: Symbol<'b>, slope: Symbol<'b>) -> Symbol<'b> {
    select(x.eq(x), slope, x.constant(f64::NAN))
}

fn where_positive<'b>(x: Symbol<'b>, value: f64, other: Symbol<'b>) -> Symbol<'b> {
    select(x.gt(0.0), x.constant(value), other)
}

/// 1 strictly between the bounds, otherwise 0; NaN for NaN.
fn inside(x: Symbol<'_>, low: f64, high: f64) -> Symbol<'_> {
    unless_nan(x, x.choose(x.gt(low) & x.lt(high), 1.0, 0.0))
}

/// 1 if `|x| > bound`, otherwise 0; NaN for NaN.
fn outside(x: Symbol<'_>, bound: f64) -> Symbol<'_> {
    unless_nan(x, x.choose(x.abs().gt(bound), 1.0, 0.0))
}

/// `1 - x^2`. Near 1 and -1, where the two terms would cancel, it is computed as a product. Near 0
/// it is not, because there the terms of the product's derivative would cancel.
fn rest_of_square(x: Symbol<'_>) -> Symbol<'_> {
    select(x.abs().lt(0.5), 1.0 - x.square(), (1.0 - x) * (x + 1.0))
}

/// `1 / sqrt(x^2 - 1)`, computed from two roots, because `x^2` could overflow.
fn acosh_slope(x: Symbol<'_>) -> Symbol<'_> {
    let (below, above) = (x + -1.0, x + 1.0);
    below.rsqrt() * above.rsqrt()
}

/// `1 - tanh(x)^2`, which is `4 sigmoid(2x) sigmoid(-2x)`.
fn tanh_slope(x: Symbol<'_>) -> Symbol<'_> {
    (x * 2.0).sigmoid_slope() * 4.0
}

/// The density of a standard normal distribution.
fn normal_density(x: Symbol<'_>) -> Symbol<'_> {
    x.bell(0.5) * (0.5 * FRAC_2_SQRT_PI * FRAC_1_SQRT_2)
}

fn selu_slope(x: Symbol<'_>) -> Symbol<'_> {
    let (scale, alpha) = (1.050_700_987_355_480_5, 1.673_263_242_354_377_2);
    where_positive(x, scale, x.exp() * (scale * alpha))
}

/// `tanh(s) + x (1 - tanh(s)^2) sigmoid(x)` with `s = softplus(x)`.
fn mish_slope(x: Symbol<'_>) -> Symbol<'_> {
    let softplus = x.softplus();
    let tanh = softplus.tanh();
    tanh + tanh_slope(softplus).chain(x.sigmoid().chain(x))
}

/// 0 up to -3, 1 from 3 on, and `(2x + 3) / 6` in between.
fn hard_swish_slope(x: Symbol<'_>) -> Symbol<'_> {
    let middle = (x * 2.0 + 3.0) * (1.0 / 6.0);
    let (above, below) = (x.ge(3.0), x.le(-3.0));
    let (zero, one) = (x.constant(0.0), x.constant(1.0));
    select(above, one, select(below, zero, middle))
}

/// With the sigmoid `s` and `u = 2c (x + k x^3)`, the value is `x s(u)`, and its derivative is
/// `s(u) + x s'(u) 2c (1 + 3 k x^2)`.
fn gelu_tanh_slope(x: Symbol<'_>) -> Symbol<'_> {
    let (c, k) = (0.797_884_560_802_865_4, 0.044_715);
    let square = x.square();
    let sum = square * k + 1.0;
    let u = x * (2.0 * c) * sum;
    let (s, rest) = (u.sigmoid(), u.sigmoid_slope());
    let inner = square * (6.0 * k * c) + 2.0 * c;
    s + rest.chain(x * inner)
}

/// 1 if `x` is the operand that is taken, 1/2 if both are equal, otherwise 0.
fn share<'b>(taken: Symbol<'b>, x: Symbol<'b>, y: Symbol<'b>) -> Symbol<'b> {
    let (same, one) = (x.eq(y), x.constant(1.0));
    select(taken, one, x.choose(same, 0.5, 0.0))
}

/// Like [`share`], but if one operand is NaN, the other gets 1.
fn share_of_numbers<'b>(taken: Symbol<'b>, x: Symbol<'b>, y: Symbol<'b>) -> Symbol<'b> {
    let (own, one) = (share(taken, x, y), x.constant(1.0));
    let (here, there, zero) = (x.is_nan(), y.is_nan(), x.constant(0.0));
    select(here, zero, select(there, one, own))
}

/// `side / length`; 0 if the length is 0.
fn share_of_length<'b>(side: Symbol<'b>, length: Symbol<'b>) -> Symbol<'b> {
    let slope = side / length;
    select(length.eq(0.0), side.constant(0.0), slope)
}

/// The number of times that `y` was subtracted from `x` to leave `z`, negated. It is not computed
/// from `x / y`, because this quotient could be rounded to another integer.
fn times_taken_off<'b>(x: Symbol<'b>, y: Symbol<'b>, z: Symbol<'b>) -> Symbol<'b> {
    -((x - z) / y).round()
}

/// `y x^(y - 1)`; 0 for `0^0`.
fn powf_by_base<'b>(x: Symbol<'b>, y: Symbol<'b>) -> Symbol<'b> {
    let power = x.powf(y + -1.0);
    // Where `x` is subnormal and `y` is 0, the power overflows, but the slope is 0.
    let slope = select(power.is_infinite(), y.chain(power), y * power);
    let none = x.eq(0.0) & y.eq(0.0);
    select(none, x.constant(0.0), slope)
}

/// `z ln(x)` with `z = x^y`; 0 for a base of 0 and an exponent that is not negative.
fn powf_by_exponent<'b>(x: Symbol<'b>, y: Symbol<'b>, z: Symbol<'b>) -> Symbol<'b> {
    let slope = z * x.ln();
    let none = x.eq(0.0) & y.ge(0.0);
    select(none, x.constant(0.0), slope)
}

/// `side / (x^2 + y^2)`, where `side` is `x` or `y`; 0 at the origin and at infinite points. The
/// squares could overflow or underflow, so they are not computed.
fn slope_of_angle<'b>(x: Symbol<'b>, y: Symbol<'b>, side: Symbol<'b>) -> Symbol<'b> {
    let length = x.hypot(y);
    let slope = side / length / length;
    let none = length.eq(0.0) | length.is_infinite();
    select(none, x.constant(0.0), slope)
}

/// `e^x / (e^x + e^y)`; 1/2 for equal infinities.
fn share_of_exp<'b>(x: Symbol<'b>, y: Symbol<'b>) -> Symbol<'b> {
    let (difference, zero) = (x - y, x.constant(0.0));
    let none = x.eq(y) & x.is_infinite();
    select(none, zero, difference).sigmoid()
}

/// `ln(y)`; 0 if `x` is 0 and `y <= 0`.
fn xlogy_by_factor<'b>(x: Symbol<'b>, y: Symbol<'b>) -> Symbol<'b> {
    let ln = y.ln();
    let none = x.eq(0.0) & y.le(0.0);
    select(none, x.constant(0.0), ln)
}

/// `x / y`; 0 if both are 0.
fn xlogy_by_argument<'b>(x: Symbol<'b>, y: Symbol<'b>) -> Symbol<'b> {
    let slope = x / y;
    let none = x.eq(0.0) & y.eq(0.0);
    select(none, x.constant(0.0), slope)
}

/// `s(x) - y` with the sigmoid `s`, computed as `s(x) (1 - y) - s(-x) y`, where no term loses
/// precision.
fn bce_by_logits<'b>(x: Symbol<'b>, y: Symbol<'b>) -> Symbol<'b> {
    let negative = -x;
    let (s, other) = (x.sigmoid(), negative.sigmoid());
    s * (1.0 - y) - other * y
}

/// `ln(y) + 1 - x`; 0 if `y` is 0.
fn kl_div_by_target<'b>(x: Symbol<'b>, y: Symbol<'b>) -> Symbol<'b> {
    let slope = y.ln() + 1.0 - x;
    select(y.eq(0.0), x.constant(0.0), slope)
}

/// The derivative of the smooth L1 loss with respect to the difference.
fn smooth_l1(difference: Symbol<'_>, beta: f64) -> Symbol<'_> {
    if beta == 0.0 { difference.signum() } else { difference.clamp(-beta, beta) * (1.0 / beta) }
}
