//! Pull-backs of operations along contiguous lines: passes over each line for its sums, and one for
//! the result, while the line is in the cache.

use crate::machine::isa::{Isa, Task, dispatch};
use crate::machine::threads;
use crate::ops::code::LineWork;
use crate::reduce::fold::{LANES, fold, together};
use crate::scalar::{Num, Real};
use crate::scan::norm::{RootMeanSquare, Standardize, count, length};
use num_traits::{Float, NumCast};

/// Contiguous lines: the operand and the results.
#[derive(Clone, Copy)]
pub(crate) struct ForwardLines<'a, T> {
    /// The operand, if [the pull-back needs it](needs_input); otherwise empty.
    pub x: &'a [T],
    /// The results.
    pub y: &'a [T],
    /// The number of elements of a line.
    pub len: usize,
    /// The operation.
    pub work: LineWork,
}

/// Whether a pull-back needs the operand in addition to the result.
pub(crate) fn needs_input(work: LineWork) -> bool {
    !matches!(work, LineWork::Softmax { .. })
}

/// Replaces the cotangents of the results by those of the operand. Lines of cotangents that are all
/// 0 are not changed.
///
/// # Panics
///
/// If `len` is 0, if the slices do not consist of equally many whole lines, or if the operation is
/// neither a softmax nor a normalization.
pub(crate) fn pull_back<T: Real>(lines: ForwardLines<'_, T>, cotangents: &mut [T]) {
    let ForwardLines { x, y, len, .. } = lines;
    let all = y.len();
    assert!(len > 0 && all.is_multiple_of(len) && cotangents.len() == all, "the lines are whole");
    assert!(!needs_input(lines.work) || x.len() == all, "the lines are whole");
    let part = (all / len).div_ceil(threads::parts(all)).max(1) * len;
    let parts = cotangents.chunks_mut(part).enumerate().map(|(at, dy)| {
        let range = at * part..at * part + dy.len();
        let x = if x.is_empty() { x } else { &x[range.clone()] };
        PullBackTask { lines: ForwardLines { x, y: &y[range], ..lines }, dy }
    });
    threads::each(parts.collect(), dispatch);
}

struct PullBackTask<'a, 'o, T> {
    lines: ForwardLines<'a, T>,
    dy: &'o mut [T],
}

impl<T: Real> Task for PullBackTask<'_, '_, T> {
    type Out = ();
    const WIDE: bool = true;

    #[cfg_attr(not(unoptimized), inline(always))]
    fn run<I: Isa>(self) {
        let ForwardLines { x, y, len, work } = self.lines;
        for (at, dy) in self.dy.chunks_exact_mut(len).enumerate() {
            let line = at * len..(at + 1) * len;
            let y = &y[line.clone()];
            let x = if x.is_empty() { x } else { &x[line] };
            // A line that nothing depends on has no gradient, even if its elements are infinite or
            // NaN.
            if dy.iter().all(|&dy| dy == T::ZERO) {
                continue;
            }
            let eps = |eps: f64| <T as NumCast>::from(eps).unwrap_or_else(T::nan);
            match work {
                LineWork::Softmax { log: false } => {
                    let total = dot::<I, T>(y, dy);
                    replace(dy, y, |y, dy| y * (dy - total));
                }
                LineWork::Softmax { log: true } => {
                    let total = sum::<T>(dy);
                    // The shares are at most 1, so their logarithms are at most 0.
                    replace(dy, y, |y, dy| dy - total * y.exp_down::<I>());
                }
                LineWork::Standardize { eps: own } => {
                    let factor = Standardize(eps(own)).factor::<I>(x);
                    let n = count::<T>(x);
                    let (mean, along) = (sum::<T>(dy) / n, dot::<I, T>(y, dy) / n);
                    replace(dy, y, |y, dy| (dy - mean - y * along) * factor);
                }
                LineWork::RootMeanSquare { eps: own } => {
                    let factor = RootMeanSquare(eps(own)).factor::<I>(x);
                    let along = dot::<I, T>(y, dy) / count::<T>(x);
                    replace(dy, y, |y, dy| (dy - y * along) * factor);
                }
                LineWork::UnitLength { eps: own } => {
                    let (length, least) = (length::<I, T>(x), eps(own).widen());
                    if length > least || length.is_nan() {
                        let along = dot::<I, T>(y, dy);
                        replace(dy, y, |y, dy| (dy - y * along) / length);
                    } else {
                        replace(dy, y, |_, dy| dy / least);
                    }
                }
                _ => unreachable!("scans have separate rules"),
            }
        }
    }
}

/// Replaces each cotangent by `f` of the result and the cotangent.
#[cfg_attr(not(unoptimized), inline(always))]
fn replace<T: Real>(dy: &mut [T], y: &[T], f: impl Fn(T::Wide, T::Wide) -> T::Wide) {
    for (dy, &y) in dy.iter_mut().zip(y) {
        *dy = T::narrow(f(y.widen(), dy.widen()));
    }
}

/// How many elements are added to accumulators before these are combined.
const BLOCK: usize = 64 * LANES;

#[cfg_attr(not(unoptimized), inline(always))]
fn sum<T: Real>(line: &[T]) -> T::Wide {
    let block = |block: &[T]| fold(block, T::Wide::ZERO, |sum, value| sum + value.widen(), |a, b| a + b);
    line.chunks(BLOCK).fold(T::Wide::ZERO, |total, line| total + block(line))
}

#[cfg_attr(not(unoptimized), inline(always))]
fn dot<I: Isa, T: Real>(a: &[T], b: &[T]) -> T::Wide {
    let mut total = T::Wide::ZERO;
    for (a, b) in a.chunks(BLOCK).zip(b.chunks(BLOCK)) {
        let mut lanes = [T::Wide::ZERO; LANES];
        let ((a, a_rest), (b, b_rest)) = (a.as_chunks::<LANES>(), b.as_chunks::<LANES>());
        for (a, b) in a.iter().zip(b) {
            for ((lane, a), b) in lanes.iter_mut().zip(a).zip(b) {
                *lane = lane.add_product::<I>(a.widen(), b.widen());
            }
        }
        for ((lane, a), b) in lanes.iter_mut().zip(a_rest).zip(b_rest) {
            *lane = lane.add_product::<I>(a.widen(), b.widen());
        }
        total = total + together(lanes, |a, b| a + b);
    }
    total
}
