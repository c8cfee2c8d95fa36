//! Normalization of lines: operations along contiguous elements, for [`scan`](crate::scan).

use crate::error::Error;
use crate::machine::isa::{Isa, Task, dispatch};
use crate::machine::threads;
use crate::ops::code::{LineWork, Number};
use crate::ops::special::small;
use crate::reduce::fold::{LANES, VECTOR, each, flat, fold, lanes, together};
use crate::scalar::{Num, Real};
use crate::scan::line::Line;
use crate::scan::{LineOp, ScanInput, along};
use alloc::vec::Vec;
use num_traits::Float;

along!(standardize_blocks, standardize_memory, Real, Standardize<T>);
along!(standardize_affine_blocks, standardize_affine_memory, Real, StandardizeAffine<'a, T>);
along!(root_mean_square_blocks, root_mean_square_memory, Real, RootMeanSquare<T>);
along!(unit_length_blocks, unit_length_memory, Real, UnitLength<T>);

#[cfg(feature = "std")] // for pull-backs
impl<T: Real> Standardize<T> {
    /// `1 / sqrt(var + eps)`
    #[cfg_attr(not(unoptimized), inline(always))]
    pub(super) fn factor<I: Isa>(&self, line: &[T]) -> T::Wide {
        Moments::of::<I, T>(line).standard(self.0.widen()).factor
    }
}

impl<T: Real> RootMeanSquare<T> {
    /// `1 / sqrt(mean of x^2 + eps)`
    #[cfg_attr(not(unoptimized), inline(always))]
    pub(super) fn factor<I: Isa>(&self, line: &[T]) -> T::Wide {
        let mean = total::<I, T, _>(line, Squares) / count::<T>(line);
        Float::recip(Float::sqrt(mean + self.0.widen()))
    }
}

/// `sqrt(sum of x^2)`
#[cfg_attr(not(unoptimized), inline(always))]
pub(super) fn length<I: Isa, T: Real>(line: &[T]) -> T::Wide {
    Float::sqrt(total::<I, T, _>(line, Squares))
}

/// Subtracts the mean of a line, and divides by its standard deviation:
/// `(x - mean) / sqrt(var + eps)`.
#[derive(Clone, Copy)]
pub struct Standardize<T>(pub T);

impl<T: Real> LineOp<T> for Standardize<T> {
    const NAME: &'static str = "standardize";
    const NEIGHBORS: bool = true;

    fn derivative(&self) -> LineWork {
        LineWork::Standardize { eps: Number::float(self.0) }
    }

    #[cfg_attr(not(unoptimized), inline(always))]
    fn block<I: Isa>(&self, block: &mut [T], _: usize) {
        self.line::<I>(Line::in_place(block));
    }

    #[cfg_attr(not(unoptimized), inline(always))]
    fn line<I: Isa>(&self, mut line: Line<'_, T>) {
        let standard = Moments::of::<I, T>(line.elements()).standard(self.0.widen());
        line.map(|value| T::narrow(standard.of::<I>(value.widen())));
    }

    #[cfg_attr(not(unoptimized), inline(always))]
    fn blocks(self, data: &mut [T], block: usize, inner: usize) {
        standardize_blocks(self, data, block, inner);
    }

    #[cfg_attr(not(unoptimized), inline(always))]
    fn collect_memory(self, memory: ScanInput<'_, T>) -> Result<Vec<T>, Error> {
        standardize_memory(self, memory)
    }
}

/// Like [`Standardize`], but then multiplies by a gain and adds a bias, with one of each for every
/// element of a line.
#[derive(Clone, Copy)]
pub struct StandardizeAffine<'l, T> {
    /// Added to the variance.
    pub eps: T,
    /// A factor for each element of a line.
    pub gain: &'l [T],
    /// A term for each element of a line.
    pub bias: &'l [T],
}

impl<T: Real> LineOp<T> for StandardizeAffine<'_, T> {
    const NAME: &'static str = "standardize, gain and bias";
    const NEIGHBORS: bool = true;

    #[cfg_attr(not(unoptimized), inline(always))]
    fn block<I: Isa>(&self, block: &mut [T], _: usize) {
        self.line::<I>(Line::in_place(block));
    }

    #[cfg_attr(not(unoptimized), inline(always))]
    fn line<I: Isa>(&self, mut line: Line<'_, T>) {
        let standard = Moments::of::<I, T>(line.elements()).standard(self.eps.widen());
        line.map_with(self.gain, self.bias, |value, gain, bias| {
            // Not with `add_product`: gradients and programs round the product, in a separate step.
            T::narrow(standard.of::<I>(value.widen()) * gain.widen() + bias.widen())
        });
    }

    #[cfg_attr(not(unoptimized), inline(always))]
    fn blocks(self, data: &mut [T], block: usize, inner: usize) {
        standardize_affine_blocks(self, data, block, inner);
    }

    #[cfg_attr(not(unoptimized), inline(always))]
    fn collect_memory(self, memory: ScanInput<'_, T>) -> Result<Vec<T>, Error> {
        standardize_affine_memory(self, memory)
    }
}

/// Divides a line by its root mean square: `x / sqrt(mean of x^2 + eps)`.
#[derive(Clone, Copy)]
pub struct RootMeanSquare<T>(pub T);

impl<T: Real> LineOp<T> for RootMeanSquare<T> {
    const NAME: &'static str = "rms_norm";
    const NEIGHBORS: bool = true;

    fn derivative(&self) -> LineWork {
        LineWork::RootMeanSquare { eps: Number::float(self.0) }
    }

    #[cfg_attr(not(unoptimized), inline(always))]
    fn block<I: Isa>(&self, block: &mut [T], _: usize) {
        self.line::<I>(Line::in_place(block));
    }

    #[cfg_attr(not(unoptimized), inline(always))]
    fn line<I: Isa>(&self, mut line: Line<'_, T>) {
        let factor = self.factor::<I>(line.elements());
        line.map(|value| T::narrow(value.widen() * factor));
    }

    #[cfg_attr(not(unoptimized), inline(always))]
    fn blocks(self, data: &mut [T], block: usize, inner: usize) {
        root_mean_square_blocks(self, data, block, inner);
    }

    #[cfg_attr(not(unoptimized), inline(always))]
    fn collect_memory(self, memory: ScanInput<'_, T>) -> Result<Vec<T>, Error> {
        root_mean_square_memory(self, memory)
    }
}

/// Divides a line by its length: `x / max(sqrt(sum of x^2), eps)`.
#[derive(Clone, Copy)]
pub struct UnitLength<T>(pub T);

impl<T: Real> LineOp<T> for UnitLength<T> {
    const NAME: &'static str = "normalize";
    const NEIGHBORS: bool = true;

    fn derivative(&self) -> LineWork {
        LineWork::UnitLength { eps: Number::float(self.0) }
    }

    #[cfg_attr(not(unoptimized), inline(always))]
    fn block<I: Isa>(&self, block: &mut [T], _: usize) {
        self.line::<I>(Line::in_place(block));
    }

    #[cfg_attr(not(unoptimized), inline(always))]
    fn line<I: Isa>(&self, mut line: Line<'_, T>) {
        let (length, least) = (length::<I, T>(line.elements()), self.0.widen());
        // Not with `max`, which returns the number if the other operand is NaN.
        let length = if length < least { least } else { length };
        line.map(|value| T::narrow(value.widen() / length));
    }

    #[cfg_attr(not(unoptimized), inline(always))]
    fn blocks(self, data: &mut [T], block: usize, inner: usize) {
        unit_length_blocks(self, data, block, inner);
    }

    #[cfg_attr(not(unoptimized), inline(always))]
    fn collect_memory(self, memory: ScanInput<'_, T>) -> Result<Vec<T>, Error> {
        unit_length_memory(self, memory)
    }
}

/// Runs [`Standardize`] along each line of `data`, on at most `threads` threads, and writes the
/// mean and the variance of each line to `mean` and `var`, which have one element for each line.
/// All lines have the same length.
pub fn standardize_with_moments<T: Real>(data: &mut [T], [mean, var]: [&mut [T]; 2], eps: T, threads: usize) {
    let lines = mean.len();
    if lines == 0 {
        return;
    }
    let each = lines.div_ceil(threads.max(1));
    let moments = mean.chunks_mut(each).zip(var.chunks_mut(each));
    let len = data.len() / lines;
    let mut rest = data;
    let parts = moments.map(|(mean, var)| {
        let (data, behind) = core::mem::take(&mut rest).split_at_mut(mean.len() * len);
        rest = behind;
        StandardizeTask { data, len, mean, var, eps }
    });
    threads::each(parts.collect(), dispatch);
}

/// Writes the mean and the variance of each line, with the same bits as
/// [`standardize_with_moments`].
#[cfg(feature = "std")] // for steps that run again
pub fn moments<T: Real>(data: &[T], [mean, var]: [&mut [T]; 2], threads: usize) {
    let lines = mean.len();
    if lines == 0 {
        return;
    }
    let each = lines.div_ceil(threads.max(1));
    let len = data.len() / lines;
    let parts = mean.chunks_mut(each).zip(var.chunks_mut(each)).enumerate();
    let parts = parts.map(|(at, (mean, var))| {
        let data = &data[at * each * len..][..mean.len() * len];
        MomentsTask { data, len, mean, var }
    });
    threads::each(parts.collect(), dispatch);
}

#[cfg(feature = "std")]
struct MomentsTask<'d, T> {
    data: &'d [T],
    len: usize,
    mean: &'d mut [T],
    var: &'d mut [T],
}

#[cfg(feature = "std")]
impl<T: Real> Task for MomentsTask<'_, T> {
    type Out = ();
    const WIDE: bool = true;

    #[cfg_attr(not(unoptimized), inline(always))]
    fn run<I: Isa>(self) {
        let MomentsTask { data, len, mean, var } = self;
        for (at, (mean, var)) in mean.iter_mut().zip(var).enumerate() {
            (*mean, *var) = Moments::of::<I, T>(&data[at * len..][..len]).narrow();
        }
    }
}

struct StandardizeTask<'d, T> {
    data: &'d mut [T],
    len: usize,
    mean: &'d mut [T],
    var: &'d mut [T],
    eps: T,
}

impl<T: Real> Task for StandardizeTask<'_, T> {
    type Out = ();
    const WIDE: bool = true;

    #[cfg_attr(not(unoptimized), inline(always))]
    fn run<I: Isa>(self) {
        let StandardizeTask { data, len, mean, var, eps } = self;
        for (at, (mean, var)) in mean.iter_mut().zip(var).enumerate() {
            let line = &mut data[at * len..(at + 1) * len];
            let moments = Moments::of::<I, T>(line);
            (*mean, *var) = moments.narrow();
            let standard = moments.standard(eps.widen());
            for value in line {
                *value = T::narrow(standard.of::<I>(value.widen()));
            }
        }
    }
}

/// The mean of a line in two parts, and its variance.
///
/// If the mean is large compared with the deviation, one float cannot hold it precisely enough:
/// near 1e8, `f32`s are multiples of 8. But the differences of the elements from a number near the
/// mean, `rough`, are then exact, and `rest` is their mean.
struct Moments<W> {
    rough: W,
    rest: W,
    var: W,
}

impl<W: Real> Moments<W> {
    #[cfg_attr(not(unoptimized), inline(always))]
    fn of<I: Isa, T: Real<Wide = W>>(line: &[T]) -> Self {
        let Some(&first) = line.first() else {
            return Moments { rough: W::zero(), rest: W::zero(), var: W::zero() / W::zero() };
        };
        let moments = Self::around::<I, T>(line, first.widen());
        // The variance loses precision if the square of `rest` is much larger.
        let four: W = small(4);
        if moments.rest * moments.rest <= four * moments.var {
            return moments;
        }
        Self::around::<I, T>(line, moments.rough + moments.rest)
    }

    /// The moments, computed from the differences of the elements from `rough`.
    #[cfg_attr(not(unoptimized), inline(always))]
    fn around<I: Isa, T: Real<Wide = W>>(line: &[T], rough: W) -> Self {
        let n = count::<T>(line);
        let [sum, squares] = total::<I, T, _>(line, Differences(rough));
        let rest = sum / n;
        // The squares can overflow although the elements do not. The difference below could then be
        // NaN.
        let is_beyond = squares == W::infinity() && rest.is_finite();
        let var = if is_beyond { squares } else { squares / n - rest * rest };
        // Rounding can make the variance negative. NaN is kept.
        let var = if var < W::zero() { W::zero() } else { var };
        Moments { rough, rest, var }
    }

    /// The mean and the variance.
    #[cfg_attr(not(unoptimized), inline(always))]
    fn narrow<T: Real<Wide = W>>(&self) -> (T, T) {
        (T::narrow(self.rough + self.rest), T::narrow(self.var))
    }

    /// The transformation to mean 0 and variance 1, up to `eps`.
    #[cfg_attr(not(unoptimized), inline(always))]
    fn standard(self, eps: W) -> Standard<W> {
        let factor = Float::recip(Float::sqrt(self.var + eps));
        Standard { rough: self.rough, factor, shift: -self.rest * factor }
    }
}

/// `(x - rough) * factor + shift`
#[derive(Clone, Copy)]
struct Standard<W> {
    rough: W,
    factor: W,
    shift: W,
}

impl<W: Real> Standard<W> {
    #[cfg_attr(not(unoptimized), inline(always))]
    fn of<I: Isa>(self, value: W) -> W {
        self.shift.add_product::<I>(value - self.rough, self.factor)
    }
}

pub(super) fn count<T: Real>(line: &[T]) -> T::Wide {
    <T::Wide as num_traits::NumCast>::from(line.len()).expect("every size can be rounded to a float")
}

/// How many elements are added to an accumulator before it is combined with others.
const NORM_BLOCK: usize = 64;

/// The functions of each element that are summed along a line.
trait Summed<T: Real> {
    /// One sum or several.
    type Sum: Copy;
    const ZERO: Self::Sum;
    /// The sum over a block.
    fn block<I: Isa>(&self, block: &[T]) -> Self::Sum;
    fn add(a: Self::Sum, b: Self::Sum) -> Self::Sum;
}

/// The squares.
struct Squares;

impl<T: Real> Summed<T> for Squares {
    type Sum = T::Wide;
    const ZERO: T::Wide = T::Wide::ZERO;

    #[cfg_attr(not(unoptimized), inline(always))]
    fn block<I: Isa>(&self, block: &[T]) -> T::Wide {
        let step = |sum: T::Wide, value: T| sum.add_product::<I>(value.widen(), value.widen());
        fold(block, T::Wide::ZERO, step, |a, b| a + b)
    }

    #[cfg_attr(not(unoptimized), inline(always))]
    fn add(a: T::Wide, b: T::Wide) -> T::Wide {
        a + b
    }
}

/// The differences from a number, and their squares.
struct Differences<W>(W);

impl<T: Real> Summed<T> for Differences<T::Wide> {
    type Sum = [T::Wide; 2];
    const ZERO: Self::Sum = [T::Wide::ZERO; 2];

    #[cfg_attr(not(unoptimized), inline(always))]
    fn block<I: Isa>(&self, block: &[T]) -> Self::Sum {
        let zero = lanes(T::Wide::ZERO);
        let (mut sums, mut squares) = (zero, zero);
        let (chunks, tail) = block.as_chunks::<LANES>();
        for chunk in chunks {
            for (at, values) in chunk.as_chunks::<VECTOR>().0.iter().enumerate() {
                let differences = values.map(|value| value.widen() - self.0);
                sums[at] = each(sums[at], differences, |sum, difference| sum + difference);
                squares[at] = each(squares[at], differences, |sum, difference| {
                    sum.add_product::<I>(difference, difference)
                });
            }
        }
        let (mut sums, mut squares) = (flat(sums), flat(squares));
        for ((sum, square), &value) in sums.iter_mut().zip(&mut squares).zip(tail) {
            let difference = value.widen() - self.0;
            *sum = *sum + difference;
            *square = square.add_product::<I>(difference, difference);
        }
        [together(sums, |a, b| a + b), together(squares, |a, b| a + b)]
    }

    #[cfg_attr(not(unoptimized), inline(always))]
    fn add(a: Self::Sum, b: Self::Sum) -> Self::Sum {
        [a[0] + b[0], a[1] + b[1]]
    }
}

/// The sum over a line. Sums of blocks are combined like the carries of a binary counter, so
/// rounding errors grow with the logarithm of the length.
#[cfg_attr(not(unoptimized), inline(always))]
fn total<I: Isa, T: Real, S: Summed<T>>(line: &[T], summed: S) -> S::Sum {
    const LEN: usize = LANES * NORM_BLOCK;
    if line.len() <= LEN {
        return summed.block::<I>(line);
    }
    let mut levels = [S::ZERO; usize::BITS as usize];
    let mut blocks: usize = 0;
    for block in line.chunks(LEN) {
        let mut sum = summed.block::<I>(block);
        for &level in &levels[..blocks.trailing_ones() as usize] {
            sum = S::add(level, sum);
        }
        levels[blocks.trailing_ones() as usize] = sum;
        blocks += 1;
    }
    let levels = levels.iter().enumerate().filter(|(level, _)| blocks >> level & 1 == 1);
    levels.fold(S::ZERO, |sum, (_, &level)| S::add(level, sum))
}
