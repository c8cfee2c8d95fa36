//! The table of scalar operations. Each operation has a line, which may be wrapped:
//!
//! ```text
//! /// `x * tanh(softplus(x))`
//! Mish mish(x: Real) -> T, long {
//!     value: special::mish::<I, T>(x), slope(_): mish_slope(x), on: -4.0..4.0
//! }
//! ```
//!
//! A line contains
//!
//! * the documentation;
//! * the type of the operation, and its method, whose name is also the name in plans;
//! * the trait of the elements, and the type of the result, where `T` is the element type;
//! * properties: see below;
//! * the value, where `I` is the instruction set. Operations on floats (`Real`) whose result is a
//!   float are computed in `T::Wide`, which is `f32` for the half precisions, and rounded once;
//! * the derivative, where `slope(y)` names the result. The derivative is an expression of
//!   [`Symbol`](crate::program::symbol::Symbol)s; long ones are functions in
//!   [`derivative`](crate::program::derivative). `zero()` is 0 everywhere. Operations whose results
//!   or operands are never floats have no derivative;
//! * the operands for which tests compare the derivative with difference quotients.
//!
//! The properties of operations on one element are
//!
//! * `elsewhere`: the method is not generated from the line. This property comes first;
//! * `long`: the operation takes many instructions, which the compiler vectorizes;
//! * `wraps`: the result for integers of a type may be out of range for the type.
//!
//! The macros pass all lines to another macro. [`ops`](crate::ops) generates types from them,
//! [`opcode`](super::opcode) the opcodes of programs, [`derivative`](crate::program::derivative)
//! the derivatives, [`symbol`](crate::program::symbol) the methods of symbols, and
//! `typed-dims-core` the methods of tensors for operations on one element.

/// Calls a macro with the operations on one element, without and with a constant. In
/// `elu(x: Real, alpha = 0.5)`, 0.5 is the constant in tests.
#[doc(hidden)]
#[macro_export]
macro_rules! unary_operations {
    ($then:ident $($context:tt)*) => { $then! { $($context)*
        operations {
            /// `-x`
            Neg neg(x: Signed) -> T, elsewhere, wraps {
                value: x.neg(), slope(_): x.constant(-1.0), on: -3.0..3.0
            }
            /// `!x`
            Not not(x: Logic) -> T, elsewhere, wraps { value: x.not() }
            /// `|x|`, for complex numbers the magnitude as a real number. The least value of a
            /// signed integer type wraps around to itself.
            Abs abs(x: Magnitude) -> (T::Abs), wraps {
                value: x.magnitude(), slope(_): x.signum(), on: -3.0..3.0
            }
            /// `e^x`
            Exp exp(x: Analytic) -> T, long { value: Analytic::exp::<I>(x), slope(y): y, on: -2.0..2.0 }
            /// `e^x - 1`, precise near 0.
            ExpM1 exp_m1(x: Real) -> T { value: x.exp_m1(), slope(_): x.exp(), on: -2.0..2.0 }
            /// `2^x`
            Exp2 exp2(x: Real) -> T { value: x.exp2(), slope(y): y * LN_2, on: -2.0..2.0 }
            /// The natural logarithm.
            Ln ln(x: Analytic) -> T, long { value: Analytic::ln::<I>(x), slope(_): x.recip(), on: 0.3..4.0 }
            /// `ln(1 + x)`, precise near 0.
            Ln1p ln_1p(x: Real) -> T { value: x.ln_1p(), slope(_): (x + 1.0).recip(), on: -0.7..2.0 }
            /// The logarithm to base 2.
            Log2 log2(x: Real) -> T { value: x.log2(), slope(_): (1.0 / LN_2) / x, on: 0.3..4.0 }
            /// The logarithm to base 10.
            Log10 log10(x: Real) -> T { value: x.log10(), slope(_): (1.0 / LN_10) / x, on: 0.3..4.0 }
            /// The square root.
            Sqrt sqrt(x: Analytic) -> T { value: x.sqrt(), slope(y): 0.5 / y, on: 0.3..4.0 }
            /// The cube root.
            Cbrt cbrt(x: Real) -> T { value: x.cbrt(), slope(y): (1.0 / 3.0) / y.square(), on: 0.3..4.0 }
            /// `1 / sqrt(x)`
            Rsqrt rsqrt(x: Analytic) -> T { value: x.rsqrt(), slope(y): y / x * -0.5, on: 0.4..4.0 }
            /// `1 / x`
            Recip recip(x: Analytic) -> T { value: T::ONE.div(x), slope(y): -y.square(), on: 0.4..4.0 }
            /// `x * x`
            Square square(x: Num) -> T, wraps { value: x.mul(x), slope(_): x * 2.0, on: -3.0..3.0 }
            /// The sine of an angle in radians.
            Sin sin(x: Analytic) -> T { value: x.sin(), slope(_): x.cos(), on: -4.0..4.0 }
            /// The cosine of an angle in radians.
            Cos cos(x: Analytic) -> T { value: x.cos(), slope(_): -x.sin(), on: -4.0..4.0 }
            /// The tangent of an angle in radians.
            Tan tan(x: Analytic) -> T { value: x.tan(), slope(y): y.square() + 1.0, on: -1.0..1.0 }
            /// The inverse sine, in radians.
            Asin asin(x: Real) -> T { value: x.asin(), slope(_): rest_of_square(x).rsqrt(), on: -0.8..0.8 }
            /// The inverse cosine, in radians.
            Acos acos(x: Real) -> T { value: x.acos(), slope(_): -rest_of_square(x).rsqrt(), on: -0.8..0.8 }
            /// The inverse tangent, in radians.
            Atan atan(x: Real) -> T { value: x.atan(), slope(_): (x.square() + 1.0).recip(), on: -3.0..3.0 }
            /// The hyperbolic sine.
            Sinh sinh(x: Analytic) -> T { value: x.sinh(), slope(_): x.cosh(), on: -2.0..2.0 }
            /// The hyperbolic cosine.
            Cosh cosh(x: Analytic) -> T { value: x.cosh(), slope(_): x.sinh(), on: -2.0..2.0 }
            /// The hyperbolic tangent.
            Tanh tanh(x: Analytic) -> T, long {
                value: Analytic::tanh::<I>(x), slope(_): tanh_slope(x), on: -3.0..3.0
            }
            /// The inverse hyperbolic sine.
            Asinh asinh(x: Real) -> T {
                value: special::asinh(x), slope(_): x.hypot(1.0).recip(), on: -3.0..3.0
            }
            /// The inverse hyperbolic cosine.
            Acosh acosh(x: Real) -> T { value: special::acosh(x), slope(_): acosh_slope(x), on: 1.3..4.0 }
            /// The inverse hyperbolic tangent.
            Atanh atanh(x: Real) -> T {
                value: special::atanh(x), slope(_): rest_of_square(x).recip(), on: -0.7..0.7
            }
            /// The error function.
            Erf erf(x: Real) -> T, long {
                value: Real::erf::<I>(x), slope(_): x.bell(1.0) * FRAC_2_SQRT_PI, on: -3.0..3.0
            }
            /// `1 / (1 + e^-x)`
            Sigmoid sigmoid(x: Real) -> T, long {
                value: special::sigmoid::<I, T>(x), slope(_): x.sigmoid_slope(), on: -4.0..4.0
            }
            /// `max(x, 0)`
            Relu relu(x: Ordered) -> T {
                value: if x < T::ZERO { T::ZERO } else { x },
                // (Where `x` is not positive, `y` is 0, or NaN for NaN.)
                slope(y): where_positive(x, 1.0, y), on: -3.0..3.0
            }
            /// `x / 2 * (1 + erf(x / sqrt 2))`, the exact form.
            Gelu gelu(x: Real) -> T, long {
                value: Real::gelu::<I>(x),
                slope(_): x.normal_below() + normal_density(x).chain(x), on: -4.0..4.0
            }
            /// `x * sigmoid(x)`
            Silu silu(x: Real) -> T, long {
                value: special::silu::<I, T>(x),
                slope(_): x.sigmoid() + x.sigmoid_slope().chain(x), on: -4.0..4.0
            }
            /// `ln(1 + e^x)`
            Softplus softplus(x: Real) -> T, long {
                value: special::softplus::<I, T>(x), slope(_): x.sigmoid(), on: -4.0..4.0
            }
            /// `1 - erf(x)`, precise where the result is small.
            Erfc erfc(x: Real) -> T {
                value: special::erfc(x), slope(_): x.bell(1.0) * -FRAC_2_SQRT_PI, on: -3.0..3.0
            }
            /// The logarithm of the absolute value of the gamma function.
            LnGamma ln_gamma(x: Real) -> T {
                value: special::ln_gamma(x), slope(_): x.polygamma(1), on: 0.5..5.0
            }
            /// `ln(x / (1 - x))`, the inverse of `sigmoid`.
            Logit logit(x: Real) -> T, long {
                value: special::logit::<I, T>(x), slope(_): (x * (1.0 - x)).recip(), on: 0.2..0.8
            }
            /// `ln(sigmoid(x))`, precise where the sigmoid is near 0 or 1.
            LnSigmoid ln_sigmoid(x: Real) -> T, long {
                value: -special::softplus::<I, T>(-x), slope(_): (-x).sigmoid(), on: -4.0..4.0
            }
            /// `min(max(x, 0), 6)`
            Relu6 relu6(x: Ordered) -> T {
                value: x.maximum(T::ZERO).minimum(special::small(6)),
                slope(_): inside(x, 0.0, 6.0), on: -3.0..8.0
            }
            /// The scaled exponential linear unit: `1.0507 * x`, or `1.7581 * (e^x - 1)` where `x`
            /// is negative.
            Selu selu(x: Real) -> T { value: special::selu(x), slope(_): selu_slope(x), on: -3.0..3.0 }
            /// `x * tanh(softplus(x))`
            Mish mish(x: Real) -> T, long {
                value: special::mish::<I, T>(x), slope(_): mish_slope(x), on: -4.0..4.0
            }
            /// `min(max(x + 3, 0), 6) / 6`
            HardSigmoid hard_sigmoid(x: Real) -> T {
                value: special::hard_sigmoid(x), slope(_): inside(x, -3.0, 3.0) * (1.0 / 6.0), on: -5.0..5.0
            }
            /// `x * hard_sigmoid(x)`
            HardSwish hard_swish(x: Real) -> T {
                value: special::hard_swish(x), slope(_): hard_swish_slope(x), on: -5.0..5.0
            }
            /// `x / (1 + |x|)`
            Softsign softsign(x: Real) -> T { value: special::softsign(x), slope(_): (x.abs() + 1.0).recip().square(), on: -3.0..3.0 }
            /// `x - tanh(x)`
            TanhShrink tanh_shrink(x: Real) -> T, long {
                value: special::tanh_shrink::<I, T>(x), slope(_): x.tanh().square(), on: -3.0..3.0
            }
            /// The approximation of [`gelu`](Elementwise::gelu) by a hyperbolic tangent.
            GeluTanh gelu_tanh(x: Real) -> T, long {
                value: special::gelu_tanh::<I, T>(x), slope(_): gelu_tanh_slope(x), on: -4.0..4.0
            }
            /// `sin(pi x) / (pi x)`, 1 at 0.
            Sinc sinc(x: Real) -> T { value: special::sinc(x), slope(_): x.sinc_slope(1), on: -2.0..2.0 }
            /// Converts radians to degrees.
            ToDegrees to_degrees(x: Real) -> T {
                value: num_traits::Float::to_degrees(x), slope(_): x.constant(180.0 / PI), on: -3.0..3.0
            }
            /// Converts degrees to radians.
            ToRadians to_radians(x: Real) -> T {
                value: num_traits::Float::to_radians(x), slope(_): x.constant(PI / 180.0), on: -3.0..3.0
            }
            /// The greatest integer that is not greater than `x`.
            Floor floor(x: Real) -> T { value: x.floor(), slope(_): zero(), on: -3.0..3.0 }
            /// The least integer that is not less than `x`.
            Ceil ceil(x: Real) -> T { value: x.ceil(), slope(_): zero(), on: -3.0..3.0 }
            /// The nearest integer; halves are rounded away from 0.
            Round round(x: Real) -> T { value: x.round(), slope(_): zero(), on: -3.0..3.0 }
            /// The nearest integer; halves are rounded to even.
            RoundTiesEven round_ties_even(x: Real) -> T {
                value: special::round_ties_even(x), slope(_): zero(), on: -3.0..3.0
            }
            /// The integer part.
            Trunc trunc(x: Real) -> T { value: x.trunc(), slope(_): zero(), on: -3.0..3.0 }
            /// The fractional part.
            Fract fract(x: Real) -> T { value: x.fract(), slope(_): x.constant(1.0), on: -3.0..3.0 }
            /// -1, 0 or 1; NaN for NaN.
            Signum signum(x: Ordered) -> T { value: special::signum(x), slope(_): zero(), on: -3.0..3.0 }
            /// Whether the element is NaN.
            IsNan is_nan(x: Ordered) -> bool { value: x.is_nan_value() }
            /// Whether the element is neither infinite nor NaN.
            IsFinite is_finite(x: Real) -> bool { value: x.is_finite() }
            /// Whether the element is infinite.
            IsInfinite is_infinite(x: Real) -> bool { value: x.is_infinite() }
            /// Whether the sign is negative, also for -0.
            Signbit signbit(x: Real) -> bool { value: x.is_sign_negative() }
        }
        constants {
            /// `x`, or `slope * x` where `x` is negative.
            LeakyRelu leaky_relu(x: Ordered, slope = 0.25) -> T, wraps {
                value: if x < T::ZERO { slope.mul(x) } else { x },
                slope(_): unless_nan(x, x.choose(x.gt(0.0), 1.0, slope)), on: -3.0..3.0
            }
            /// `x`, or `alpha * (e^x - 1)` where `x` is negative.
            Elu elu(x: Real, alpha = 0.5) -> T {
                value: if x < T::zero() { alpha * x.exp_m1() } else { x },
                slope(_): where_positive(x, 1.0, x.exp() * alpha), on: -3.0..3.0
            }
            /// `x`, or `alpha * (e^(x / alpha) - 1)` where `x` is negative.
            Celu celu(x: Real, alpha = 0.5) -> T {
                value: if x < T::zero() { alpha * (x / alpha).exp_m1() } else { x },
                slope(_): where_positive(x, 1.0, (x * (1.0 / alpha)).exp()), on: -2.0..2.0
            }
            /// `x`, or 0 where `|x| <= lambda`.
            HardShrink hard_shrink(x: Real, lambda = 1.0) -> T {
                value: if num_traits::Float::abs(x) <= lambda { T::zero() } else { x },
                slope(_): outside(x, lambda), on: -3.0..3.0
            }
            /// `x` moved towards 0 by `lambda`, or 0 if `|x| <= lambda`. `lambda` must be 0 or
            /// more, which is not checked.
            SoftShrink soft_shrink(x: Real, lambda = 1.0) -> T {
                value: special::soft_shrink(x, lambda), slope(_): outside(x, lambda), on: -3.0..3.0
            }
            /// `x`, or `value` if `x` is NaN.
            NanTo nan_to(x: Real, value = 7.0) -> T {
                value: if x.is_nan() { value } else { x },
                slope(_): x.choose(x.is_nan(), 0.0, 1.0), on: -3.0..3.0
            }
        }
    } };
}

/// Calls a macro with the operations on two elements, without and with a constant.
///
/// `slopes(z)` names the result, and is followed by the derivatives with respect to both operands.
/// Further properties are
///
/// * `monotone`, `steady`: see [`BinaryOp`](crate::ops::BinaryOp);
/// * `product`: the multiplication that contractions use;
/// * `sum`, `difference`: the sum and the difference of index expressions;
/// * `symmetric`: programs may exchange the operands;
/// * `divides`: for integers, there is no value if the second operand is 0.
#[doc(hidden)]
#[macro_export]
macro_rules! binary_operations {
    ($then:ident $($context:tt)*) => { $then! { $($context)*
        operations {
            /// `x + y`
            Add add(x, y: Num) -> T, elsewhere, wraps, symmetric, sum {
                value: x.add(y), slopes(_): [x.constant(1.0), x.constant(1.0)], on: [-3.0..3.0, -2.0..2.0]
            }
            /// `x + y` of a position and a number, both far from the limits of the type.
            Offset add(x, y: Num) -> T, elsewhere, steady {
                value: x.add(y), slopes(_): [x.constant(1.0), x.constant(1.0)], on: [-3.0..3.0, -2.0..2.0]
            }
            /// `x - y`
            Sub sub(x, y: Num) -> T, elsewhere, wraps, difference {
                value: x.sub(y), slopes(_): [x.constant(1.0), x.constant(-1.0)], on: [-3.0..3.0, -2.0..2.0]
            }
            /// `x * y`
            Mul mul(x, y: Num) -> T, elsewhere, wraps, symmetric, product {
                value: x.mul(y), slopes(_): [y, x], on: [-3.0..3.0, -2.0..2.0]
            }
            /// `x / y`
            Div div(x, y: Num) -> T, elsewhere, wraps, divides {
                value: x.div(special::divisor("/", y)),
                slopes(z): [y.recip(), -(z / y)], on: [-3.0..3.0, 0.5..3.0]
            }
            /// `x % y`, with the sign of `x`.
            Rem rem(x, y: Ordered) -> T, elsewhere, divides {
                value: x.rem(special::divisor("%", y)),
                slopes(z): [x.constant(1.0), times_taken_off(x, y, z)], on: [-3.0..3.0, 0.8..2.0]
            }
            /// `x & y`
            And and(x, y: Logic) -> T, elsewhere { value: x.and(y) }
            /// `x | y`
            Or or(x, y: Logic) -> T, elsewhere { value: x.or(y) }
            /// `x ^ y`
            Xor xor(x, y: Logic) -> T, elsewhere { value: x.xor(y) }
            /// The greater element; NaN if either is NaN.
            Maximum maximum(x, y: Ordered) -> T {
                value: x.maximum(y),
                slopes(z): [unless_nan(z, share(x.gt(y), x, y)), unless_nan(z, share(y.gt(x), y, x))],
                on: [-3.0..3.0, -2.0..2.0]
            }
            /// The lesser element; NaN if either is NaN.
            Minimum minimum(x, y: Ordered) -> T {
                value: x.minimum(y),
                slopes(z): [unless_nan(z, share(x.lt(y), x, y)), unless_nan(z, share(y.lt(x), y, x))],
                on: [-3.0..3.0, -2.0..2.0]
            }
            /// `x^y`
            Powf powf(x, y: Real) -> T {
                value: x.powf(y),
                slopes(z): [powf_by_base(x, y), powf_by_exponent(x, y, z)], on: [0.4..3.0, -2.0..2.0]
            }
            /// `atan(x / y)` in radians, in the quadrant of the point `(y, x)`, like `f64::atan2`.
            Atan2 atan2(x, y: Real) -> T {
                value: x.atan2(y),
                slopes(_): [slope_of_angle(x, y, y), -slope_of_angle(x, y, x)], on: [-3.0..3.0, 0.5..3.0]
            }
            /// `sqrt(x * x + y * y)`, without overflow in between.
            Hypot hypot(x, y: Real) -> T {
                value: x.hypot(y),
                slopes(z): [share_of_length(x, z), share_of_length(y, z)], on: [-3.0..3.0, 0.5..3.0]
            }
            /// The remainder with the sign of `y`, `x - y * floor(x / y)`; the result of `%` has
            /// the sign of `x`.
            Remainder remainder(x, y: Ordered) -> T, divides {
                value: special::remainder(x, special::divisor("remainder", y)),
                slopes(z): [x.constant(1.0), times_taken_off(x, y, z)], on: [-3.0..3.0, 0.8..2.0]
            }
            /// `x / y` of integers, rounded down; `/` rounds towards 0.
            FloorDiv floor_div(x, y: Integer) -> T, wraps, divides {
                value: special::floor_div(x, special::divisor("floor_div", y))
            }
            /// `x` with the sign of `y`.
            Copysign copysign(x, y: Real) -> T {
                value: num_traits::Float::copysign(x, y),
                slopes(z): [x.signum() * z.signum(), zero()], on: [-3.0..3.0, -3.0..3.0]
            }
            /// The greater element; if one operand is NaN, the other operand.
            Fmax fmax(x, y: Ordered) -> T {
                value: if x.is_nan_value() || y > x { y } else { x },
                slopes(_): [share_of_numbers(x.gt(y), x, y), share_of_numbers(y.gt(x), y, x)],
                on: [-3.0..3.0, -2.0..2.0]
            }
            /// The lesser element; if one operand is NaN, the other operand.
            Fmin fmin(x, y: Ordered) -> T {
                value: if x.is_nan_value() || y < x { y } else { x },
                slopes(_): [share_of_numbers(x.lt(y), x, y), share_of_numbers(y.lt(x), y, x)],
                on: [-3.0..3.0, -2.0..2.0]
            }
            /// `ln(e^x + e^y)`, without overflow.
            LogAddExp logaddexp(x, y: Real) -> T, long {
                value: special::logaddexp::<I, T>(x, y),
                slopes(_): [share_of_exp(x, y), share_of_exp(y, x)], on: [-3.0..3.0, -2.0..2.0]
            }
            /// `x * ln(y)`, and 0 where `x` is 0 and `y` is not NaN.
            Xlogy xlogy(x, y: Real) -> T, long {
                value: special::xlogy::<I, T>(x, y),
                slopes(_): [xlogy_by_factor(x, y), xlogy_by_argument(x, y)], on: [-3.0..3.0, 0.4..3.0]
            }
            /// 0 where `x` is negative, `y` where `x` is 0, 1 where `x` is positive, and NaN where
            /// `x` is NaN.
            Heaviside heaviside(x, y: Ordered) -> T {
                value: special::heaviside(x, y),
                slopes(_): [zero(), x.choose(x.eq(0.0), 1.0, 0.0)], on: [-3.0..3.0, -2.0..2.0]
            }
            /// `(x - y)^2`
            SquaredError mse_loss(x, y: Num) -> T, elsewhere, wraps {
                value: special::squared_error(x, y),
                slopes(_): [(x - y) * 2.0, (y - x) * 2.0], on: [-3.0..3.0, -2.0..2.0]
            }
            /// `|x - y|`
            AbsoluteError l1_loss(x, y: Real) -> T, elsewhere {
                value: num_traits::Float::abs(x - y),
                slopes(_): [(x - y).signum(), (y - x).signum()], on: [-3.0..3.0, -2.0..2.0]
            }
            /// `-(y * ln(x) + (1 - y) * ln(1 - x))`, each logarithm clamped to at least -100.
            Bce bce_loss(x, y: Real) -> T, elsewhere, long {
                value: special::bce::<I, T>(x, y),
                // As in PyTorch, the product is at least 1e-12. Where one logarithm is clamped to
                // -100, the other is about 0, so their difference is clamped to -100 or 100.
                slopes(_): [(x - y) / (x * (1.0 - x)).maximum(1e-12), -x.logit().clamp(-100.0, 100.0)],
                on: [0.2..0.8, 0.1..0.9]
            }
            /// `Bce` of `sigmoid(x)` and `y`, with unbounded logarithms, which are precise where
            /// the sigmoid is near 0 or 1.
            BceWithLogits bce_with_logits_loss(x, y: Real) -> T, elsewhere, long {
                value: special::bce_with_logits::<I, T>(x, y),
                slopes(_): [bce_by_logits(x, y), -x], on: [-3.0..3.0, 0.1..0.9]
            }
            /// `y * (ln(y) - x)`, and 0 where `y` is 0 and `x` is not NaN; `x` is the logarithm of
            /// a probability.
            KlDiv kl_div_loss(x, y: Real) -> T, elsewhere, long {
                value: special::kl_div::<I, T>(x, y),
                slopes(_): [-y, kl_div_by_target(x, y)], on: [-3.0..3.0, 0.2..0.9]
            }
            /// `x < y`
            Lt lt(x, y: PartialOrder) -> bool, monotone { value: x < y }
            /// `x <= y`
            Le le(x, y: PartialOrder) -> bool, monotone { value: x <= y }
            /// `x > y`
            Gt gt(x, y: PartialOrder) -> bool, monotone { value: x > y }
            /// `x >= y`
            Ge ge(x, y: PartialOrder) -> bool, monotone { value: x >= y }
            /// `x == y`
            Eq eq(x, y: Equality) -> bool { value: x == y }
            /// `x != y`
            Ne ne(x, y: Equality) -> bool { value: x != y }
        }
        constants {
            /// `(x - y)^2 / 2` where `|x - y| <= delta`, otherwise `delta * (|x - y| - delta / 2)`.
            Huber huber_loss(x, y: Real, delta = 1.37) -> T, elsewhere {
                value: special::huber(x - y, delta),
                slopes(_): [(x - y).clamp(-delta, delta), -(x - y).clamp(-delta, delta)],
                on: [-3.0..3.0, -2.0..2.0]
            }
            /// `Huber` with `delta = beta`, divided by `beta`; `|x - y|` for a `beta` of 0.
            SmoothL1 smooth_l1_loss(x, y: Real, beta = 0.5) -> T, elsewhere {
                value: special::smooth_l1(x - y, beta),
                slopes(_): [smooth_l1(x - y, beta), -smooth_l1(x - y, beta)], on: [-3.0..3.0, -2.0..2.0]
            }
            /// `x + (y - x) * weight`: exactly `x` for a weight of 0, and `y` for 1.
            Lerp lerp(x, y: Real, weight = 0.25) -> T {
                value: special::lerp(x, y, weight),
                slopes(_): [x.constant(1.0 - weight), x.constant(weight)], on: [-3.0..3.0, -2.0..2.0]
            }
        }
    } };
}
