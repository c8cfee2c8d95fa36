//! One number of several matrices, and arithmetic on it.

// The compiler turns loops over all numbers of a lane into vector instructions if it sees where
// they start and end.
#![allow(clippy::needless_range_loop)]

use crate::machine::isa::Isa;
use crate::scalar::Real;

/// The same number of `L` matrices: one cache line.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(64))]
pub(super) struct Lane<T, const L: usize>(pub(super) [T; L]);

impl<T: Real, const L: usize> Lane<T, L> {
    pub(super) const ZERO: Self = Lane([T::ZERO; L]);
    pub(super) const ONE: Self = Lane([T::ONE; L]);

    /// The same value for all matrices.
    #[cfg_attr(not(unoptimized), inline(always))]
    pub(super) fn all(value: T) -> Self {
        Lane([value; L])
    }

    #[cfg_attr(not(unoptimized), inline(always))]
    pub(super) fn map(self, f: impl Fn(T) -> T) -> Self {
        let mut out = self;
        for lane in 0..L {
            out.0[lane] = f(self.0[lane]);
        }
        out
    }

    #[cfg_attr(not(unoptimized), inline(always))]
    pub(super) fn zip(self, other: Self, f: impl Fn(T, T) -> T) -> Self {
        let mut out = self;
        for lane in 0..L {
            out.0[lane] = f(self.0[lane], other.0[lane]);
        }
        out
    }

    #[cfg_attr(not(unoptimized), inline(always))]
    pub(super) fn plus(self, other: Self) -> Self {
        self.zip(other, |x, y| x + y)
    }

    #[cfg_attr(not(unoptimized), inline(always))]
    pub(super) fn minus(self, other: Self) -> Self {
        self.zip(other, |x, y| x - y)
    }

    #[cfg_attr(not(unoptimized), inline(always))]
    pub(super) fn times(self, other: Self) -> Self {
        self.zip(other, |x, y| x * y)
    }

    #[cfg_attr(not(unoptimized), inline(always))]
    pub(super) fn over(self, other: Self) -> Self {
        self.zip(other, |x, y| x / y)
    }

    /// `self + x * y`
    #[cfg_attr(not(unoptimized), inline(always))]
    pub(super) fn add_product<I: Isa>(self, x: Self, y: Self) -> Self {
        let mut out = self;
        for lane in 0..L {
            out.0[lane] = self.0[lane].add_product::<I>(x.0[lane], y.0[lane]);
        }
        out
    }

    /// `self - x * y`
    #[cfg_attr(not(unoptimized), inline(always))]
    pub(super) fn subtract_product<I: Isa>(self, x: Self, y: Self) -> Self {
        let mut out = self;
        for lane in 0..L {
            out.0[lane] = self.0[lane].add_product::<I>(-x.0[lane], y.0[lane]);
        }
        out
    }

    #[cfg_attr(not(unoptimized), inline(always))]
    pub(super) fn negated(self) -> Self {
        self.map(|x| -x)
    }

    #[cfg_attr(not(unoptimized), inline(always))]
    pub(super) fn abs(self) -> Self {
        self.map(num_traits::Float::abs)
    }

    #[cfg_attr(not(unoptimized), inline(always))]
    pub(super) fn sqrt(self) -> Self {
        self.map(num_traits::Float::sqrt)
    }

    /// 1 where `self > other`, else 0.
    #[cfg_attr(not(unoptimized), inline(always))]
    pub(super) fn greater(self, other: Self) -> Self {
        self.zip(other, |x, y| if x > y { T::ONE } else { T::ZERO })
    }

    /// 1 where the numbers are equal, else 0.
    #[cfg_attr(not(unoptimized), inline(always))]
    pub(super) fn equal(self, other: Self) -> Self {
        self.zip(other, |x, y| if x == y { T::ONE } else { T::ZERO })
    }

    /// The greater numbers. NaN counts as less than all numbers.
    #[cfg_attr(not(unoptimized), inline(always))]
    pub(super) fn greatest(self, other: Self) -> Self {
        self.zip(other, |x, y| if y > x { y } else { x })
    }

    /// `then` where `self` is not 0, else `otherwise`.
    #[cfg_attr(not(unoptimized), inline(always))]
    pub(super) fn choose(self, then: Self, otherwise: Self) -> Self {
        let mut out = self;
        for lane in 0..L {
            out.0[lane] = if self.0[lane] != T::ZERO { then.0[lane] } else { otherwise.0[lane] };
        }
        out
    }

    /// Whether a condition holds for all matrices.
    #[cfg_attr(not(unoptimized), inline(always))]
    pub(super) fn every(self, f: impl Fn(T) -> bool) -> bool {
        let mut all = true;
        for lane in 0..L {
            all &= f(self.0[lane]);
        }
        all
    }

    /// Whether all numbers are 0.
    #[cfg_attr(not(unoptimized), inline(always))]
    pub(super) fn is_zero(self) -> bool {
        self.every(|x| x == T::ZERO)
    }
}

/// A number of a row or column.
#[cfg_attr(not(unoptimized), inline(always))]
pub(super) fn count_lane<T: Real, const L: usize>(count: usize) -> Lane<T, L> {
    Lane::all(num_traits::NumCast::from(count).expect("a float can be any size"))
}

/// Whether all numbers are finite.
#[cfg_attr(not(unoptimized), inline(always))]
pub(super) fn are_finite<T: Real, const L: usize>(all: &[Lane<T, L>]) -> bool {
    // A product with 0 is 0 for finite numbers, else NaN.
    let sum = all.iter().fold(Lane::<T, L>::ZERO, |sum, own| sum.plus(own.map(|x| x * T::ZERO)));
    sum.is_zero()
}

/// The numbers of lanes.
pub(super) fn numbers<T, const L: usize>(lanes: &[Lane<T, L>]) -> &[T] {
    const { assert!(size_of::<Lane<T, L>>() == L * size_of::<T>()) };
    // SAFETY: a lane is an array of `L` numbers, and has no padding, by the assertion.
    unsafe { core::slice::from_raw_parts(lanes.as_ptr().cast(), lanes.len() * L) }
}

/// The same, for writing.
pub(super) fn numbers_mut<T, const L: usize>(lanes: &mut [Lane<T, L>]) -> &mut [T] {
    const { assert!(size_of::<Lane<T, L>>() == L * size_of::<T>()) };
    // SAFETY: as above; any numbers are a lane.
    unsafe { core::slice::from_raw_parts_mut(lanes.as_mut_ptr().cast(), lanes.len() * L) }
}
