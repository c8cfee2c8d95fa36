//! Special functions that the standard library does not have.

use crate::scalar::{Analytic, Real};

/// The error function, `2 / sqrt(pi) * integral from 0 to x of exp(-t^2) dt`, to about one unit in the last place of
/// `f64` (Maclaurin series below 2, the continued fraction of the complement above).
pub fn erf(x: f64) -> f64 {
    if x.is_nan() {
        return x;
    }
    let a = x.abs();
    if a < 2.0 {
        // erf(x) = 2/sqrt(pi) exp(-x^2) sum_n 2^n x^(2n+1) / (1 3 5 .. (2n+1)): all terms have one sign.
        let mut term = a;
        let mut sum = a;
        let mut n = 0.0;
        while term > sum * 1e-17 {
            n += 1.0;
            term *= 2.0 * a * a / (2.0 * n + 1.0);
            sum += term;
        }
        (std::f64::consts::FRAC_2_SQRT_PI * (-a * a).exp() * sum).copysign(x)
    } else if a < 6.0 {
        // erfc(x) = exp(-x^2) / sqrt(pi) * 1/(x + (1/2)/(x + 1/(x + (3/2)/(x + ..)))), from the inside out.
        let mut fraction = a;
        for n in (1..=60).rev() {
            fraction = a + 0.5 * f64::from(n) / fraction;
        }
        let complement = (-a * a).exp() / (std::f64::consts::PI.sqrt() * fraction);
        (1.0 - complement).copysign(x)
    } else {
        1.0_f64.copysign(x)
    }
}

/// `x/2 * (1 + erf(x / sqrt(2)))`
#[inline(always)]
pub fn gelu<T: Real>(x: T) -> T {
    let half = T::one() / (T::one() + T::one());
    x * half * (T::one() + Real::erf(x * num_traits::Float::sqrt(half)))
}

/// `ln(1 + exp(x))` without overflow.
#[inline(always)]
pub fn softplus<T: Real>(x: T) -> T {
    x.max(T::zero()) + Analytic::exp(-num_traits::Float::abs(x)).ln_1p()
}
