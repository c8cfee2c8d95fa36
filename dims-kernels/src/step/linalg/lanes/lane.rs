//! The same element of several matrices, and arithmetic on it.

use crate::scalar::{Num, Real};

/// The same element of several matrices.
///
/// Comparisons return masks, for [`choose`](Lane::choose), [`and`](Lane::and),
/// [`but_not`](Lane::but_not), [`or`](Lane::or) and [`is_nowhere`](Lane::is_nowhere).
pub(in crate::step::linalg) trait Lane: Copy {
    /// The type of the numbers.
    type Elem: Real;
    /// How many numbers there are.
    const COUNT: usize;

    /// The same value for all matrices.
    fn all(value: Self::Elem) -> Self;

    fn plus(self, other: Self) -> Self;

    fn minus(self, other: Self) -> Self;

    fn times(self, other: Self) -> Self;

    fn over(self, other: Self) -> Self;

    /// `self + x * y`
    fn add_product(self, x: Self, y: Self) -> Self;

    /// `self - x * y`
    fn subtract_product(self, x: Self, y: Self) -> Self;

    fn sqrt(self) -> Self;

    fn abs(self) -> Self;

    fn negated(self) -> Self;

    /// Where `self > other`.
    fn greater(self, other: Self) -> Self;

    /// Where `self == other`.
    fn equal(self, other: Self) -> Self;

    /// `then` where the mask holds, `otherwise` elsewhere.
    fn choose(self, then: Self, otherwise: Self) -> Self;

    /// Where both masks hold.
    fn and(self, other: Self) -> Self;

    /// Where this mask holds, and the other one does not.
    fn but_not(self, other: Self) -> Self;

    /// Where at least one of two masks holds.
    fn or(self, other: Self) -> Self;

    /// Whether a mask holds for no matrix.
    fn is_nowhere(self) -> bool;
}

#[cfg_attr(not(unoptimized), inline(always))]
pub(super) fn zero<V: Lane>() -> V {
    V::all(<V::Elem as Num>::ZERO)
}

#[cfg_attr(not(unoptimized), inline(always))]
pub(super) fn one<V: Lane>() -> V {
    V::all(<V::Elem as Num>::ONE)
}

/// The same integer, such as a size or the index of a row, for all matrices.
#[cfg_attr(not(unoptimized), inline(always))]
pub(super) fn count_lane<V: Lane>(count: usize) -> V {
    V::all(num_traits::NumCast::from(count).expect("every size can be rounded to a float"))
}

/// The greater number for each matrix. NaN in `other` is ignored; NaN in `own` remains.
#[cfg_attr(not(unoptimized), inline(always))]
pub(super) fn greatest<V: Lane>(own: V, other: V) -> V {
    other.greater(own).choose(other, own)
}

/// `magnitude` with the opposite sign where `sign < 0`.
#[cfg_attr(not(unoptimized), inline(always))]
pub(super) fn signed<V: Lane>(magnitude: V, sign: V) -> V {
    zero::<V>().greater(sign).choose(magnitude.negated(), magnitude)
}

/// Whether all numbers are finite.
#[cfg_attr(not(unoptimized), inline(always))]
pub(super) fn are_finite<V: Lane>(all: &[V]) -> bool {
    // A product with 0 is 0 for finite numbers, otherwise NaN.
    let zero = zero::<V>();
    let sum = all.iter().fold(zero, |sum, own| sum.add_product(*own, zero));
    holds_everywhere(sum.equal(zero))
}

/// Whether a mask holds for all matrices.
#[cfg_attr(not(unoptimized), inline(always))]
pub(super) fn holds_everywhere<V: Lane>(mask: V) -> bool {
    zero::<V>().equal(zero()).but_not(mask).is_nowhere()
}

/// The numbers of lanes: `COUNT` for each.
#[cfg_attr(not(unoptimized), inline(always))]
pub(super) fn numbers<V: Lane>(lanes: &[V]) -> &[V::Elem] {
    const { assert!(size_of::<V>() == V::COUNT * size_of::<V::Elem>()) };
    // SAFETY: a lane consists of `COUNT` numbers and has no padding, by the assertion and the
    // definitions of both types of lanes.
    unsafe { core::slice::from_raw_parts(lanes.as_ptr().cast(), lanes.len() * V::COUNT) }
}

/// Like [`numbers`], but mutable.
#[cfg_attr(not(unoptimized), inline(always))]
pub(super) fn numbers_mut<V: Lane>(lanes: &mut [V]) -> &mut [V::Elem] {
    const { assert!(size_of::<V>() == V::COUNT * size_of::<V::Elem>()) };
    // SAFETY: as above. Any `COUNT` numbers are a valid lane.
    unsafe { core::slice::from_raw_parts_mut(lanes.as_mut_ptr().cast(), lanes.len() * V::COUNT) }
}

/// The lane's number for one matrix.
#[cfg_attr(not(unoptimized), inline(always))]
pub(super) fn number<V: Lane>(own: &V, matrix: usize) -> V::Elem {
    numbers(core::slice::from_ref(own))[matrix]
}

/// Sets the lane's number for one matrix.
#[cfg_attr(not(unoptimized), inline(always))]
pub(super) fn set_number<V: Lane>(own: &mut V, matrix: usize, value: V::Elem) {
    numbers_mut(core::slice::from_mut(own))[matrix] = value;
}

/// A lane without explicit vector instructions. A mask is -1 where it holds, otherwise 0.
#[derive(Clone, Copy)]
pub(in crate::step::linalg) struct ArrayLane<T, const L: usize>([T; L]);

impl<T: Real, const L: usize> ArrayLane<T, L> {
    #[cfg_attr(not(unoptimized), inline(always))]
    fn zip(self, other: Self, f: impl Fn(T, T) -> T) -> Self {
        let mut out = self;
        for (own, other) in out.0.iter_mut().zip(other.0) {
            *own = f(*own, other);
        }
        out
    }

    #[cfg_attr(not(unoptimized), inline(always))]
    fn map(self, f: impl Fn(T) -> T) -> Self {
        self.zip(self, |own, _| f(own))
    }
}

#[cfg_attr(not(unoptimized), inline(always))]
fn mask<T: Real>(holds: bool) -> T {
    if holds { -T::ONE } else { T::ZERO }
}

impl<T: Real, const L: usize> Lane for ArrayLane<T, L> {
    type Elem = T;
    const COUNT: usize = L;

    #[cfg_attr(not(unoptimized), inline(always))]
    fn all(value: T) -> Self {
        ArrayLane([value; L])
    }

    #[cfg_attr(not(unoptimized), inline(always))]
    fn plus(self, other: Self) -> Self {
        self.zip(other, |x, y| x + y)
    }

    #[cfg_attr(not(unoptimized), inline(always))]
    fn minus(self, other: Self) -> Self {
        self.zip(other, |x, y| x - y)
    }

    #[cfg_attr(not(unoptimized), inline(always))]
    fn times(self, other: Self) -> Self {
        self.zip(other, |x, y| x * y)
    }

    #[cfg_attr(not(unoptimized), inline(always))]
    fn over(self, other: Self) -> Self {
        self.zip(other, |x, y| x / y)
    }

    #[cfg_attr(not(unoptimized), inline(always))]
    fn add_product(self, x: Self, y: Self) -> Self {
        self.plus(x.times(y))
    }

    #[cfg_attr(not(unoptimized), inline(always))]
    fn subtract_product(self, x: Self, y: Self) -> Self {
        self.minus(x.times(y))
    }

    #[cfg_attr(not(unoptimized), inline(always))]
    fn sqrt(self) -> Self {
        self.map(num_traits::Float::sqrt)
    }

    #[cfg_attr(not(unoptimized), inline(always))]
    fn abs(self) -> Self {
        self.map(num_traits::Float::abs)
    }

    #[cfg_attr(not(unoptimized), inline(always))]
    fn negated(self) -> Self {
        self.map(|own| -own)
    }

    #[cfg_attr(not(unoptimized), inline(always))]
    fn greater(self, other: Self) -> Self {
        self.zip(other, |x, y| mask(x > y))
    }

    #[cfg_attr(not(unoptimized), inline(always))]
    fn equal(self, other: Self) -> Self {
        self.zip(other, |x, y| mask(x == y))
    }

    #[cfg_attr(not(unoptimized), inline(always))]
    fn choose(self, then: Self, otherwise: Self) -> Self {
        let mut out = otherwise;
        for ((own, mask), then) in out.0.iter_mut().zip(self.0).zip(then.0) {
            *own = if mask < T::ZERO { then } else { *own };
        }
        out
    }

    #[cfg_attr(not(unoptimized), inline(always))]
    fn and(self, other: Self) -> Self {
        self.zip(other, |x, y| mask(x < T::ZERO && y < T::ZERO))
    }

    #[cfg_attr(not(unoptimized), inline(always))]
    fn but_not(self, other: Self) -> Self {
        self.zip(other, |x, y| mask(x < T::ZERO && y >= T::ZERO))
    }

    #[cfg_attr(not(unoptimized), inline(always))]
    fn or(self, other: Self) -> Self {
        self.zip(other, |x, y| mask(x < T::ZERO || y < T::ZERO))
    }

    #[cfg_attr(not(unoptimized), inline(always))]
    fn is_nowhere(self) -> bool {
        self.0.iter().all(|own| *own >= T::ZERO)
    }
}
