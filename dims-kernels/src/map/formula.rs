//! Formulas that are written once, over [`Quantity`]: what they compute with can be floats, tensors of one element, or the values of a program.

use core::ops::{Add, Div, Mul, Neg, Sub};
use num_traits::Float;

/// What a formula computes with. Each implementation yields the same bits for the same numbers.
pub trait Quantity:
    Copy + Add<Output = Self> + Sub<Output = Self> + Mul<Output = Self> + Div<Output = Self> + Neg<Output = Self>
{
    /// The result of a comparison.
    type Truth: Copy;
    /// A constant, of the type of this number.
    fn constant(self, value: f64) -> Self;
    /// The square root.
    fn sqrt(self) -> Self;
    /// The cosine.
    fn cos(self) -> Self;
    /// The greatest whole number that is not greater.
    fn floor(self) -> Self;
    /// `self` to the power of `exponent`.
    fn powf(self, exponent: Self) -> Self;
    /// `self < other`
    fn is_less(self, other: Self) -> Self::Truth;
    /// `self <= other`
    fn is_at_most(self, other: Self) -> Self::Truth;
    /// `a` where this is true, else `b`.
    fn choose(is: Self::Truth, a: Self, b: Self) -> Self;
}

macro_rules! floats {
    ($($t:ty)*) => {$(
        impl Quantity for $t {
            type Truth = bool;

            #[inline(always)]
            #[allow(clippy::unnecessary_cast)] // of one of both types
            fn constant(self, value: f64) -> Self {
                value as $t
            }

            #[inline(always)]
            fn sqrt(self) -> Self {
                Float::sqrt(self)
            }

            #[inline(always)]
            fn cos(self) -> Self {
                Float::cos(self)
            }

            #[inline(always)]
            fn floor(self) -> Self {
                Float::floor(self)
            }

            #[inline(always)]
            fn powf(self, exponent: Self) -> Self {
                Float::powf(self, exponent)
            }

            #[inline(always)]
            fn is_less(self, other: Self) -> bool {
                self < other
            }

            #[inline(always)]
            fn is_at_most(self, other: Self) -> bool {
                self <= other
            }

            #[inline(always)]
            fn choose(is: bool, a: Self, b: Self) -> Self {
                if is { a } else { b }
            }
        }
    )*};
}

floats! { f32 f64 }
