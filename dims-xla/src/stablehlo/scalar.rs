//! The scalar operations of recorded programs, written as operations on whole tensors.

#[cfg(test)]
mod tests;

use super::text::{Body, Value};
use std::f64::consts::{LN_2, LN_10, PI, SQRT_2};
use typed_dims_kernels::program::code::DType;
use typed_dims_kernels::trace::saved::SavedOperation;

impl Body {
    /// Elements converted to registers.
    pub(super) fn loaded(&self, a: &Value) -> Value {
        match a.dtype {
            DType::U64 | DType::Usize => self.bits(a, DType::I64),
            dtype => self.convert(a, dtype.in_registers()),
        }
    }

    /// Registers converted to elements of a type.
    pub(super) fn stored(&self, a: &Value, dtype: DType) -> Value {
        match dtype {
            _ if a.dtype == dtype => a.clone(),
            DType::Bool => self.nonzero(a),
            DType::U64 | DType::Usize if a.dtype == DType::I64 => self.bits(a, dtype),
            _ if a.dtype.is_float() && !dtype.is_float() => self.stored(&self.to_integer(a, dtype), dtype),
            _ => self.convert(a, dtype),
        }
    }

    /// A constant with the shape and type of a value.
    pub(super) fn like(&self, a: &Value, value: f64) -> Value {
        let one = match a.dtype.is_float() {
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

    /// Floats converted to integers of a type, in registers: rounded towards 0 and clamped to the
    /// type's bounds. NaN becomes 0.
    fn to_integer(&self, a: &Value, to: DType) -> Value {
        let bits = 8 * to.bytes() as i32;
        let (low, end): (f64, f64) = match to {
            DType::U8 | DType::U16 | DType::U32 => (0.0, 2f64.powi(bits)),
            DType::U64 | DType::Usize => (0.0, 2f64.powi(64)),
            _ => (-2f64.powi(bits - 1), 2f64.powi(bits - 1)),
        };
        let unsigned = matches!(to, DType::U64 | DType::Usize);
        let wide = if unsigned { DType::U64 } else { DType::I64 };
        let inside = self.max(a, &self.like(a, low));
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
            DType::F16 => self.rounded_to_f16(&self.float_of(a, DType::F32, unsigned)),
            DType::Bf16 => self.reduce_precision(&self.float_of(a, DType::F32, unsigned), 8, 7),
            DType::F32 | DType::F64 => self.float_of(a, to, unsigned),
            DType::Bool => self.nonzero(a),
            _ if a.dtype.is_float() => self.to_integer(a, to),
            _ if a.dtype == DType::Bool => self.convert(a, DType::I64),
            DType::I64 | DType::Isize | DType::U64 | DType::Usize => a.clone(),
            _ => self.convert(&self.convert(a, to), DType::I64),
        }
    }

    /// `f32`s rounded to `f16`s, as `f32`s.
    fn rounded_to_f16(&self, a: &Value) -> Value {
        // `reduce_precision` replaces subnormal results by 0. They are multiples of 2^-24.
        let multiple = self.unary("round_nearest_even", &self.mul(a, &self.like(a, 2f64.powi(24))));
        let small = self.mul(&multiple, &self.like(a, 2f64.powi(-24)));
        let is_small = self.compare("LT", &self.abs(a), &self.like(a, 2f64.powi(-14)));
        self.select(&is_small, &small, &self.reduce_precision(a, 5, 10))
    }

    fn float_of(&self, a: &Value, to: DType, unsigned: bool) -> Value {
        match a.dtype {
            DType::I64 if unsigned => self.convert(&self.bits(a, DType::U64), to),
            _ => self.convert(a, to),
        }
    }

    pub(super) fn apply_unary(&self, op: &SavedOperation, a: &Value) -> Option<Value> {
        let SavedOperation(name, words) = op;
        let float = |at: usize| f64::from_bits(words[at]);
        let c = |value: f64| self.like(a, value);
        let is_int = a.dtype == DType::I64;
        let bounded = |x: &Value| self.select(&self.compare("LT", x, &c(-1000.0)), &c(-1000.0), x);
        // `1 / (1 + e^-x)`, computed with an exponential that cannot overflow.
        let sigmoid = |x: &Value| {
            let exp = self.unary("exponential", &self.unary("negate", &self.abs(x)));
            let top = self.select(&self.compare("LT", x, &c(0.0)), &exp, &c(1.0));
            self.div(&top, &self.add(&c(1.0), &exp))
        };
        let softplus = |x: &Value| {
            self.add(
                &self.max(x, &c(0.0)),
                &self.unary("log_plus_one", &self.unary("exponential", &self.unary("negate", &self.abs(x)))),
            )
        };
        let hard_sigmoid =
            |x: &Value| self.div(&self.min(&self.max(&self.add(x, &c(3.0)), &c(0.0)), &c(6.0)), &c(6.0));
        let trunc = |x: &Value| {
            self.select(&self.compare("LT", x, &c(0.0)), &self.unary("ceil", x), &self.unary("floor", x))
        };
        // The cumulative distribution function of the standard normal distribution.
        let below = |x: &Value| self.mul(&c(0.5), &self.chlo("erfc", &[&self.mul(x, &c(-1.0 / SQRT_2))]));
        let value = match name.as_str() {
            "Neg" => self.unary("negate", a),
            "Abs" => self.abs(a),
            "Square" => self.mul(a, a),
            "Powi" => self.powi(a, words[0] as i64),
            "Signum" => self.unary("sign", a),
            "Relu" => self.max(a, &c(0.0)),
            "Relu6" => self.min(&self.max(a, &c(0.0)), &c(6.0)),
            "Not" => self.unary("not", a),
            "FromEnd" => {
                let end = self.add(a, &self.int_like(a, words[0] as i64));
                self.select(&self.compare("LT", a, &c(0.0)), &end, a)
            }
            "Clamp" if is_int => {
                let (low, high) = (float(0) as i64, float(1) as i64);
                self.min(&self.max(a, &self.int_like(a, low)), &self.int_like(a, high))
            }
            "Clamp" => self.min(&self.max(a, &c(float(0))), &c(float(1))),
            "LeakyRelu" if is_int => {
                let below = self.mul(a, &self.int_like(a, float(0) as i64));
                self.select(&self.compare("LT", a, &c(0.0)), &below, a)
            }
            "LeakyRelu" => self.select(&self.compare("LT", a, &c(0.0)), &self.mul(a, &c(float(0))), a),
            "IsNan" => self.is_nan(a),
            "IsFinite" => self.test("is_finite", a),
            "IsInfinite" => self.compare("EQ", &self.abs(a), &c(f64::INFINITY)),
            "Signbit" if is_int => self.compare("LT", a, &c(0.0)),
            "Signbit" => self.sign_bit(a),
            "Exp" => self.unary("exponential", a),
            "ExpM1" => self.unary("exponential_minus_one", a),
            "Ln" => self.unary("log", a),
            "Ln1p" => self.unary("log_plus_one", a),
            "Log2" => self.div(&self.unary("log", a), &c(LN_2)),
            "Log10" => self.div(&self.unary("log", a), &c(LN_10)),
            "Exp2" => self.binary("power", &c(2.0), a),
            "Sqrt" => self.unary("sqrt", a),
            "Cbrt" => self.unary("cbrt", a),
            "Rsqrt" => self.unary("rsqrt", a),
            "Recip" => self.div(&c(1.0), a),
            "Sin" => self.unary("sine", a),
            "Cos" => self.unary("cosine", a),
            "Tan" => self.unary("tan", a),
            "Asin" => self.chlo("asin", &[a]),
            "Acos" => self.chlo("acos", &[a]),
            "Atan" => {
                // With a constant 1, some CPU plugins compute wrong numbers.
                let one = self.barrier(&c(1.0));
                self.binary("atan2", a, &one)
            }
            "Sinh" => self.chlo("sinh", &[a]),
            "Cosh" => self.chlo("cosh", &[a]),
            "Tanh" => self.unary("tanh", a),
            "Asinh" => self.chlo("asinh", &[a]),
            "Acosh" => self.chlo("acosh", &[a]),
            "Atanh" => self.chlo("atanh", &[a]),
            "Erf" => self.chlo("erf", &[a]),
            "Erfc" => self.chlo("erfc", &[a]),
            "LnGamma" => self.chlo("lgamma", &[a]),
            "Floor" => self.unary("floor", a),
            "Ceil" => self.unary("ceil", a),
            "Round" => self.unary("round_nearest_afz", a),
            "RoundTiesEven" => self.unary("round_nearest_even", a),
            "Trunc" => trunc(a),
            "Fract" => self.sub(a, &trunc(a)),
            "Sigmoid" => sigmoid(a),
            "SigmoidSlope" => {
                let exp = self.unary("exponential", &self.unary("negate", &self.abs(a)));
                let sum = self.add(&c(1.0), &exp);
                self.div(&exp, &self.mul(&sum, &sum))
            }
            "Silu" => self.mul(&bounded(a), &sigmoid(a)),
            "Gelu" => self.mul(&bounded(a), &below(a)),
            "NormalBelow" => below(a),
            "Softplus" => softplus(a),
            "LnSigmoid" => self.unary("negate", &softplus(&self.unary("negate", a))),
            "Logit" => {
                let rest = self.sub(&c(1.0), a);
                let near = self.compare("LT", &self.abs(&self.sub(a, &c(0.5))), &c(0.25));
                let odds = self.div(&self.sub(&self.add(a, a), &c(1.0)), &rest);
                self.select(
                    &near,
                    &self.unary("log_plus_one", &odds),
                    &self.unary("log", &self.div(a, &rest)),
                )
            }
            "Selu" => {
                let (scale, alpha) = (1.050_700_987_355_480_5, 1.673_263_242_354_377_2);
                let below = self.mul(&c(scale * alpha), &self.unary("exponential_minus_one", a));
                self.select(&self.compare("GT", a, &c(0.0)), &self.mul(&c(scale), a), &below)
            }
            "Elu" => {
                let below = self.mul(&c(float(0)), &self.unary("exponential_minus_one", a));
                self.select(&self.compare("GT", a, &c(0.0)), a, &below)
            }
            "Celu" => {
                let alpha = float(0);
                let below =
                    self.mul(&c(alpha), &self.unary("exponential_minus_one", &self.div(a, &c(alpha))));
                self.select(&self.compare("GT", a, &c(0.0)), a, &below)
            }
            "Mish" => self.mul(&bounded(a), &self.unary("tanh", &softplus(a))),
            "HardSigmoid" => hard_sigmoid(a),
            "HardSwish" => self.mul(&bounded(a), &hard_sigmoid(a)),
            "HardShrink" => {
                let inside = self.compare("LE", &self.abs(a), &c(float(0)));
                self.select(&inside, &c(0.0), a)
            }
            "SoftShrink" => {
                let by = c(float(0));
                let zero = self.select(&self.is_nan(a), a, &c(0.0));
                let low =
                    self.select(&self.compare("LT", a, &self.unary("negate", &by)), &self.add(a, &by), &zero);
                self.select(&self.compare("GT", a, &by), &self.sub(a, &by), &low)
            }
            "Softsign" => {
                let greatest = if a.dtype == DType::F64 { f64::MAX } else { f64::from(f32::MAX) };
                let x = self.min(&self.max(a, &c(-greatest)), &c(greatest));
                self.div(&x, &self.add(&c(1.0), &self.abs(&x)))
            }
            "TanhShrink" => self.tanh_shrink(a),
            "GeluTanh" => {
                let x = bounded(a);
                let cube = self.mul(&self.mul(&self.mul(&c(0.044_715), &x), &x), &x);
                self.mul(&x, &sigmoid(&self.mul(&c(2.0 * 0.797_884_560_802_865_4), &self.add(&x, &cube))))
            }
            "Sinc" => {
                let wave = self.div(&self.sin_pi(a), &self.mul(a, &c(PI)));
                self.select(&self.compare("EQ", a, &c(0.0)), &c(1.0), &wave)
            }
            "SincSlope" => self.sinc_slope(words[0] as u32, a),
            "ToDegrees" => self.mul(a, &c(180.0 / PI)),
            "ToRadians" => self.mul(a, &c(PI / 180.0)),
            "NanTo" => self.select(&self.is_nan(a), &c(float(0)), a),
            "Polygamma" if words[0] == 1 => self.chlo("digamma", &[a]),
            "Polygamma" => self.polygamma(words[0] as i32 - 1, a),
            "Bell" => {
                let square = self.mul(a, a);
                self.unary("exponential", &self.mul(&c(-float(0)), &square))
            }
            _ => return None,
        };
        Some(value)
    }

    /// A power with an integer exponent, by repeated squaring.
    fn powi(&self, a: &Value, exponent: i64) -> Value {
        let (mut left, mut square, mut power) = (exponent.unsigned_abs(), a.clone(), None);
        while left > 0 {
            if left % 2 == 1 {
                power = Some(power.map_or_else(|| square.clone(), |own| self.mul(&own, &square)));
            }
            left /= 2;
            if left > 0 {
                square = self.mul(&square, &square);
            }
        }
        let one = self.like(a, 1.0);
        let power = power.unwrap_or_else(|| one.clone());
        if exponent < 0 { self.div(&one, &power) } else { power }
    }

    fn sign_bit(&self, a: &Value) -> Value {
        let to = if a.dtype == DType::F64 { DType::I64 } else { DType::I32 };
        let bits = self.bits(a, to);
        self.compare("LT", &bits, &self.zeros(to, &a.shape))
    }

    /// `x - tanh(x)`. Near 0, where `x` and `tanh(x)` are nearly equal, it is computed from the
    /// series of `x cosh(x) - sinh(x)` and `cosh(x)`.
    fn tanh_shrink(&self, a: &Value) -> Value {
        let square = self.mul(a, a);
        let (mut difference, mut cosh) = (self.like(a, 0.0), self.like(a, 0.0));
        for k in (1..10u32).rev() {
            let factorial = |n: u32| (1..=n).map(f64::from).product::<f64>();
            let own = f64::from(2 * k) / factorial(2 * k + 1);
            let step = |sum: &Value, own: f64| self.add(&self.mul(sum, &square), &self.like(a, own));
            (difference, cosh) = (step(&difference, own), step(&cosh, 1.0 / factorial(2 * k)));
        }
        let cosh = self.add(&self.mul(&cosh, &square), &self.like(a, 1.0));
        let ratio = self.div(&self.mul(&square, &difference), &cosh);
        let near = self.mul(a, &ratio);
        let far = self.sub(a, &self.unary("tanh", a));
        let is_near = self.compare("LT", &self.abs(a), &self.like(a, 1.25));
        self.select(&is_near, &near, &far)
    }

    /// The derivative of order `n` of the digamma function. `n` is at least 1.
    fn polygamma(&self, n: i32, a: &Value) -> Value {
        let c = |value: f64| self.like(a, value);
        // XLA's function is wrong for some negative numbers. So for negative numbers, the result is
        // (-1)^n polygamma(n, 1 - x) - pi^(n + 1) p(cot(pi x)), where p(cot) is the derivative of
        // order n of cot. At the poles, XLA's function is right, and is used.
        let is_pole = self.compare("EQ", a, &self.unary("floor", a));
        let is_negative = self.compare("LT", a, &c(0.0));
        let is_reflected = self.binary("and", &is_negative, &self.unary("not", &is_pole));
        let x = self.select(&is_reflected, &self.sub(&c(1.0), a), a);
        let right = self.chlo("polygamma", &[&c(f64::from(n)), &x]);
        // The coefficients of p. The derivative of cot is -(1 + cot^2).
        let mut coefficients = vec![0.0_f64, 1.0];
        for _ in 0..n {
            let mut next = vec![0.0; coefficients.len() + 1];
            for (power, coefficient) in coefficients.iter().enumerate().skip(1) {
                next[power - 1] -= power as f64 * coefficient;
                next[power + 1] -= power as f64 * coefficient;
            }
            coefficients = next;
        }
        let rest = self.sub(a, &self.unary("round_nearest_even", a));
        let cot = self.div(&c(1.0), &self.unary("tan", &self.mul(&rest, &c(PI))));
        let step = |sum: Value, &coefficient: &f64| self.add(&self.mul(&sum, &cot), &c(coefficient));
        let sum = coefficients.iter().rev().fold(c(0.0), step);
        let sign = if n % 2 == 0 { 1.0 } else { -1.0 };
        let reflected = self.sub(&self.mul(&c(sign), &right), &self.mul(&c(PI.powi(n + 1)), &sum));
        self.select(&is_reflected, &reflected, &right)
    }

    /// `sin(pi x)`, from the distance to the nearest integer.
    fn sin_pi(&self, a: &Value) -> Value {
        let half = self.mul(a, &self.like(a, 0.5));
        let whole = self.unary("round_nearest_afz", &half);
        let rest = self.sub(a, &self.mul(&whole, &self.like(a, 2.0)));
        let sign = self.unary("sign", &rest);
        let is_far = self.compare("GT", &self.abs(&rest), &self.like(a, 0.5));
        let near = self.select(&is_far, &self.sub(&sign, &rest), &rest);
        self.unary("sine", &self.mul(&near, &self.like(a, PI)))
    }

    /// The derivative of order `n` of `sin(pi x) / (pi x)`.
    fn sinc_slope(&self, n: u32, a: &Value) -> Value {
        let x = self.convert(a, DType::F64);
        let c = |value: f64| self.like(&x, value);
        // Near 0, the sum over k of (-1)^k pi^(2k) x^(2k - n) (2k)! / (2k - n)! / (2k + 1)!
        let first = n.div_ceil(2);
        let square = self.mul(&x, &x);
        let mut series = c(0.0);
        for k in (first..first + 20).rev() {
            let factors: f64 = (2 * k - n + 1..=2 * k).map(f64::from).product();
            let inverse: f64 =
                (1..=2 * k + 1).map(|at| if at == 1 { 1.0 } else { PI / f64::from(at) }).product();
            let term = if k % 2 == 0 { inverse * factors } else { -inverse * factors };
            series = self.add(&self.mul(&series, &square), &c(term));
        }
        if (2 * first - n) % 2 == 1 {
            series = self.mul(&series, &x);
        }
        let sin = self.sin_pi(&x);
        let size = self.abs(&x);
        let rest = self.binary("remainder", &size, &c(2.0));
        let cos = self.sin_pi(&self.sub(&c(0.5), &rest));
        let mut slope = self.div(&sin, &self.mul(&c(PI), &x));
        let mut scale = 1.0;
        for order in 1..=n {
            let (wave, sign) = [(&sin, 1.0), (&cos, 1.0), (&sin, -1.0), (&cos, -1.0)][order as usize % 4];
            let wave = self.mul(wave, &c(sign * scale));
            let before = self.mul(&slope, &c(f64::from(order)));
            slope = self.div(&self.sub(&wave, &before), &x);
            scale *= PI;
        }
        let is_near = self.compare("LT", &size, &c(1.0));
        let found = self.select(&is_near, &series, &slope);
        let finite = self.test("is_finite", &x);
        self.convert(&self.select(&finite, &found, &c(f64::NAN)), a.dtype)
    }

    pub(super) fn apply_binary(&self, op: &SavedOperation, a: &Value, b: &Value) -> Option<Value> {
        let SavedOperation(name, words) = op;
        let float = |at: usize| f64::from_bits(words[at]);
        let c = |value: f64| self.like(a, value);
        let is_int = a.dtype == DType::I64;
        let and = |x: &Value, y: &Value| self.binary("and", x, y);
        let or = |x: &Value, y: &Value| self.binary("or", x, y);
        // The divisor with 1 in place of 0, and whether it was 0, which makes the result 0.
        let divisor = |y: &Value| {
            let is_zero = self.compare("EQ", y, &c(0.0));
            (self.select(&is_zero, &c(1.0), y), is_zero)
        };
        let guarded = |f: &dyn Fn(&Value) -> Value| {
            let (y, is_zero) = divisor(b);
            self.select(&is_zero, &c(0.0), &f(&y))
        };
        // The quotient of the least integer and -1 wraps around.
        let wrapped_div = |x: &Value, y: &Value| {
            let is_minus = self.compare("EQ", y, &c(-1.0));
            let y = self.select(&is_minus, &c(1.0), y);
            self.select(&is_minus, &self.unary("negate", x), &self.div(x, &y))
        };
        let wrapped_rem = |x: &Value, y: &Value| {
            let is_minus = self.compare("EQ", y, &c(-1.0));
            let y = self.select(&is_minus, &c(1.0), y);
            self.select(&is_minus, &c(0.0), &self.binary("remainder", x, &y))
        };
        // Whether the remainder is not 0 and its sign differs from the divisor's.
        let is_other = |rest: &Value, y: &Value| {
            let signs =
                self.compare_any("NE", &self.compare("LT", rest, &c(0.0)), &self.compare("LT", y, &c(0.0)));
            and(&self.compare("NE", rest, &c(0.0)), &signs)
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
            "Add" | "Offset" => self.add(a, b),
            "Sub" => self.sub(a, b),
            "Mul" => self.mul(a, b),
            "Chain" => {
                let zero = or(&self.compare("EQ", a, &c(0.0)), &self.compare("EQ", b, &c(0.0)));
                self.select(&zero, &c(0.0), &self.mul(a, b))
            }
            "Div" if is_int => guarded(&|y| wrapped_div(a, y)),
            "Div" => self.div(a, b),
            "Rem" if is_int => guarded(&|y| wrapped_rem(a, y)),
            "Rem" => self.binary("remainder", a, b),
            "UnsignedDiv" => unsigned("divide"),
            "UnsignedRem" => unsigned("remainder"),
            "Remainder" if is_int => guarded(&|y| {
                let rest = wrapped_rem(a, y);
                self.select(&is_other(&rest, y), &self.add(&rest, y), &rest)
            }),
            "Remainder" => {
                let rest = self.binary("remainder", a, b);
                self.select(&is_other(&rest, b), &self.add(&rest, b), &rest)
            }
            "FloorDiv" => guarded(&|y| {
                let (quotient, rest) = (wrapped_div(a, y), wrapped_rem(a, y));
                self.select(&is_other(&rest, y), &self.sub(&quotient, &c(1.0)), &quotient)
            }),
            "Maximum" => self.max(a, b),
            "Minimum" => self.min(a, b),
            "Fmax" => self.select(&or(&self.is_nan(a), &self.compare("GT", b, a)), b, a),
            "Fmin" => self.select(&or(&self.is_nan(a), &self.compare("LT", b, a)), b, a),
            "Heaviside" => {
                let middle = if is_int { b.clone() } else { self.select(&self.is_nan(a), a, b) };
                let above = self.select(&self.compare("GT", a, &c(0.0)), &c(1.0), &middle);
                self.select(&self.compare("LT", a, &c(0.0)), &c(0.0), &above)
            }
            "SquaredError" => {
                let difference = self.sub(a, b);
                self.mul(&difference, &difference)
            }
            "AbsoluteError" => self.abs(&self.sub(a, b)),
            "Powf" => self.binary("power", a, b),
            "Atan2" => self.binary("atan2", a, b),
            "Hypot" => {
                let (x, y) = (self.abs(a), self.abs(b));
                let (great, small) = (self.max(&x, &y), self.min(&x, &y));
                let is_plain =
                    or(&self.compare("EQ", &great, &c(0.0)), &self.compare("EQ", &great, &c(f64::INFINITY)));
                let ratio = self.div(&small, &self.select(&is_plain, &c(1.0), &great));
                let length =
                    self.mul(&great, &self.unary("sqrt", &self.add(&c(1.0), &self.mul(&ratio, &ratio))));
                let infinite = or(
                    &self.compare("EQ", &x, &c(f64::INFINITY)),
                    &self.compare("EQ", &y, &c(f64::INFINITY)),
                );
                let length = self.select(&self.compare("EQ", &great, &c(0.0)), &c(0.0), &length);
                self.select(&infinite, &c(f64::INFINITY), &length)
            }
            "Copysign" => {
                let size = self.abs(a);
                self.select(&self.sign_bit(b), &self.unary("negate", &size), &size)
            }
            "LogAddExp" => {
                let greatest = self.max(a, b);
                let small = self.unary(
                    "log_plus_one",
                    &self.unary("exponential", &self.unary("negate", &self.abs(&self.sub(a, b)))),
                );
                let is_infinite = self.compare("EQ", &self.abs(&greatest), &c(f64::INFINITY));
                self.select(&is_infinite, &greatest, &self.add(&greatest, &small))
            }
            "Xlogy" => {
                let zero = and(&self.compare("EQ", a, &c(0.0)), &self.unary("not", &self.is_nan(b)));
                self.select(&zero, &c(0.0), &self.mul(a, &self.unary("log", b)))
            }
            "KlDiv" => {
                let zero = and(&self.compare("EQ", b, &c(0.0)), &self.unary("not", &self.is_nan(a)));
                self.select(&zero, &c(0.0), &self.mul(b, &self.sub(&self.unary("log", b), a)))
            }
            "Bce" => {
                let (first, second) = (
                    self.max(&self.unary("log", a), &c(-100.0)),
                    self.max(&self.unary("log_plus_one", &self.unary("negate", a)), &c(-100.0)),
                );
                self.unary(
                    "negate",
                    &self.add(&self.mul(b, &first), &self.mul(&self.sub(&c(1.0), b), &second)),
                )
            }
            "BceWithLogits" => {
                let size = self.abs(a);
                let share = self.select(&self.compare("GT", a, &c(0.0)), &self.sub(&c(1.0), b), b);
                let line =
                    self.select(&self.compare("EQ", &share, &c(0.0)), &c(0.0), &self.mul(&share, &size));
                self.add(
                    &self.unary("log_plus_one", &self.unary("exponential", &self.unary("negate", &size))),
                    &line,
                )
            }
            "Huber" => self.huber(&self.sub(a, b), float(0)),
            "SmoothL1" if float(0) == 0.0 => self.abs(&self.sub(a, b)),
            "SmoothL1" => self.div(&self.huber(&self.sub(a, b), float(0)), &c(float(0))),
            "Lerp" => match float(0) {
                0.0 => a.clone(),
                1.0 => b.clone(),
                weight if weight < 0.5 => self.add(a, &self.mul(&self.sub(b, a), &c(weight))),
                weight => self.sub(b, &self.mul(&self.sub(b, a), &c(1.0 - weight))),
            },
            _ => return None,
        };
        Some(value)
    }

    fn huber(&self, difference: &Value, delta: f64) -> Value {
        let c = |value: f64| self.like(difference, value);
        let size = self.abs(difference);
        let near = self.mul(&self.mul(&c(0.5), difference), difference);
        let far = self.mul(&c(delta), &self.sub(&size, &self.mul(&c(0.5), &c(delta))));
        self.select(&self.compare("LE", &size, &c(delta)), &near, &far)
    }

    /// A comparison, also for `bool`s.
    fn compare_any(&self, how: &str, a: &Value, b: &Value) -> Value {
        match a.dtype {
            DType::Bool => self.compare(how, &self.convert(a, DType::U8), &self.convert(b, DType::U8)),
            _ => self.compare(how, a, b),
        }
    }
}
