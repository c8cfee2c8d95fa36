//! Elementary functions, mostly as straight-line code, which the compiler can vectorize.
//!
//! The error is at most 2 units in the last place over the whole range for `f32` (`exp`, `ln`,
//! `tanh`, `erf`) and `f64` (`exp`); tests sweep this range. The polynomials of `ln` and `tanh` for
//! `f32` are from the Cephes library (S. Moshier, 1992); those of `erf` are by N. Juffa.

// The coefficients are as published, although `f32` rounds their last digits away.
#![allow(clippy::excessive_precision, clippy::unreadable_literal)]

use crate::machine::isa::Isa;
use num_traits::Float;

/// `e^x` with `x = n ln 2 + r`: a polynomial in `r`, times `2^n`. `2^n` is split into two factors,
/// so that subnormal results are rounded once.
#[cfg_attr(not(unoptimized), inline(always))]
pub fn exp32<I: Isa>(x: f32) -> f32 {
    // Adding 1.5 x 2^23 leaves the integer `n` in the low bits of the mantissa; adding another
    // 254 makes it the sum of two biased exponents.
    const ROUND: f32 = 12582912.0 + 254.0;
    // NaN fails both comparisons and is kept.
    let x = if x > 89.0 { 89.0 } else { x };
    let x = if x < -105.0 { -105.0 } else { x };
    let shifted = I::fma32(x, core::f32::consts::LOG2_E, ROUND);
    let p = exp_rest32::<I>(x, shifted - ROUND);
    let both = shifted.to_bits();
    let half = both >> 1;
    // The bits above the sum are shifted out.
    let scale = |exponent: u32| f32::from_bits(exponent << 23);
    p * scale(half) * scale(both.wrapping_sub(half))
}

/// `e^x` for `x <= 0`, like [`exp32`]. The result cannot overflow, so the two factors are
/// `2^(n + 64)` and `2^-64`.
#[cfg_attr(not(unoptimized), inline(always))]
pub fn exp_down32<I: Isa>(x: f32) -> f32 {
    const ROUND: f32 = 12582912.0 + (127.0 + 64.0);
    let x = if x < -105.0 { -105.0 } else { x };
    let shifted = I::fma32(x, core::f32::consts::LOG2_E, ROUND);
    let p = exp_rest32::<I>(x, shifted - ROUND);
    p * (f32::from_bits(shifted.to_bits() << 23) * f32::from_bits((127 - 64) << 23))
}

/// `2^64 e^x` for `x <= 0`, for values that are divided by their sum, as in a softmax: the factor
/// avoids subnormal values, and cancels out in the division.
///
/// For `x >= -105`, the result is within 2 units in the last place, times a factor of up to
/// `1 + 2^-28 |x|`. For smaller `x`, the result is that for -105.
#[cfg_attr(not(unoptimized), inline(always))]
pub fn exp_share32<I: Isa>(x: f32) -> f32 {
    const ROUND: f32 = 12582912.0 + (127.0 + 64.0);
    let x = if x < -105.0 { -105.0 } else { x };
    let shifted = I::fma32(x, core::f32::consts::LOG2_E, ROUND);
    let n = shifted - ROUND;
    let p = if I::FUSED {
        exp_near_0::<I>(I::fma32(n, -core::f32::consts::LN_2, x))
    } else {
        exp_rest32::<I>(x, n)
    };
    p * f32::from_bits(shifted.to_bits() << 23)
}

/// `e^(x - n ln 2)`.
#[cfg_attr(not(unoptimized), inline(always))]
fn exp_rest32<I: Isa>(x: f32, n: f32) -> f32 {
    let r = I::fma32(n, -0.693359375, x);
    exp_near_0::<I>(I::fma32(n, 2.12194440e-4, r))
}

/// `e^r` for `|r| <= ln 2 / 2`.
#[cfg_attr(not(unoptimized), inline(always))]
fn exp_near_0<I: Isa>(r: f32) -> f32 {
    // The polynomial is evaluated in two halves, which shortens the chain of dependent operations.
    let z = r * r;
    let p = I::fma32(8.368745e-3, r, 4.166839e-2);
    let p = I::fma32(1.381454e-3, z, p);
    let low = I::fma32(1.6666521e-1, r, 4.9999994e-1);
    let p = I::fma32(p, z, low);
    I::fma32(p, z, 1.0 + r)
}

/// `e^x`, like [`exp32`]; the polynomial is the power series to degree 13.
#[cfg_attr(not(unoptimized), inline(always))]
pub fn exp64<I: Isa>(x: f64) -> f64 {
    const ROUND: f64 = 6755399441055744.0 + 2046.0;
    let x = if x > 710.0 { 710.0 } else { x };
    let x = if x < -746.0 { -746.0 } else { x };
    let shifted = I::fma64(x, core::f64::consts::LOG2_E, ROUND);
    let p = exp_rest64::<I>(x, shifted - ROUND);
    let both = shifted.to_bits();
    let half = both >> 1;
    let scale = |exponent: u64| f64::from_bits(exponent << 52);
    p * scale(half) * scale(both.wrapping_sub(half))
}

/// `e^x` for `x <= 0`, like [`exp_down32`].
#[cfg_attr(not(unoptimized), inline(always))]
pub fn exp_down64<I: Isa>(x: f64) -> f64 {
    const ROUND: f64 = 6755399441055744.0 + (1023.0 + 512.0);
    let x = if x < -746.0 { -746.0 } else { x };
    let shifted = I::fma64(x, core::f64::consts::LOG2_E, ROUND);
    let p = exp_rest64::<I>(x, shifted - ROUND);
    p * f64::from_bits(shifted.to_bits() << 52) * f64::from_bits((1023 - 512) << 52)
}

/// `2^512 e^x` for `x <= 0`, like [`exp_share32`]. For `x >= -746`, the result is within 2 units in
/// the last place; for smaller `x`, it is that for -746.
#[cfg_attr(not(unoptimized), inline(always))]
pub fn exp_share64<I: Isa>(x: f64) -> f64 {
    const ROUND: f64 = 6755399441055744.0 + (1023.0 + 512.0);
    let x = if x < -746.0 { -746.0 } else { x };
    let shifted = I::fma64(x, core::f64::consts::LOG2_E, ROUND);
    exp_rest64::<I>(x, shifted - ROUND) * f64::from_bits(shifted.to_bits() << 52)
}

/// `e^(x - n ln 2)`.
#[cfg_attr(not(unoptimized), inline(always))]
fn exp_rest64<I: Isa>(x: f64, n: f64) -> f64 {
    let r = I::fma64(n, -6.93147180369123816490e-1, x);
    let r = I::fma64(n, -1.90821492927058770002e-10, r);
    let mut p = 1.0 / 6227020800.0;
    for c in [479001600.0, 39916800.0, 3628800.0, 362880.0, 40320.0, 5040.0, 720.0, 120.0, 24.0, 6.0, 2.0_f64]
    {
        p = I::fma64(p, r, 1.0 / c);
    }
    I::fma64(p * r, r, r) + 1.0
}

/// The natural logarithm: `x = 2^n m` with `m` between `sqrt(1/2)` and `sqrt(2)`, and a polynomial
/// in `m - 1`.
#[cfg_attr(not(unoptimized), inline(always))]
pub fn ln32<I: Isa>(x: f32) -> f32 {
    // Subnormal numbers are first scaled to normal numbers.
    let small = x < f32::MIN_POSITIVE;
    let scaled = if small { x * 8388608.0 } else { x };
    let bits = scaled.to_bits() as i32;
    // After the bits of sqrt(1/2) are subtracted, the bits from 23 on are `n`.
    let shifted = bits.wrapping_sub(0x3f3504f3);
    let n = (shifted >> 23) as f32 - if small { 23.0 } else { 0.0 };
    let m = f32::from_bits(((shifted & 0x007fffff) + 0x3f3504f3) as u32) - 1.0;
    let z = m * m;
    let p = 7.0376836292e-2;
    let p = I::fma32(p, m, -1.1514610310e-1);
    let p = I::fma32(p, m, 1.1676998740e-1);
    let p = I::fma32(p, m, -1.2420140846e-1);
    let p = I::fma32(p, m, 1.4249322787e-1);
    let p = I::fma32(p, m, -1.6668057665e-1);
    let p = I::fma32(p, m, 2.0000714765e-1);
    let p = I::fma32(p, m, -2.4999993993e-1);
    let p = I::fma32(p, m, 3.3333331174e-1);
    let y = p * m * z;
    let y = I::fma32(n, -2.12194440e-4, y);
    let y = I::fma32(z, -0.5, y);
    let y = I::fma32(n, 0.693359375, m + y);
    let y = if x == f32::INFINITY { x } else { y };
    let y = if x == 0.0 { f32::NEG_INFINITY } else { y };
    // Negative numbers have no logarithm, and NaN is kept.
    if x >= 0.0 { y } else { f32::NAN }
}

/// The hyperbolic tangent.
#[cfg_attr(not(unoptimized), inline(always))]
pub fn tanh32<I: Isa>(x: f32) -> f32 {
    let a = x.abs();
    let z = x * x;
    let p = -5.70498872745e-3;
    let p = I::fma32(p, z, 2.06390887954e-2);
    let p = I::fma32(p, z, -5.37397155531e-2);
    let p = I::fma32(p, z, 1.33314422036e-1);
    let p = I::fma32(p, z, -3.33332819422e-1);
    let near = I::fma32(p * z, x, x);
    let far = 1.0 - 2.0 / (exp32::<I>(2.0 * a) + 1.0);
    // The sign is copied also for small numbers: `near` is 0 for -0.
    (if a < 0.625 { near } else { far }).copysign(x)
}

/// The error function.
#[cfg_attr(not(unoptimized), inline(always))]
pub fn erf32<I: Isa>(x: f32) -> f32 {
    let a = x.abs();
    let s = x * x;
    let r = I::fma32(-1.72853470e-5, a, 3.83197126e-4);
    let u = I::fma32(-3.88396438e-3, a, 2.42546219e-2);
    let r = I::fma32(r, s, u);
    let r = I::fma32(r, a, -1.06777877e-1);
    let r = I::fma32(r, a, -6.34846687e-1);
    let r = I::fma32(r, a, -1.28717512e-1);
    let r = I::fma32(r, a, -a);
    let far = (1.0 - exp32::<I>(r)).copysign(x);
    let p = -5.96761703e-4;
    let p = I::fma32(p, s, 4.99119423e-3);
    let p = I::fma32(p, s, -2.67681349e-2);
    let p = I::fma32(p, s, 1.12819925e-1);
    let p = I::fma32(p, s, -3.76125336e-1);
    let p = I::fma32(p, s, 1.28379166e-1);
    let near = I::fma32(p, x, x);
    // Where `a` is above 4, the polynomial in the exponent is not monotone, but the error function
    // rounds to 1 or -1.
    let far = if a > 4.0 { 1.0_f32.copysign(x) } else { far };
    if a > 0.927734375 { far } else { near }
}

/// `x` times the standard normal distribution function at `x`, `x/2 * (1 + erf(x / sqrt(2)))`.
///
/// Computed as `max(x, 0)` minus `|x|` times the tail below `-|x|`, which is the same for both
/// signs. So there is no branch, and small tails are not computed as a difference from 1.
#[cfg_attr(not(unoptimized), inline(always))]
pub fn gelu32<I: Isa>(x: f32) -> f32 {
    let a = x.abs();
    // (NaN stays in `x`.)
    let a = if a < FAR { a } else { FAR };
    I::fma32(-a, normal_tail32::<I>(a), if x < 0.0 { 0.0 } else { x })
}

/// The rounding error of `square`, the rounded `x * x`.
#[cfg_attr(not(unoptimized), inline(always))]
fn rest_of_square<I: Isa, T: Math + Float>(x: T, square: T) -> T {
    if I::FUSED {
        return (-square).add_product_in::<I>(x, x);
    }
    // T. J. Dekker's exact product.
    let factor =
        T::from(if size_of::<T>() == 4 { 4097.0 } else { 134_217_729.0 }).expect("the number is a float");
    let high = factor * x - (factor * x - x);
    let low = x - high;
    ((high * high - square) + high * low + high * low) + low * low
}

/// `e^(-scale * x^2)`, corrected for the rounding error of the square.
#[cfg_attr(not(unoptimized), inline(always))]
pub fn bell<I: Isa, T: Math + Float>(x: T, scale: T) -> T {
    let square = x * x;
    let rest = rest_of_square::<I, T>(x, square);
    // (If the square is infinite, there is no correction.)
    let rest = if rest.is_finite() { rest } else { T::zero() };
    let exp = (-scale * square).exp_down_in::<I>();
    exp - exp * (scale * rest)
}

/// Beyond this number, the tail of the normal distribution rounds to 0.
const FAR: f32 = 14.5;

/// The standard normal distribution function at `-a`, for `a` from 0 to [`FAR`]: `e^(-a^2 / 2)`
/// times a polynomial in `1 / (1 + 0.4 a)`.
///
/// The error is at most 8 units in the last place unless the result is subnormal.
#[cfg_attr(not(unoptimized), inline(always))]
fn normal_tail32<I: Isa>(a: f32) -> f32 {
    let t = 1.0 / I::fma32(a, 0.4, 1.0);
    let (t2, low) = (t * t, I::fma32(t, 1.5988918e-01, -1.1282036e-05));
    let low = I::fma32(t2, I::fma32(t, 1.5779433e-01, 1.5591826e-01), low);
    let high =
        I::fma32(t2, I::fma32(t, 1.9896406e-01, -3.70712e-01), I::fma32(t, 2.4802782e-01, -1.0648079e-02));
    let t4 = t2 * t2;
    let high = I::fma32(t4, -3.9222203e-02, high);
    bell::<I, f32>(a, 0.5) * I::fma32(t4, high, low)
}

/// The standard normal distribution function.
#[cfg_attr(not(unoptimized), inline(always))]
fn normal_below32<I: Isa>(x: f32) -> f32 {
    let a = x.abs();
    let part = normal_tail32::<I>(if a < FAR { a } else { FAR });
    if x < 0.0 {
        part
    } else if x.is_nan() {
        x
    } else {
        1.0 - part
    }
}

/// The standard normal distribution function, `erfc(-x / sqrt(2)) / 2`, corrected for the rounding
/// of the argument.
#[cfg_attr(not(unoptimized), inline(always))]
fn normal_below64(x: f64) -> f64 {
    // The part of sqrt(1/2) that `f64` rounds away.
    const LOW: f64 = -4.833_646_656_726_457e-17;
    let (root, scaled) = (core::f64::consts::FRAC_1_SQRT_2, -x * core::f64::consts::FRAC_1_SQRT_2);
    let part = 0.5 * libm::erfc(scaled);
    if !(1.0..40.0).contains(&scaled) {
        return part;
    }
    // In this range, the derivative of `ln(erfc(z))` is about `-2z`.
    let rest = Float::mul_add(-x, root, -scaled) - x * LOW;
    part - part * (2.0 * scaled * rest)
}

/// `x/2 * (1 + erf(x / sqrt(2)))`
#[cfg_attr(not(unoptimized), inline(always))]
fn gelu64(x: f64) -> f64 {
    // (Below -40, the distribution function rounds to 0.)
    let x = if x < -40.0 { -40.0 } else { x };
    x * normal_below64(x)
}

/// Elementary functions: the ones of this file where they exist for the type, otherwise those of
/// the standard library or `libm`.
pub trait Math: Sized {
    /// `e^x`
    fn exp_in<I: Isa>(self) -> Self;
    /// `e^x` for `x <= 0`.
    fn exp_down_in<I: Isa>(self) -> Self;
    /// `e^x` for `x <= 0`, times an unspecified power of two that is the same for all `x`.
    fn exp_share_in<I: Isa>(self) -> Self;
    /// The natural logarithm.
    fn ln_in<I: Isa>(self) -> Self;
    /// The hyperbolic tangent.
    fn tanh_in<I: Isa>(self) -> Self;
    /// The error function.
    fn erf_in<I: Isa>(self) -> Self;
    /// `x/2 * (1 + erf(x / sqrt(2)))`
    fn gelu_in<I: Isa>(self) -> Self;
    /// The standard normal distribution function.
    fn normal_below_in<I: Isa>(self) -> Self;
    /// `self + x * y`.
    fn add_product_in<I: Isa>(self, x: Self, y: Self) -> Self;
}

impl Math for f32 {
    #[cfg_attr(not(unoptimized), inline(always))]
    fn exp_in<I: Isa>(self) -> f32 {
        exp32::<I>(self)
    }
    #[cfg_attr(not(unoptimized), inline(always))]
    fn exp_down_in<I: Isa>(self) -> f32 {
        exp_down32::<I>(self)
    }
    #[cfg_attr(not(unoptimized), inline(always))]
    fn exp_share_in<I: Isa>(self) -> f32 {
        exp_share32::<I>(self)
    }
    #[cfg_attr(not(unoptimized), inline(always))]
    fn ln_in<I: Isa>(self) -> f32 {
        ln32::<I>(self)
    }
    #[cfg_attr(not(unoptimized), inline(always))]
    fn tanh_in<I: Isa>(self) -> f32 {
        tanh32::<I>(self)
    }
    #[cfg_attr(not(unoptimized), inline(always))]
    fn erf_in<I: Isa>(self) -> f32 {
        erf32::<I>(self)
    }
    #[cfg_attr(not(unoptimized), inline(always))]
    fn gelu_in<I: Isa>(self) -> f32 {
        gelu32::<I>(self)
    }
    #[cfg_attr(not(unoptimized), inline(always))]
    fn normal_below_in<I: Isa>(self) -> f32 {
        normal_below32::<I>(self)
    }
    #[cfg_attr(not(unoptimized), inline(always))]
    fn add_product_in<I: Isa>(self, x: f32, y: f32) -> f32 {
        I::fma32(x, y, self)
    }
}

impl Math for f64 {
    #[cfg_attr(not(unoptimized), inline(always))]
    fn exp_in<I: Isa>(self) -> f64 {
        exp64::<I>(self)
    }
    #[cfg_attr(not(unoptimized), inline(always))]
    fn exp_down_in<I: Isa>(self) -> f64 {
        exp_down64::<I>(self)
    }
    #[cfg_attr(not(unoptimized), inline(always))]
    fn exp_share_in<I: Isa>(self) -> f64 {
        exp_share64::<I>(self)
    }
    #[cfg_attr(not(unoptimized), inline(always))]
    fn ln_in<I: Isa>(self) -> f64 {
        Float::ln(self)
    }
    #[cfg_attr(not(unoptimized), inline(always))]
    fn tanh_in<I: Isa>(self) -> f64 {
        Float::tanh(self)
    }
    #[cfg_attr(not(unoptimized), inline(always))]
    fn erf_in<I: Isa>(self) -> f64 {
        libm::erf(self)
    }
    #[cfg_attr(not(unoptimized), inline(always))]
    fn gelu_in<I: Isa>(self) -> f64 {
        gelu64(self)
    }
    #[cfg_attr(not(unoptimized), inline(always))]
    fn normal_below_in<I: Isa>(self) -> f64 {
        normal_below64(self)
    }
    #[cfg_attr(not(unoptimized), inline(always))]
    fn add_product_in<I: Isa>(self, x: f64, y: f64) -> f64 {
        I::fma64(x, y, self)
    }
}

#[cfg(feature = "half")]
macro_rules! through_f32 {
    ($($t:ty),*) => {$(
        impl Math for $t {
            #[cfg_attr(not(unoptimized), inline(always))]
            fn exp_in<I: Isa>(self) -> Self {
                Self::from_f32(exp32::<I>(self.to_f32()))
            }
            #[cfg_attr(not(unoptimized), inline(always))]
            fn exp_down_in<I: Isa>(self) -> Self {
                Self::from_f32(exp_down32::<I>(self.to_f32()))
            }
            #[cfg_attr(not(unoptimized), inline(always))]
            fn exp_share_in<I: Isa>(self) -> Self {
                // (The factor 2^64 of `exp_share32` is too large for `f16`.)
                self.exp_down_in::<I>()
            }
            #[cfg_attr(not(unoptimized), inline(always))]
            fn ln_in<I: Isa>(self) -> Self {
                Self::from_f32(ln32::<I>(self.to_f32()))
            }
            #[cfg_attr(not(unoptimized), inline(always))]
            fn tanh_in<I: Isa>(self) -> Self {
                Self::from_f32(tanh32::<I>(self.to_f32()))
            }
            #[cfg_attr(not(unoptimized), inline(always))]
            fn erf_in<I: Isa>(self) -> Self {
                Self::from_f32(erf32::<I>(self.to_f32()))
            }
            #[cfg_attr(not(unoptimized), inline(always))]
            fn gelu_in<I: Isa>(self) -> Self {
                Self::from_f32(gelu32::<I>(self.to_f32()))
            }
            #[cfg_attr(not(unoptimized), inline(always))]
            fn normal_below_in<I: Isa>(self) -> Self {
                Self::from_f32(normal_below32::<I>(self.to_f32()))
            }
            #[cfg_attr(not(unoptimized), inline(always))]
            fn add_product_in<I: Isa>(self, x: Self, y: Self) -> Self {
                Self::from_f32(I::fma32(x.to_f32(), y.to_f32(), self.to_f32()))
            }
        }
    )*};
}

#[cfg(feature = "half")]
through_f32!(half::f16, half::bf16);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::isa::{Baseline, Fused};

    /// The error in units in the last place; 0 if both are NaN.
    fn ulps32(a: f32, exact: f64) -> f64 {
        if a.is_nan() && exact.is_nan() {
            return 0.0;
        }
        let rounded = exact as f32;
        if a == rounded {
            return if a.is_sign_negative() == rounded.is_sign_negative() { 0.0 } else { f64::INFINITY };
        }
        if !a.is_finite() || !rounded.is_finite() {
            return f64::INFINITY;
        }
        let spacing =
            f64::from(f32::from_bits((rounded.abs().to_bits()).max(1) + 1)) - f64::from(rounded.abs());
        (f64::from(a) - exact).abs() / spacing
    }

    /// The step between the bits of tested floats. It is larger in debug builds, which are slower.
    const EACH: usize = if cfg!(debug_assertions) { 1021 } else { 251 };

    /// The greatest error at every [`EACH`]th `f32` and at special values, and the operand that it
    /// occurs for.
    fn sweep(f: impl Fn(f32) -> f32, exact: impl Fn(f64) -> f64) -> (f64, f32) {
        let specials = [0.0, -0.0, f32::NAN, f32::INFINITY, f32::NEG_INFINITY, f32::MAX, f32::MIN, 1.0, -1.0];
        let mut worst = (0.0, 0.0);
        for x in (0..u32::MAX).step_by(EACH).map(f32::from_bits).chain(specials) {
            let error = ulps32(f(x), exact(f64::from(x)));
            if error > worst.0 {
                worst = (error, x);
            }
        }
        worst
    }

    macro_rules! within {
        ($($name:ident $f:ident $exact:expr, $ulps:expr;)*) => {$(
            #[test]
            fn $name() {
                for worst in [sweep($f::<Fused>, $exact), sweep($f::<Baseline>, $exact)] {
                    assert!(worst.0 <= $ulps, "{} ulp at {:e}", worst.0, worst.1);
                }
            }
        )*};
    }

    within! {
        exp_of_f32 exp32 f64::exp, 2.0;
        ln_of_f32 ln32 f64::ln, 2.0;
        tanh_of_f32 tanh32 f64::tanh, 2.0;
        erf_of_f32 erf32 libm::erf, 2.0;
    }

    /// The standard normal distribution function.
    fn below(x: f64) -> f64 {
        0.5 * libm::erfc(-x * core::f64::consts::FRAC_1_SQRT_2)
    }

    #[test]
    fn gelu_of_f32() {
        for gelu in [gelu32::<Fused>, gelu32::<Baseline>] {
            for x in (0..u32::MAX).step_by(EACH).map(f32::from_bits).filter(|x| x.is_finite()) {
                let (value, exact) = (gelu(x), f64::from(x) * below(f64::from(x)));
                let is_small = exact.abs() < f64::from(f32::MIN_POSITIVE);
                let close =
                    if is_small { value.abs() <= f32::MIN_POSITIVE } else { ulps32(value, exact) <= 10.0 };
                assert!(close, "{value:e} of {x:e} instead of {exact:e}");
                assert!(x > -20.0 || value == 0.0, "{value:e} of {x:e}");
            }
            assert!(gelu(f32::NAN).is_nan());
            assert_eq!(gelu(f32::INFINITY), f32::INFINITY);
            assert_eq!(gelu(f32::NEG_INFINITY), 0.0);
        }
    }

    #[test]
    fn bells_of_large_numbers_are_0() {
        for x in [1e19, 1.9e19, 1e20, f32::MAX, f32::INFINITY] {
            for x in [x, -x] {
                assert_eq!([bell::<Fused, f32>(x, 0.5), bell::<Baseline, f32>(x, 1.0)], [0.0; 2], "{x}");
            }
        }
        for x in [1e154, 1.4e154, 1e200, f64::MAX, f64::INFINITY] {
            for x in [x, -x] {
                assert_eq!([bell::<Fused, f64>(x, 0.5), bell::<Baseline, f64>(x, 1.0)], [0.0; 2], "{x}");
            }
        }
        assert!(bell::<Fused, f32>(f32::NAN, 0.5).is_nan() && bell::<Baseline, f64>(f64::NAN, 0.5).is_nan());
    }

    #[test]
    fn exp_of_f32_that_are_not_above_0() {
        let exact = |x: f64| f64::exp(-x.abs());
        for worst in [
            sweep(|x| exp_down32::<Fused>(-x.abs()), exact),
            sweep(|x| exp_down32::<Baseline>(-x.abs()), exact),
        ] {
            assert!(worst.0 <= 2.0, "{} ulp at {:e}", worst.0, worst.1);
        }
    }

    #[test]
    fn shares_of_f32() {
        for share in [exp_share32::<Fused>, exp_share32::<Baseline>] {
            for x in (0..u32::MAX).step_by(EACH).map(f32::from_bits).filter(|x| *x <= 0.0) {
                // For `x` below -105, the result is that for -105.
                let (value, x) = (f64::from(share(x)) * 2f64.powi(-64), f64::from(x).max(-105.0));
                let error = (value / x.exp() - 1.0).abs();
                assert!(error <= 1.2e-7 - x * 2f64.powi(-28), "{value:e} of {x:e}");
            }
            assert!(share(f32::NAN).is_nan());
        }
    }

    #[test]
    fn exp_of_f64() {
        let mut worst = (0.0, 0.0);
        let mut x = -760.0_f64;
        while x < 720.0 {
            let mut values = vec![exp64::<Fused>(x), exp64::<Baseline>(x)];
            if x <= 0.0 {
                values.extend([exp_down64::<Fused>(x), exp_down64::<Baseline>(x)]);
                let shares = [exp_share64::<Fused>(x), exp_share64::<Baseline>(x)];
                values.extend(shares.map(|share| share * 2f64.powi(-512)));
            }
            for value in values {
                let exact = x.exp();
                let distance = value.to_bits().abs_diff(exact.to_bits()) as f64;
                if distance > worst.0 {
                    worst = (distance, x);
                }
            }
            x += 0.000_713;
        }
        assert!(worst.0 <= 2.0, "{} ulp at {:e}", worst.0, worst.1);
        assert!(exp64::<Fused>(f64::NAN).is_nan());
        assert_eq!(exp64::<Fused>(f64::INFINITY), f64::INFINITY);
        assert_eq!(exp64::<Fused>(f64::NEG_INFINITY), 0.0);
        assert!(exp_down64::<Fused>(f64::NAN).is_nan());
        assert_eq!(exp_down64::<Fused>(f64::NEG_INFINITY), 0.0);
        assert_eq!(exp_down64::<Fused>(0.0), 1.0);
    }
}
