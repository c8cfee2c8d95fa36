//! Scalar operations of recorded programs on whole tensors.

use super::text::{Body, Value};
use std::f64::consts::{LN_2, LN_10, PI, SQRT_2};
use typed_dims::program::engine::DType;
use typed_dims::program::engine::saved::SavedOperation;

/// The type of registers that hold elements of a type.
pub(super) fn register(dtype: DType) -> DType {
    match dtype {
        DType::F16 | DType::Bf16 | DType::F32 => DType::F32,
        DType::F64 => DType::F64,
        DType::Bool => DType::Bool,
        _ => DType::I64,
    }
}

pub(super) fn is_float(dtype: DType) -> bool {
    matches!(dtype, DType::F16 | DType::Bf16 | DType::F32 | DType::F64)
}

impl Body {
    /// Elements as registers hold them.
    pub(super) fn loaded(&self, a: &Value) -> Value {
        match a.dtype {
            DType::U64 | DType::Usize => self.bits(a, DType::I64),
            dtype => self.convert(a, register(dtype)),
        }
    }

    /// Registers as elements of a type.
    pub(super) fn stored(&self, a: &Value, dtype: DType) -> Value {
        match dtype {
            _ if a.dtype == dtype => a.clone(),
            DType::Bool => self.nonzero(a),
            DType::U64 | DType::Usize if a.dtype == DType::I64 => self.bits(a, dtype),
            _ if is_float(a.dtype) && !is_float(dtype) => self.stored(&self.to_integer(a, dtype), dtype),
            _ => self.convert(a, dtype),
        }
    }

    /// A constant in the shape and type of a value.
    pub(super) fn like(&self, a: &Value, value: f64) -> Value {
        let one = match is_float(a.dtype) {
            true => self.float(value, a.dtype),
            false => self.int(value as i64, a.dtype),
        };
        self.broadcast(&one, &a.shape, &[])
    }

    fn int_like(&self, a: &Value, value: i64) -> Value {
        self.broadcast(&self.int(value, a.dtype), &a.shape, &[])
    }

    fn nonzero(&self, a: &Value) -> Value {
        match a.dtype {
            DType::Bool => a.clone(),
            _ => self.compare("NE", a, &self.zeros(a.dtype, &a.shape)),
        }
    }

    pub(super) fn is_nan(&self, a: &Value) -> Value {
        self.compare("NE", a, a)
    }

    /// Floats as integers of a type, in registers: rounded towards 0, within its bounds, and 0 for not-a-number.
    fn to_integer(&self, a: &Value, to: DType) -> Value {
        let bits = 8 * to.bytes() as i32;
        let (low, end): (f64, f64) = match to {
            DType::U8 | DType::U16 | DType::U32 => (0.0, 2f64.powi(bits)),
            DType::U64 | DType::Usize => (0.0, 2f64.powi(64)),
            _ => (-2f64.powi(bits - 1), 2f64.powi(bits - 1)),
        };
        let unsigned = matches!(to, DType::U64 | DType::Usize);
        let wide = if unsigned { DType::U64 } else { DType::I64 };
        let inside = self.binary("maximum", a, &self.like(a, low));
        let number = self.convert(&inside, wide);
        let greatest = match to {
            DType::U64 | DType::Usize => self.bound(DType::U64, false),
            DType::I64 | DType::Isize => self.bound(DType::I64, false),
            _ => self.int(end as i64 - 1, wide),
        };
        let greatest = self.broadcast(&greatest, &a.shape, &[]);
        let is_above = self.compare("GE", a, &self.like(a, end));
        let number = self.select(&is_above, &greatest, &number);
        let number = self.select(&self.is_nan(a), &self.zeros(wide, &a.shape), &number);
        self.bits(&number, DType::I64)
    }

    /// A register converted to a type and back to the registers of that type.
    pub(super) fn cast(&self, a: &Value, to: DType, unsigned: bool) -> Value {
        match to {
            DType::F16 | DType::Bf16 => {
                let single = self.float_of(a, DType::F32, unsigned);
                match to {
                    DType::F16 => self.reduce_precision(&single, 5, 10),
                    _ => self.reduce_precision(&single, 8, 7),
                }
            }
            DType::F32 | DType::F64 => self.float_of(a, to, unsigned),
            DType::Bool => self.nonzero(a),
            _ if is_float(a.dtype) => self.to_integer(a, to),
            _ if a.dtype == DType::Bool => self.convert(a, DType::I64),
            DType::I64 | DType::Isize | DType::U64 | DType::Usize => a.clone(),
            _ => self.convert(&self.convert(a, to), DType::I64),
        }
    }

    fn float_of(&self, a: &Value, to: DType, unsigned: bool) -> Value {
        match a.dtype {
            DType::I64 if unsigned => self.convert(&self.bits(a, DType::U64), to),
            _ => self.convert(a, to),
        }
    }

    /// An operation on one operand.
    pub(super) fn apply_unary(&self, op: &SavedOperation, a: &Value) -> Option<Value> {
        let SavedOperation(name, words) = op;
        let float = |at: usize| f64::from_bits(words[at]);
        let c = |value: f64| self.like(a, value);
        let add = |x: &Value, y: &Value| self.binary("add", x, y);
        let sub = |x: &Value, y: &Value| self.binary("subtract", x, y);
        let mul = |x: &Value, y: &Value| self.binary("multiply", x, y);
        let div = |x: &Value, y: &Value| self.binary("divide", x, y);
        let max = |x: &Value, y: &Value| self.binary("maximum", x, y);
        let min = |x: &Value, y: &Value| self.binary("minimum", x, y);
        let un = |name: &str, x: &Value| self.unary(name, x);
        let cmp = |how: &str, x: &Value, y: &Value| self.compare(how, x, y);
        let is_int = a.dtype == DType::I64;
        let abs = |x: &Value| un("abs", x);
        let bounded = |x: &Value| self.select(&cmp("LT", x, &c(-1000.0)), &c(-1000.0), x);
        // `1 / (1 + e^-x)`; of an exponential that cannot overflow.
        let sigmoid = |x: &Value| {
            let exp = un("exponential", &un("negate", &abs(x)));
            let top = self.select(&cmp("LT", x, &c(0.0)), &exp, &c(1.0));
            div(&top, &add(&c(1.0), &exp))
        };
        let softplus = |x: &Value| {
            add(&max(x, &c(0.0)), &un("log_plus_one", &un("exponential", &un("negate", &abs(x)))))
        };
        let hard_sigmoid = |x: &Value| div(&min(&max(&add(x, &c(3.0)), &c(0.0)), &c(6.0)), &c(6.0));
        let trunc = |x: &Value| self.select(&cmp("LT", x, &c(0.0)), &un("ceil", x), &un("floor", x));
        // The part of a standard normal distribution below.
        let below = |x: &Value| mul(&c(0.5), &self.chlo("erfc", &[&mul(x, &c(-1.0 / SQRT_2))]));
        let value = match name.as_str() {
            "Neg" => un("negate", a),
            "Abs" => abs(a),
            "Square" => mul(a, a),
            "Powi" => self.powi(a, words[0] as i64),
            "Signum" if is_int => un("sign", a),
            "Signum" => {
                // 1 with the sign of the operand, also of 0.
                let one = self.select(&self.sign_bit(a), &c(-1.0), &c(1.0));
                self.select(&self.is_nan(a), a, &one)
            }
            "Relu" => max(a, &c(0.0)),
            "Relu6" => min(&max(a, &c(0.0)), &c(6.0)),
            "Not" => un("not", a),
            "FromEnd" => {
                let end = add(a, &self.int_like(a, words[0] as i64));
                self.select(&cmp("LT", a, &c(0.0)), &end, a)
            }
            "Clamp" if is_int => {
                let (low, high) = (float(0) as i64, float(1) as i64);
                min(&max(a, &self.int_like(a, low)), &self.int_like(a, high))
            }
            "Clamp" => min(&max(a, &c(float(0))), &c(float(1))),
            "LeakyRelu" if is_int => {
                let below = mul(a, &self.int_like(a, float(0) as i64));
                self.select(&cmp("LT", a, &c(0.0)), &below, a)
            }
            "LeakyRelu" => self.select(&cmp("LT", a, &c(0.0)), &mul(a, &c(float(0))), a),
            "IsNan" => self.is_nan(a),
            "IsFinite" => self.test("is_finite", a),
            "IsInfinite" => cmp("EQ", &abs(a), &c(f64::INFINITY)),
            "Signbit" if is_int => cmp("LT", a, &c(0.0)),
            "Signbit" => self.sign_bit(a),
            "Exp" => un("exponential", a),
            "ExpM1" => un("exponential_minus_one", a),
            "Ln" => un("log", a),
            "Ln1p" => un("log_plus_one", a),
            "Log2" => div(&un("log", a), &c(LN_2)),
            "Log10" => div(&un("log", a), &c(LN_10)),
            "Exp2" => self.binary("power", &c(2.0), a),
            "Sqrt" => un("sqrt", a),
            "Cbrt" => un("cbrt", a),
            "Rsqrt" => un("rsqrt", a),
            "Recip" => div(&c(1.0), a),
            "Sin" => un("sine", a),
            "Cos" => un("cosine", a),
            "Tan" => un("tan", a),
            "Asin" => self.chlo("asin", &[a]),
            "Acos" => self.chlo("acos", &[a]),
            "Atan" => {
                // (Of a constant 1, plugins for CPUs have computed wrong numbers.)
                let one = self.barrier(&c(1.0));
                self.binary("atan2", a, &one)
            }
            "Sinh" => self.chlo("sinh", &[a]),
            "Cosh" => self.chlo("cosh", &[a]),
            "Tanh" => un("tanh", a),
            "Asinh" => self.chlo("asinh", &[a]),
            "Acosh" => self.chlo("acosh", &[a]),
            "Atanh" => self.chlo("atanh", &[a]),
            "Erf" => self.chlo("erf", &[a]),
            "Erfc" => self.chlo("erfc", &[a]),
            "LnGamma" => self.chlo("lgamma", &[a]),
            "Floor" => un("floor", a),
            "Ceil" => un("ceil", a),
            "Round" => un("round_nearest_afz", a),
            "RoundTiesEven" => un("round_nearest_even", a),
            "Trunc" => trunc(a),
            "Fract" => sub(a, &trunc(a)),
            "Sigmoid" => sigmoid(a),
            "SigmoidSlope" => {
                let exp = un("exponential", &un("negate", &abs(a)));
                let sum = add(&c(1.0), &exp);
                div(&exp, &mul(&sum, &sum))
            }
            "Silu" => mul(&bounded(a), &sigmoid(a)),
            "Gelu" => mul(&bounded(a), &below(a)),
            "NormalBelow" => below(a),
            "Softplus" => softplus(a),
            "LnSigmoid" => un("negate", &softplus(&un("negate", a))),
            "Logit" => {
                let rest = sub(&c(1.0), a);
                let near = cmp("LT", &abs(&sub(a, &c(0.5))), &c(0.25));
                let odds = div(&sub(&add(a, a), &c(1.0)), &rest);
                self.select(&near, &un("log_plus_one", &odds), &un("log", &div(a, &rest)))
            }
            "Selu" => {
                let (scale, alpha) = (1.050_700_987_355_480_5, 1.673_263_242_354_377_2);
                let below = mul(&c(scale * alpha), &un("exponential_minus_one", a));
                self.select(&cmp("GT", a, &c(0.0)), &mul(&c(scale), a), &below)
            }
            "Elu" => {
                let below = mul(&c(float(0)), &un("exponential_minus_one", a));
                self.select(&cmp("GT", a, &c(0.0)), a, &below)
            }
            "Celu" => {
                let alpha = float(0);
                let below = mul(&c(alpha), &un("exponential_minus_one", &div(a, &c(alpha))));
                self.select(&cmp("GT", a, &c(0.0)), a, &below)
            }
            "Mish" => mul(&bounded(a), &un("tanh", &softplus(a))),
            "HardSigmoid" => hard_sigmoid(a),
            "HardSwish" => mul(&bounded(a), &hard_sigmoid(a)),
            "HardShrink" => {
                let inside = cmp("LE", &abs(a), &c(float(0)));
                self.select(&inside, &c(0.0), a)
            }
            "SoftShrink" => {
                let by = c(float(0));
                let zero = self.select(&self.is_nan(a), a, &c(0.0));
                let low = self.select(&cmp("LT", a, &un("negate", &by)), &add(a, &by), &zero);
                self.select(&cmp("GT", a, &by), &sub(a, &by), &low)
            }
            "Softsign" => {
                let greatest = if a.dtype == DType::F64 { f64::MAX } else { f64::from(f32::MAX) };
                let x = min(&max(a, &c(-greatest)), &c(greatest));
                div(&x, &add(&c(1.0), &abs(&x)))
            }
            "TanhShrink" => self.tanh_shrink(a),
            "GeluTanh" => {
                let x = bounded(a);
                let cube = mul(&mul(&mul(&c(0.044_715), &x), &x), &x);
                mul(&x, &sigmoid(&mul(&c(2.0 * 0.797_884_560_802_865_4), &add(&x, &cube))))
            }
            "Sinc" => {
                let wave = div(&self.sin_pi(a), &mul(a, &c(PI)));
                self.select(&cmp("EQ", a, &c(0.0)), &c(1.0), &wave)
            }
            "SincSlope" => self.sinc_slope(words[0] as u32, a),
            "ToDegrees" => mul(a, &c(180.0 / PI)),
            "ToRadians" => mul(a, &c(PI / 180.0)),
            "NanTo" => self.select(&self.is_nan(a), &c(float(0)), a),
            "Polygamma" if words[0] == 1 => self.chlo("digamma", &[a]),
            "Polygamma" => self.chlo("polygamma", &[&c((words[0] - 1) as f64), a]),
            "Bell" => {
                let square = mul(a, a);
                un("exponential", &mul(&c(-float(0)), &square))
            }
            _ => return None,
        };
        Some(value)
    }

    /// A power of a whole exponent: products of squares.
    fn powi(&self, a: &Value, exponent: i64) -> Value {
        let (mut left, mut square, mut power) = (exponent.unsigned_abs(), a.clone(), None);
        while left > 0 {
            if left % 2 == 1 {
                power =
                    Some(power.map_or_else(|| square.clone(), |own| self.binary("multiply", &own, &square)));
            }
            left /= 2;
            if left > 0 {
                square = self.binary("multiply", &square, &square);
            }
        }
        let one = self.like(a, 1.0);
        let power = power.unwrap_or_else(|| one.clone());
        if exponent < 0 { self.binary("divide", &one, &power) } else { power }
    }

    fn sign_bit(&self, a: &Value) -> Value {
        let to = if a.dtype == DType::F64 { DType::I64 } else { DType::I32 };
        let bits = self.bits(a, to);
        self.compare("LT", &bits, &self.zeros(to, &a.shape))
    }

    /// `x - tanh(x)`; near 0, where both are nearly equal, by the series of `x cosh(x) - sinh(x)` and `cosh(x)`.
    fn tanh_shrink(&self, a: &Value) -> Value {
        let square = self.binary("multiply", a, a);
        let (mut difference, mut cosh) = (self.like(a, 0.0), self.like(a, 0.0));
        for k in (1..10u32).rev() {
            let factorial = |n: u32| (1..=n).map(f64::from).product::<f64>();
            let own = f64::from(2 * k) / factorial(2 * k + 1);
            let step = |sum: &Value, own: f64| {
                self.binary("add", &self.binary("multiply", sum, &square), &self.like(a, own))
            };
            (difference, cosh) = (step(&difference, own), step(&cosh, 1.0 / factorial(2 * k)));
        }
        let cosh = self.binary("add", &self.binary("multiply", &cosh, &square), &self.like(a, 1.0));
        let ratio = self.binary("divide", &self.binary("multiply", &square, &difference), &cosh);
        let near = self.binary("multiply", a, &ratio);
        let far = self.binary("subtract", a, &self.unary("tanh", a));
        let is_near = self.compare("LT", &self.unary("abs", a), &self.like(a, 1.25));
        self.select(&is_near, &near, &far)
    }

    /// `sin(pi x)`, of the distance to the nearest whole number.
    fn sin_pi(&self, a: &Value) -> Value {
        let half = self.binary("multiply", a, &self.like(a, 0.5));
        let whole = self.unary("round_nearest_afz", &half);
        let rest = self.binary("subtract", a, &self.binary("multiply", &whole, &self.like(a, 2.0)));
        let sign = self.unary("sign", &rest);
        let is_far = self.compare("GT", &self.unary("abs", &rest), &self.like(a, 0.5));
        let near = self.select(&is_far, &self.binary("subtract", &sign, &rest), &rest);
        self.unary("sine", &self.binary("multiply", &near, &self.like(a, PI)))
    }

    /// The derivative of order `n` of `sin(pi x) / (pi x)`.
    fn sinc_slope(&self, n: u32, a: &Value) -> Value {
        let x = self.convert(a, DType::F64);
        let c = |value: f64| self.like(&x, value);
        let mul = |x: &Value, y: &Value| self.binary("multiply", x, y);
        // Near 0 the series: (-1)^k pi^2k x^(2k - n) (2k)! / (2k - n)! / (2k + 1)!
        let first = n.div_ceil(2);
        let square = mul(&x, &x);
        let mut series = c(0.0);
        for k in (first..first + 20).rev() {
            let factors: f64 = (2 * k - n + 1..=2 * k).map(f64::from).product();
            let inverse: f64 =
                (1..=2 * k + 1).map(|at| if at == 1 { 1.0 } else { PI / f64::from(at) }).product();
            let term = if k % 2 == 0 { inverse * factors } else { -inverse * factors };
            series = self.binary("add", &mul(&series, &square), &c(term));
        }
        if (2 * first - n) % 2 == 1 {
            series = mul(&series, &x);
        }
        let sin = self.sin_pi(&x);
        let size = self.unary("abs", &x);
        let rest = self.binary("remainder", &size, &c(2.0));
        let cos = self.sin_pi(&self.binary("subtract", &c(0.5), &rest));
        let mut slope = self.binary("divide", &sin, &mul(&c(PI), &x));
        let mut scale = 1.0;
        for order in 1..=n {
            let (wave, sign) = [(&sin, 1.0), (&cos, 1.0), (&sin, -1.0), (&cos, -1.0)][order as usize % 4];
            let wave = mul(wave, &c(sign * scale));
            let before = mul(&slope, &c(f64::from(order)));
            slope = self.binary("divide", &self.binary("subtract", &wave, &before), &x);
            scale *= PI;
        }
        let is_near = self.compare("LT", &size, &c(1.0));
        let found = self.select(&is_near, &series, &slope);
        let finite = self.test("is_finite", &x);
        self.convert(&self.select(&finite, &found, &c(f64::NAN)), a.dtype)
    }

    /// An operation on two operands.
    pub(super) fn apply_binary(&self, op: &SavedOperation, a: &Value, b: &Value) -> Option<Value> {
        let SavedOperation(name, words) = op;
        let float = |at: usize| f64::from_bits(words[at]);
        let c = |value: f64| self.like(a, value);
        let add = |x: &Value, y: &Value| self.binary("add", x, y);
        let sub = |x: &Value, y: &Value| self.binary("subtract", x, y);
        let mul = |x: &Value, y: &Value| self.binary("multiply", x, y);
        let div = |x: &Value, y: &Value| self.binary("divide", x, y);
        let max = |x: &Value, y: &Value| self.binary("maximum", x, y);
        let min = |x: &Value, y: &Value| self.binary("minimum", x, y);
        let un = |name: &str, x: &Value| self.unary(name, x);
        let cmp = |how: &str, x: &Value, y: &Value| self.compare(how, x, y);
        let abs = |x: &Value| un("abs", x);
        let is_int = a.dtype == DType::I64;
        let and = |x: &Value, y: &Value| self.binary("and", x, y);
        let or = |x: &Value, y: &Value| self.binary("or", x, y);
        // A divisor that is not 0, and whether the divisor is 0: then the result is 0.
        let divisor = |y: &Value| {
            let is_zero = cmp("EQ", y, &c(0.0));
            (self.select(&is_zero, &c(1.0), y), is_zero)
        };
        let guarded = |f: &dyn Fn(&Value) -> Value| {
            let (y, is_zero) = divisor(b);
            // (The quotient of the least integer by -1 wraps around.)
            self.select(&is_zero, &c(0.0), &f(&y))
        };
        let wrapped_div = |x: &Value, y: &Value| {
            let is_minus = cmp("EQ", y, &c(-1.0));
            let y = self.select(&is_minus, &c(1.0), y);
            self.select(&is_minus, &un("negate", x), &div(x, &y))
        };
        let wrapped_rem = |x: &Value, y: &Value| {
            let is_minus = cmp("EQ", y, &c(-1.0));
            let y = self.select(&is_minus, &c(1.0), y);
            self.select(&is_minus, &c(0.0), &self.binary("remainder", x, &y))
        };
        // Where a remainder's sign is not the divisor's.
        let is_other = |rest: &Value, y: &Value| {
            let signs = self.compare_any("NE", &cmp("LT", rest, &c(0.0)), &cmp("LT", y, &c(0.0)));
            and(&cmp("NE", rest, &c(0.0)), &signs)
        };
        let unsigned = |name: &str| {
            let (y, is_zero) = divisor(b);
            let quotient = self.binary(name, &self.bits(a, DType::U64), &self.bits(&y, DType::U64));
            self.select(&is_zero, &c(0.0), &self.bits(&quotient, DType::I64))
        };
        let value = match name.as_str() {
            "Lt" => self.compare_any("LT", a, b),
            "Le" => self.compare_any("LE", a, b),
            "Gt" => self.compare_any("GT", a, b),
            "Ge" => self.compare_any("GE", a, b),
            "Eq" => self.compare_any("EQ", a, b),
            "Ne" => self.compare_any("NE", a, b),
            "And" => and(a, b),
            "Or" => or(a, b),
            "Xor" => self.binary("xor", a, b),
            "Add" | "Offset" => add(a, b),
            "Sub" => sub(a, b),
            "Mul" => mul(a, b),
            "Chain" => {
                let zero = or(&cmp("EQ", a, &c(0.0)), &cmp("EQ", b, &c(0.0)));
                self.select(&zero, &c(0.0), &mul(a, b))
            }
            "Div" if is_int => guarded(&|y| wrapped_div(a, y)),
            "Div" => div(a, b),
            "Rem" if is_int => guarded(&|y| wrapped_rem(a, y)),
            "Rem" => self.binary("remainder", a, b),
            "UnsignedDiv" => unsigned("divide"),
            "UnsignedRem" => unsigned("remainder"),
            "Remainder" if is_int => guarded(&|y| {
                let rest = wrapped_rem(a, y);
                self.select(&is_other(&rest, y), &add(&rest, y), &rest)
            }),
            "Remainder" => {
                let rest = self.binary("remainder", a, b);
                self.select(&is_other(&rest, b), &add(&rest, b), &rest)
            }
            "FloorDiv" => guarded(&|y| {
                let (quotient, rest) = (wrapped_div(a, y), wrapped_rem(a, y));
                self.select(&is_other(&rest, y), &sub(&quotient, &c(1.0)), &quotient)
            }),
            "Maximum" => max(a, b),
            "Minimum" => min(a, b),
            "Fmax" => self.select(&or(&self.is_nan(a), &cmp("GT", b, a)), b, a),
            "Fmin" => self.select(&or(&self.is_nan(a), &cmp("LT", b, a)), b, a),
            "Heaviside" => {
                let middle = if is_int { b.clone() } else { self.select(&self.is_nan(a), a, b) };
                let above = self.select(&cmp("GT", a, &c(0.0)), &c(1.0), &middle);
                self.select(&cmp("LT", a, &c(0.0)), &c(0.0), &above)
            }
            "SquaredError" => {
                let difference = sub(a, b);
                mul(&difference, &difference)
            }
            "AbsoluteError" => abs(&sub(a, b)),
            "Powf" => self.binary("power", a, b),
            "Atan2" => self.binary("atan2", a, b),
            "Hypot" => {
                let (x, y) = (abs(a), abs(b));
                let (great, small) = (max(&x, &y), min(&x, &y));
                let is_plain = or(&cmp("EQ", &great, &c(0.0)), &cmp("EQ", &great, &c(f64::INFINITY)));
                let ratio = div(&small, &self.select(&is_plain, &c(1.0), &great));
                let length = mul(&great, &un("sqrt", &add(&c(1.0), &mul(&ratio, &ratio))));
                let infinite = or(&cmp("EQ", &x, &c(f64::INFINITY)), &cmp("EQ", &y, &c(f64::INFINITY)));
                let length = self.select(&cmp("EQ", &great, &c(0.0)), &c(0.0), &length);
                self.select(&infinite, &c(f64::INFINITY), &length)
            }
            "Copysign" => {
                let size = abs(a);
                self.select(&self.sign_bit(b), &un("negate", &size), &size)
            }
            "LogAddExp" => {
                let greatest = max(a, b);
                let small = un("log_plus_one", &un("exponential", &un("negate", &abs(&sub(a, b)))));
                let is_infinite = cmp("EQ", &abs(&greatest), &c(f64::INFINITY));
                self.select(&is_infinite, &greatest, &add(&greatest, &small))
            }
            "Xlogy" => {
                let zero = and(&cmp("EQ", a, &c(0.0)), &un("not", &self.is_nan(b)));
                self.select(&zero, &c(0.0), &mul(a, &un("log", b)))
            }
            "KlDiv" => {
                let zero = and(&cmp("EQ", b, &c(0.0)), &un("not", &self.is_nan(a)));
                self.select(&zero, &c(0.0), &mul(b, &sub(&un("log", b), a)))
            }
            "Bce" => {
                let (first, second) =
                    (max(&un("log", a), &c(-100.0)), max(&un("log_plus_one", &un("negate", a)), &c(-100.0)));
                un("negate", &add(&mul(b, &first), &mul(&sub(&c(1.0), b), &second)))
            }
            "BceWithLogits" => {
                let size = abs(a);
                let share = self.select(&cmp("GT", a, &c(0.0)), &sub(&c(1.0), b), b);
                let line = self.select(&cmp("EQ", &share, &c(0.0)), &c(0.0), &mul(&share, &size));
                add(&un("log_plus_one", &un("exponential", &un("negate", &size))), &line)
            }
            "Huber" => self.huber(&sub(a, b), float(0)),
            "SmoothL1" if float(0) == 0.0 => abs(&sub(a, b)),
            "SmoothL1" => div(&self.huber(&sub(a, b), float(0)), &c(float(0))),
            "Lerp" => match float(0) {
                0.0 => a.clone(),
                1.0 => b.clone(),
                weight if weight < 0.5 => add(a, &mul(&sub(b, a), &c(weight))),
                weight => sub(b, &mul(&sub(b, a), &c(1.0 - weight))),
            },
            _ => return None,
        };
        Some(value)
    }

    fn huber(&self, difference: &Value, delta: f64) -> Value {
        let c = |value: f64| self.like(difference, value);
        let mul = |x: &Value, y: &Value| self.binary("multiply", x, y);
        let size = self.unary("abs", difference);
        let near = mul(&mul(&c(0.5), difference), difference);
        let far = mul(&c(delta), &self.binary("subtract", &size, &mul(&c(0.5), &c(delta))));
        self.select(&self.compare("LE", &size, &c(delta)), &near, &far)
    }

    /// A comparison, also of truth values.
    fn compare_any(&self, how: &str, a: &Value, b: &Value) -> Value {
        match a.dtype {
            DType::Bool => self.compare(how, &self.convert(a, DType::U8), &self.convert(b, DType::U8)),
            _ => self.compare(how, a, b),
        }
    }
}
