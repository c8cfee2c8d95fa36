//! Normalising lines: work along neighbours in memory, for [`scan`](super::scan).

use super::isa::Isa;
use super::line::Line;
use super::scan::Along;
use crate::scalar::{Num, Real};
use num_traits::Float;

/// Subtracts the mean of a line, and divides by its standard deviation: `(x - mean) / sqrt(var + eps)`.
#[derive(Clone, Copy)]
pub struct Standardize<T>(pub T);

impl<T: Real> Along<T> for Standardize<T> {
    const NAME: &'static str = "standardize";

    #[inline(always)]
    fn block<I: Isa>(&self, block: &mut [T], _: usize) {
        self.line::<I>(Line::in_place(block));
    }

    #[inline(always)]
    fn line<I: Isa>(&self, mut line: Line<'_, T>) {
        let Moments { rough, rest, var } = Moments::of(line.elements());
        let factor = Float::recip(Float::sqrt(var + self.0.widen()));
        line.map(|value| T::narrow((value.widen() - rough - rest) * factor));
    }
}

/// As [`Standardize`], then multiplies by a gain and adds a bias, one of each for every element of a line.
#[derive(Clone, Copy)]
pub struct StandardizeAffine<'l, T> {
    pub eps: T,
    pub gain: &'l [T],
    pub bias: &'l [T],
}

impl<T: Real> Along<T> for StandardizeAffine<'_, T> {
    const NAME: &'static str = "standardize, gain and bias";

    #[inline(always)]
    fn block<I: Isa>(&self, block: &mut [T], _: usize) {
        self.line::<I>(Line::in_place(block));
    }

    #[inline(always)]
    fn line<I: Isa>(&self, mut line: Line<'_, T>) {
        let Moments { rough, rest, var } = Moments::of(line.elements());
        let factor = Float::recip(Float::sqrt(var + self.eps.widen()));
        line.map_with(self.gain, self.bias, |value, gain, bias| {
            T::narrow((value.widen() - rough - rest) * factor * gain.widen() + bias.widen())
        });
    }
}

/// Divides a line by the root of its mean square: `x / sqrt(mean of x^2 + eps)`.
#[derive(Clone, Copy)]
pub struct RootMeanSquare<T>(pub T);

impl<T: Real> Along<T> for RootMeanSquare<T> {
    const NAME: &'static str = "rms_norm";

    #[inline(always)]
    fn block<I: Isa>(&self, block: &mut [T], _: usize) {
        self.line::<I>(Line::in_place(block));
    }

    #[inline(always)]
    fn line<I: Isa>(&self, mut line: Line<'_, T>) {
        let elements = line.elements();
        let mean = total(elements, |value| value * value) / count::<T>(elements);
        let factor = Float::recip(Float::sqrt(mean + self.0.widen()));
        line.map(|value| T::narrow(value.widen() * factor));
    }
}

/// Divides a line by its length: `x / max(sqrt(sum of x^2), eps)`.
#[derive(Clone, Copy)]
pub struct UnitLength<T>(pub T);

impl<T: Real> Along<T> for UnitLength<T> {
    const NAME: &'static str = "normalize";

    #[inline(always)]
    fn block<I: Isa>(&self, block: &mut [T], _: usize) {
        self.line::<I>(Line::in_place(block));
    }

    #[inline(always)]
    fn line<I: Isa>(&self, mut line: Line<'_, T>) {
        let elements = line.elements();
        let length = Float::max(Float::sqrt(total(elements, |value| value * value)), self.0.widen());
        line.map(|value| T::narrow(value.widen() / length));
    }
}

/// The mean and the variance of a line.
#[inline(always)]
pub fn moments<T: Real>(line: &[T]) -> (T::Wide, T::Wide) {
    let Moments { rough, rest, var } = Moments::of(line);
    (rough + rest, var)
}

/// The mean of a line in two parts, and its variance.
///
/// Where the mean is large beside the deviation, it cannot be rounded to an element without a loss: that of numbers near 1e8 is a multiple of 8.
/// The differences to the rounded one are exact there, and their mean is the rest.
struct Moments<W> {
    rough: W,
    rest: W,
    var: W,
}

impl<W: Real> Moments<W> {
    #[inline(always)]
    fn of<T: Real<Wide = W>>(line: &[T]) -> Self {
        let n = count::<T>(line);
        let rough = total(line, |value| value) / n;
        let var = total(line, |value| (value - rough) * (value - rough)) / n;
        // Beside a deviation as large as the mean, the rest is less than what is rounded anyway.
        if rough * rough <= var {
            return Moments { rough, rest: W::ZERO, var };
        }
        let rest = total(line, |value| value - rough) / n;
        let var = total(line, |value| (value - rough - rest) * (value - rough - rest)) / n;
        Moments { rough, rest, var }
    }
}

fn count<T: Real>(line: &[T]) -> T::Wide {
    <T::Wide as num_traits::NumCast>::from(line.len()).expect("a float can be any size")
}

/// Accumulators along a line.
pub(super) const LANES: usize = 32;

/// How many elements are added to one accumulator before it is combined with others.
const BLOCK: usize = 64;

/// What `step` makes of all elements of a line, in several accumulators that are combined in the end.
#[inline(always)]
pub(super) fn fold<T: Copy, A: Copy>(
    line: &[T],
    start: A,
    step: impl Fn(A, T) -> A,
    join: impl Fn(A, A) -> A,
) -> A {
    let mut lanes = [start; LANES];
    let (chunks, tail) = line.as_chunks::<LANES>();
    for chunk in chunks {
        for (lane, &value) in lanes.iter_mut().zip(chunk) {
            *lane = step(*lane, value);
        }
    }
    tail.iter().fold(together(lanes, join), |sum, &value| step(sum, value))
}

/// All accumulators combined, halves with halves.
///
/// (It is not inlined: accumulators would be put into registers as it wants them, not as the loops do.)
#[inline(never)]
pub(super) fn together<A: Copy>(mut lanes: [A; LANES], join: impl Fn(A, A) -> A) -> A {
    let mut width = LANES / 2;
    while width > 0 {
        let (left, right) = lanes.split_at_mut(width);
        left.iter_mut().zip(right).for_each(|(left, right)| *left = join(*left, *right));
        width /= 2;
    }
    lanes[0]
}

/// The sum of `f` of the elements of a line. Sums of blocks are combined like the carries of a binary counter, so that rounding grows with
/// the logarithm of the length.
#[inline(always)]
fn total<T: Real>(line: &[T], f: impl Fn(T::Wide) -> T::Wide + Copy) -> T::Wide {
    const LEN: usize = LANES * BLOCK;
    let zero = <T::Wide as Num>::ZERO;
    let sum = |block: &[T]| fold(block, zero, |sum, value: T| sum + f(value.widen()), |a, b| a + b);
    if line.len() <= LEN {
        return sum(line);
    }
    let mut levels = [zero; usize::BITS as usize];
    let mut blocks: usize = 0;
    for block in line.chunks(LEN) {
        let mut sum = sum(block);
        for level in &levels[..blocks.trailing_ones() as usize] {
            sum = *level + sum;
        }
        levels[blocks.trailing_ones() as usize] = sum;
        blocks += 1;
    }
    let levels = levels.iter().enumerate().filter(|(level, _)| blocks >> level & 1 == 1);
    levels.fold(zero, |sum, (_, level)| *level + sum)
}
