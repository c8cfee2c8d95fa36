//! Scalar functions with several steps.

use crate::machine::isa::Isa;
use crate::scalar::{Analytic, Num, Ordered, Real};

/// `ln(1 + e^x)` without overflow.
#[cfg_attr(not(unoptimized), inline(always))]
pub fn softplus<I: Isa, T: Real>(x: T) -> T {
    x.max(T::zero()) + Analytic::exp::<I>(-num_traits::Float::abs(x)).ln_1p()
}

/// `1 / (1 + e^-x)`, computed with `e^-|x|`, which cannot overflow.
#[cfg_attr(not(unoptimized), inline(always))]
pub fn sigmoid<I: Isa, T: Real>(x: T) -> T {
    let exp = T::exp_down::<I>(-num_traits::Float::abs(x));
    (if x < T::zero() { exp } else { T::one() }) / (T::one() + exp)
}

/// The derivative of [`sigmoid`], `sigmoid(x) * sigmoid(-x)`.
#[cfg_attr(not(unoptimized), inline(always))]
pub fn sigmoid_slope<I: Isa, T: Real>(x: T) -> T {
    let exp = T::exp_down::<I>(-num_traits::Float::abs(x));
    let sum = T::one() + exp;
    exp / (sum * sum)
}

/// `max(x, -1000)`, so that products with a factor that vanishes for very negative `x`, such as
/// `e^x`, are 0 even for minus infinity.
#[cfg_attr(not(unoptimized), inline(always))]
fn bounded<T: Real>(x: T) -> T {
    let least = constant(-1000.0);
    if x < least { least } else { x }
}

/// `x * sigmoid(x)`
#[cfg_attr(not(unoptimized), inline(always))]
pub fn silu<I: Isa, T: Real>(x: T) -> T {
    bounded(x) * sigmoid::<I, T>(x)
}

/// `x * tanh(softplus(x))`
#[cfg_attr(not(unoptimized), inline(always))]
pub fn mish<I: Isa, T: Real>(x: T) -> T {
    bounded(x) * Analytic::tanh::<I>(softplus::<I, T>(x))
}

/// `ln(1 + x)`, for an `x` that is at least -1 and not large: `Analytic::ln` with W. Kahan's
/// correction for the rounding of `1 + x`.
#[cfg_attr(not(unoptimized), inline(always))]
fn ln_of_1_and<I: Isa, T: Real>(x: T) -> T {
    let sum = T::one() + x;
    if sum == T::one() { x } else { Analytic::ln::<I>(sum) * (x / (sum - T::one())) }
}

/// `ln(x / (1 - x))`. From 1/4 to 3/4 it is computed as `ln(1 + r)` with `r = (2x - 1) / (1 - x)`,
/// which is precise near 1/2.
#[cfg_attr(not(unoptimized), inline(always))]
pub fn logit<I: Isa, T: Real>(x: T) -> T {
    let rest = T::one() - x;
    let near = num_traits::Float::abs(x - constant(0.5)) < constant(0.25);
    let odds = if near { (x + x - T::one()) / rest } else { x / rest - T::one() };
    let sum = if near { T::one() + odds } else { x / rest };
    let ln = Analytic::ln::<I>(sum);
    if !near {
        ln
    } else if sum == T::one() {
        odds
    } else {
        ln * (odds / (sum - T::one()))
    }
}

/// `x - tanh(x)`. Near 0, where the two are nearly equal, it is computed as
/// `(x cosh(x) - sinh(x)) / cosh(x)` with the power series of the numerator and the denominator.
#[cfg_attr(not(unoptimized), inline(always))]
pub fn tanh_shrink<I: Isa, T: Real>(x: T) -> T {
    // `2k / (2k + 1)!` and `1 / (2k)!` for `k` from 9 to 1.
    const DIFFERENCE: [f64; 9] = [
        1.0 / 6_758_061_133_824_000.0,
        1.0 / 22_230_464_256_000.0,
        1.0 / 93_405_312_000.0,
        1.0 / 518_918_400.0,
        1.0 / 3_991_680.0,
        1.0 / 45_360.0,
        1.0 / 840.0,
        1.0 / 30.0,
        1.0 / 3.0,
    ];
    const COSH: [f64; 9] = [
        1.0 / 6_402_373_705_728_000.0,
        1.0 / 20_922_789_888_000.0,
        1.0 / 87_178_291_200.0,
        1.0 / 479_001_600.0,
        1.0 / 3_628_800.0,
        1.0 / 40_320.0,
        1.0 / 720.0,
        1.0 / 24.0,
        1.0 / 2.0,
    ];
    let square = x * x;
    let (mut difference, mut cosh) = (T::zero(), T::zero());
    for (own, other) in DIFFERENCE.into_iter().zip(COSH) {
        difference = constant::<T>(own).add_product::<I>(difference, square);
        cosh = constant::<T>(other).add_product::<I>(cosh, square);
    }
    let cosh = T::one().add_product::<I>(cosh, square);
    let near = x * (square * difference / cosh);
    if num_traits::Float::abs(x) < constant(1.25) { near } else { x - Analytic::tanh::<I>(x) }
}

/// The divisor. Panics if it is 0 and the elements are integers.
#[cfg_attr(not(unoptimized), inline(always))]
pub fn divisor<T: Num>(operation: &str, b: T) -> T {
    if !T::DIVIDES_BY_ZERO && b == T::ZERO {
        divided_by_zero(operation);
    }
    b
}

#[cold]
#[inline(never)]
fn divided_by_zero(operation: &str) -> ! {
    panic!(
        "`{operation}` of integers has no value where the divisor is 0; use `select` to give such elements another value: `select(b.ne(0), .., 0)`, where `b` is the divisor"
    )
}

/// -1, 0 or 1; NaN for NaN.
pub fn signum<T: Ordered>(x: T) -> T {
    if x > T::ZERO {
        T::ONE
    } else if x < T::ZERO {
        T::ZERO.sub(T::ONE)
    } else {
        x
    }
}

/// `x / (1 + |x|)`; 1 and -1 for the infinities.
#[cfg_attr(not(unoptimized), inline(always))]
pub fn softsign<T: Real>(x: T) -> T {
    let x = x.maximum(-T::max_value()).minimum(T::max_value());
    x / (T::one() + num_traits::Float::abs(x))
}

#[cfg_attr(not(unoptimized), inline(always))]
fn constant<T: Real>(value: f64) -> T {
    T::from(value).expect("an `f64` can be rounded to any float type")
}

/// A small integer as a `T`, for types without casts.
#[cfg_attr(not(unoptimized), inline(always))]
pub fn small<T: Num>(n: usize) -> T {
    (0..n).fold(T::ZERO, |sum, _| sum.add(T::ONE))
}

/// Evaluates a function of `f64` for any float type.
#[cfg_attr(not(unoptimized), inline(always))]
fn in_f64<T: Real>(x: T, f: impl Fn(f64) -> f64) -> T {
    constant(f(x.to_f64().expect("each float can be converted to `f64`")))
}

/// `1 - erf(x)`
#[cfg_attr(not(unoptimized), inline(always))]
pub fn erfc<T: Real>(x: T) -> T {
    in_f64(x, libm::erfc)
}

/// `ln |gamma(x)|`
#[cfg_attr(not(unoptimized), inline(always))]
pub fn ln_gamma<T: Real>(x: T) -> T {
    in_f64(x, libm::lgamma)
}

/// The scaled exponential linear unit, with the constants of G. Klambauer et al., 2017,
/// "Self-Normalizing Neural Networks".
#[cfg_attr(not(unoptimized), inline(always))]
pub fn selu<T: Real>(x: T) -> T {
    let (scale, alpha) = (constant::<T>(1.050_700_987_355_480_5), constant::<T>(1.673_263_242_354_377_2));
    if x > T::zero() { scale * x } else { scale * alpha * x.exp_m1() }
}

/// `min(max(x + 3, 0), 6) / 6`; NaN for NaN.
#[cfg_attr(not(unoptimized), inline(always))]
pub fn hard_sigmoid<T: Real>(x: T) -> T {
    (x + constant(3.0)).maximum(T::zero()).minimum(constant(6.0)) / constant(6.0)
}

/// `x * hard_sigmoid(x)`
#[cfg_attr(not(unoptimized), inline(always))]
pub fn hard_swish<T: Real>(x: T) -> T {
    bounded(x) * hard_sigmoid(x)
}

/// `x/2 * (1 + tanh(sqrt(2/pi) * (x + 0.044715 x^3)))`
#[cfg_attr(not(unoptimized), inline(always))]
pub fn gelu_tanh<I: Isa, T: Real>(x: T) -> T {
    // `(1 + tanh(u)) / 2` is `sigmoid(2u)`, which is precise even where it is small.
    let x = bounded(x);
    let inner = constant::<T>(2.0 * 0.797_884_560_802_865_4) * (x + constant::<T>(0.044_715) * x * x * x);
    x * sigmoid::<I, T>(inner)
}

/// `sin(pi x) / (pi x)`; 1 at 0.
#[cfg_attr(not(unoptimized), inline(always))]
pub fn sinc<T: Real>(x: T) -> T {
    let angle = x * constant(core::f64::consts::PI);
    if x == T::zero() { T::one() } else { sin_pi(x) / angle }
}

/// `sin(pi x)`, computed from the distance to the nearest even integer, which is exact.
#[cfg_attr(not(unoptimized), inline(always))]
fn sin_pi<T: Real>(x: T) -> T {
    let two = constant::<T>(2.0);
    let rest = x - two * num_traits::Float::round(x / two);
    let near = if num_traits::Float::abs(rest) > constant(0.5) {
        num_traits::Float::signum(rest) - rest
    } else {
        rest
    };
    num_traits::Float::sin(near * constant(core::f64::consts::PI))
}

/// The `n`th derivative of `sin(pi x) / (pi x)`, `n >= 1`.
#[cfg_attr(not(unoptimized), inline(always))]
pub fn sinc_slope<T: Real>(n: u32, x: T) -> T {
    in_f64(x, |x| sinc_slope_f64(n, x))
}

fn sinc_slope_f64(n: u32, x: f64) -> f64 {
    use core::f64::consts::PI;
    if !num_traits::Float::is_finite(x) {
        return f64::NAN;
    }
    if num_traits::Float::abs(x) < 1.0 {
        // The terms of the series are (-1)^k pi^(2k) x^(2k - n) (2k)! / (2k - n)! / (2k + 1)!
        let first = n.div_ceil(2);
        let mut sum = 0.0;
        for k in (first..first + 20).rev() {
            let power = (2 * k - n) as i32;
            let factors: f64 = (2 * k - n + 1..=2 * k).map(f64::from).product();
            let inverse: f64 =
                (1..=2 * k + 1).map(|at| if at == 1 { 1.0 } else { PI / f64::from(at) }).product();
            let term = inverse * factors * num_traits::Float::powi(x, power);
            sum += if k % 2 == 0 { term } else { -term };
        }
        return sum;
    }
    // `x sinc(x)` is `sin(pi x) / pi`. The `n`th derivative of this product is
    // `x f_n + n f_(n - 1)`, where `f_n` is the `n`th derivative of `sinc(x)`.
    let (sin, cos) = (sin_pi(x), sin_pi(0.5 - num_traits::Float::abs(x % 2.0)));
    let (mut slope, mut scale) = (sin / (PI * x), 1.0);
    for order in 1..=n {
        let wave = [sin, cos, -sin, -cos][order as usize % 4];
        slope = (scale * wave - f64::from(order) * slope) / x;
        scale *= PI;
    }
    slope
}

/// The nearest integer; halves are rounded to even.
#[cfg_attr(not(unoptimized), inline(always))]
pub fn round_ties_even<T: Real>(x: T) -> T {
    let (nearest, two) = (num_traits::Float::round(x), constant::<T>(2.0));
    // `round` rounds halves away from 0: go back by one if the result is odd.
    let is_half = num_traits::Float::abs(x - num_traits::Float::trunc(x)) == constant(0.5);
    if is_half && nearest % two != T::zero() {
        // The sign is that of `x` also where the result is 0.
        return num_traits::Float::copysign(nearest - num_traits::Float::signum(x), x);
    }
    nearest
}

/// The inverse hyperbolic sine.
#[cfg_attr(not(unoptimized), inline(always))]
pub fn asinh<T: Real>(x: T) -> T {
    let size = num_traits::Float::abs(x);
    // Beyond 1 / epsilon, `x^2 + 1` rounds to `x^2`, and `x + sqrt(x^2 + 1)`, which can overflow,
    // is `2x`.
    if size > num_traits::Float::recip(T::epsilon()) {
        return num_traits::Float::copysign(
            num_traits::Float::ln(size) + constant(core::f64::consts::LN_2),
            x,
        );
    }
    num_traits::Float::asinh(x)
}

/// The inverse hyperbolic cosine. For large `x` it is computed as in [`asinh`], otherwise from
/// `x - 1`, which is precise near 1.
#[cfg_attr(not(unoptimized), inline(always))]
pub fn acosh<T: Real>(x: T) -> T {
    if x > num_traits::Float::recip(T::epsilon()) {
        return num_traits::Float::ln(x) + constant(core::f64::consts::LN_2);
    }
    let above = x - T::one();
    if above < T::zero() {
        return T::nan();
    }
    (above + num_traits::Float::sqrt(above * (x + T::one()))).ln_1p()
}

/// The inverse hyperbolic tangent, `ln((1 + x) / (1 - x)) / 2`. It is computed as `ln(1 + r) / 2`
/// with `r = 2|x| / (1 - |x|)`, and then given the sign of `x`: for `x` near -1,
/// `1 + 2x / (1 - x)` would lose precision.
#[cfg_attr(not(unoptimized), inline(always))]
pub fn atanh<T: Real>(x: T) -> T {
    let size = num_traits::Float::abs(x);
    let odds = (size + size) / (T::one() - size);
    num_traits::Float::copysign(constant::<T>(0.5) * odds.ln_1p(), x)
}

/// `x` moved towards 0 by `lambda`, or 0 if `|x| <= lambda`.
#[cfg_attr(not(unoptimized), inline(always))]
pub fn soft_shrink<T: Real>(x: T, lambda: T) -> T {
    if x > lambda {
        x - lambda
    } else if x < -lambda {
        x + lambda
    } else if x.is_nan() {
        x
    } else {
        T::zero()
    }
}

/// The remainder with the sign of `b`.
#[cfg_attr(not(unoptimized), inline(always))]
pub fn remainder<T: Ordered>(a: T, b: T) -> T {
    let rest = a.rem(b);
    if rest != T::ZERO && (rest < T::ZERO) != (b < T::ZERO) { rest.add(b) } else { rest }
}

/// The quotient of integers, rounded down.
#[cfg_attr(not(unoptimized), inline(always))]
pub fn floor_div<T: Ordered>(a: T, b: T) -> T {
    // (This is not `(a - remainder) / b`, because `a - remainder` may not fit into the type.)
    let (quotient, rest) = (a.div(b), a.rem(b));
    if rest != T::ZERO && (rest < T::ZERO) != (b < T::ZERO) { quotient.sub(T::ONE) } else { quotient }
}

/// `(a - b)^2`, computed in the accumulator type.
#[cfg_attr(not(unoptimized), inline(always))]
pub fn squared_error<T: Num>(a: T, b: T) -> T {
    let difference = a.widen().sub(b.widen());
    T::narrow(difference.mul(difference))
}

/// `ln(e^a + e^b)`
#[cfg_attr(not(unoptimized), inline(always))]
pub fn logaddexp<I: Isa, T: Real>(a: T, b: T) -> T {
    let greatest = a.maximum(b);
    // Equal infinities cannot be subtracted, and positive infinity absorbs the other term.
    if greatest.is_infinite() {
        return greatest;
    }
    greatest + Analytic::exp::<I>(-num_traits::Float::abs(a - b)).ln_1p()
}

/// `a * ln(b)`; 0 if `a` is 0 and `b` is not NaN.
#[cfg_attr(not(unoptimized), inline(always))]
pub fn xlogy<I: Isa, T: Real>(a: T, b: T) -> T {
    if a == T::zero() && !b.is_nan() { T::zero() } else { a * Analytic::ln::<I>(b) }
}

/// The step function: 0 for negative `a`, 1 for positive `a`, `b` at 0, and NaN if `a` is NaN.
#[cfg_attr(not(unoptimized), inline(always))]
pub fn heaviside<T: Ordered>(a: T, b: T) -> T {
    if a < T::ZERO {
        T::ZERO
    } else if a > T::ZERO {
        T::ONE
    } else if a.is_nan_value() {
        a
    } else {
        b
    }
}

/// The binary cross entropy of the predicted probability `p` and the target `y`. Logarithms below
/// -100 count as -100.
#[cfg_attr(not(unoptimized), inline(always))]
pub fn bce<I: Isa, T: Real>(p: T, y: T) -> T {
    let least = constant::<T>(-100.0);
    let (first, second) = (Analytic::ln::<I>(p).maximum(least), ln_of_1_and::<I, T>(-p).maximum(least));
    -(y * first + (T::one() - y) * second)
}

/// [`bce`] of `sigmoid(x)`, with unbounded logarithms: `ln(1 + e^-|x|) + |x| s`, where `s` is
/// `1 - y` for positive `x`, and otherwise `y`.
#[cfg_attr(not(unoptimized), inline(always))]
pub fn bce_with_logits<I: Isa, T: Real>(x: T, y: T) -> T {
    let size = num_traits::Float::abs(x);
    let share = if x > T::zero() { T::one() - y } else { y };
    let line = if share == T::zero() { T::zero() } else { share * size };
    T::exp_down::<I>(-size).ln_1p() + line
}

/// `y * (ln(y) - x)`; 0 if `y` is 0 and `x` is not NaN.
#[cfg_attr(not(unoptimized), inline(always))]
pub fn kl_div<I: Isa, T: Real>(x: T, y: T) -> T {
    if y == T::zero() && !x.is_nan() { T::zero() } else { y * (Analytic::ln::<I>(y) - x) }
}

/// `a + (b - a) * weight`, computed from the nearer end.
#[cfg_attr(not(unoptimized), inline(always))]
pub fn lerp<T: Real>(a: T, b: T, weight: T) -> T {
    if weight == T::zero() {
        a
    } else if weight == T::one() {
        b
    } else if weight < constant(0.5) {
        a + (b - a) * weight
    } else {
        b - (b - a) * (T::one() - weight)
    }
}

/// `d^2 / 2` where `|d| <= delta`, and linear beyond.
#[cfg_attr(not(unoptimized), inline(always))]
pub fn huber<T: Real>(d: T, delta: T) -> T {
    let (size, half) = (num_traits::Float::abs(d), constant::<T>(0.5));
    if size <= delta { half * d * d } else { delta * (size - half * delta) }
}

/// [`huber`] with `delta = beta`, divided by `beta`; `|d|` if `beta` is 0.
#[cfg_attr(not(unoptimized), inline(always))]
pub fn smooth_l1<T: Real>(d: T, beta: T) -> T {
    if beta == T::zero() { num_traits::Float::abs(d) } else { huber(d, beta) / beta }
}

/// The `n`th derivative of `ln |gamma(x)|`: the recurrence up to `15 + n`, then the asymptotic
/// series (Abramowitz and Stegun, 6.4.6 and 6.4.11).
#[cfg_attr(not(unoptimized), inline(always))]
pub fn polygamma<T: Real>(n: u32, x: T) -> T {
    in_f64(x, |x| polygamma_f64(n, x))
}

fn polygamma_f64(n: u32, x: f64) -> f64 {
    use num_traits::Float;
    /// The Bernoulli numbers `B(2k)` for `k` from 1 to 8.
    const BERNOULLI: [f64; 8] = [
        1.0 / 6.0,
        -1.0 / 30.0,
        1.0 / 42.0,
        -1.0 / 30.0,
        5.0 / 66.0,
        -691.0 / 2730.0,
        7.0 / 6.0,
        -3617.0 / 510.0,
    ];
    if n == 0 {
        return libm::lgamma(x);
    }
    if x <= 0.0 && Float::floor(x) == x {
        // A pole: for even `n`, both sides go to infinity.
        return if n.is_multiple_of(2) { f64::INFINITY } else { f64::NAN };
    }
    // psi(order, x) with `order = n - 1`; psi(order, x + 1) = psi(order, x) + (-1)^order order! /
    // x^(order + 1).
    let order = n as i32 - 1;
    let sign = if order % 2 == 0 { 1.0 } else { -1.0 };
    let factorial: f64 = (1..=order).map(f64::from).product();
    if x < -32.0 {
        // Takes most steps of the recurrence at once: their sum is a difference of values at
        // positive arguments.
        let near = x + (Float::floor(-x) - 16.0);
        let steps = polygamma_f64(n, 1.0 - x) - polygamma_f64(n, 1.0 - near);
        return polygamma_f64(n, near) + sign * steps;
    }
    let (mut x, mut sum) = (x, 0.0);
    while x < 16.0 + f64::from(order) {
        sum -= sign * factorial / Float::powi(x, order + 1);
        x += 1.0;
    }
    let tail = if order == 0 {
        let square = x * x;
        let (mut power, mut series) = (square, 0.0);
        for (k, bernoulli) in (1..).zip(BERNOULLI) {
            series += bernoulli / (2.0 * f64::from(k) * power);
            power *= square;
        }
        Float::ln(x) - 0.5 / x - series
    } else {
        // (-1)^(order + 1) ((order - 1)! / x^order + order! / (2 x^(order + 1)) + sum of B(2k) (2k
        // + order - 1)! / ((2k)! x^(2k + order)))
        let mut series = factorial / f64::from(order) / Float::powi(x, order)
            + factorial / (2.0 * Float::powi(x, order + 1));
        for (k, bernoulli) in (1..).zip(BERNOULLI) {
            let ratio: f64 = (2 * k + 1..=2 * k + order - 1).map(f64::from).product();
            series += bernoulli * ratio / Float::powi(x, 2 * k + order);
        }
        -sign * series
    };
    sum + tail
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn polygamma_has_the_values_of_the_tables() {
        let pi_square = core::f64::consts::PI * core::f64::consts::PI;
        for (n, x, expected) in [
            (1, 1.0, -0.577_215_664_901_532_9),
            (1, 0.5, -1.963_510_026_021_423_5),
            (1, -0.5, 0.036_489_973_978_576_52),
            (2, 1.0, pi_square / 6.0),
            (2, 0.5, pi_square / 2.0),
            (3, 1.0, -2.404_113_806_319_188_6),
            (4, 1.0, pi_square * pi_square / 15.0),
            // By reflection: the cotangent is 0 there, and the sine -1 or 1.
            (1, -40.5, polygamma::<f64>(1, 41.5)),
            (2, -40.5, pi_square - polygamma::<f64>(2, 41.5)),
            (1, -1e9 - 0.5, polygamma::<f64>(1, 1e9 + 1.5)),
            (2, -1e9 - 0.5, pi_square - polygamma::<f64>(2, 1e9 + 1.5)),
            (3, -33.5, polygamma::<f64>(3, 34.5)),
        ] {
            let found = polygamma::<f64>(n, x);
            assert!(
                (found - expected).abs() < 1e-12 * expected.abs().max(1.0),
                "{n} {x}: {found} is not {expected}"
            );
        }
    }
}
