//! Activation functions that are made of several steps.

use crate::kernel::isa::Isa;
use crate::scalar::{Analytic, Real};

/// `x/2 * (1 + erf(x / sqrt(2)))`
#[inline(always)]
pub fn gelu<I: Isa, T: Real>(x: T) -> T {
    let half = T::one() / (T::one() + T::one());
    x * half * (T::one() + Real::erf::<I>(x * num_traits::Float::sqrt(half)))
}

/// `ln(1 + e^x)` without overflow.
#[inline(always)]
pub fn softplus<I: Isa, T: Real>(x: T) -> T {
    x.max(T::zero()) + Analytic::exp::<I>(-num_traits::Float::abs(x)).ln_1p()
}
