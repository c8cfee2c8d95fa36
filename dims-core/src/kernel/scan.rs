//! Running along one axis of contiguous data, in place: cumulative sums, softmax.

use super::isa::{Isa, Task, dispatch};
use crate::scalar::{Analytic, Num, Real};
use std::marker::PhantomData;

/// Contiguous data seen as `outer` x `len` x `inner`, to be worked on along the middle axis.
pub struct Lines<'d, T> {
    /// The data.
    pub data: &'d mut [T],
    /// How many elements each line has.
    pub len: usize,
    /// How far apart neighbours on a line are.
    pub inner: usize,
}

impl<T: Copy> Lines<'_, T> {
    /// Blocks of `len` x `inner` elements.
    #[inline(always)]
    fn blocks(&mut self) -> std::slice::ChunksExactMut<'_, T> {
        // Without lines there are no blocks, whatever their size.
        self.data.chunks_exact_mut((self.len * self.inner).max(1))
    }
}

/// Running totals: element `i` becomes `op` of the elements up to it.
pub fn cumulate<T: Copy>(mut lines: Lines<'_, T>, op: impl Fn(T, T) -> T) {
    let inner = lines.inner;
    for block in lines.blocks() {
        for at in inner..block.len() {
            block[at] = op(block[at - inner], block[at]);
        }
    }
}

/// `exp(x - max) / sum of exp(x - max)` along each line; the logarithm of that if `log`.
pub fn softmax<T: Real>(lines: Lines<'_, T>, log: bool) {
    if log {
        dispatch(Softmax::<T, true> { lines, marker: PhantomData });
    } else {
        dispatch(Softmax::<T, false> { lines, marker: PhantomData });
    }
}

struct Softmax<'d, T, const LOG: bool> {
    lines: Lines<'d, T>,
    marker: PhantomData<T>,
}

impl<T: Real, const LOG: bool> Task for Softmax<'_, T, LOG> {
    type Out = ();

    #[inline(always)]
    fn run<I: Isa>(mut self) {
        let inner = self.lines.inner;
        if inner == 1 {
            for line in self.lines.blocks() {
                softmax_line::<I, T, LOG>(line);
            }
            return;
        }
        let mut greatest = vec![T::LOWEST; inner];
        let mut sum = vec![T::Wide::ZERO; inner];
        for block in self.lines.blocks() {
            greatest.fill(T::LOWEST);
            sum.fill(T::Wide::ZERO);
            for row in block.chunks_exact(inner) {
                for (greatest, &value) in greatest.iter_mut().zip(row) {
                    *greatest = greatest.maximum(value);
                }
            }
            for row in block.chunks_exact_mut(inner) {
                for ((value, &greatest), sum) in row.iter_mut().zip(&greatest).zip(&mut sum) {
                    *value = share::<I, T, LOG>(*value, greatest, sum);
                }
            }
            for row in block.chunks_exact_mut(inner) {
                for (value, &sum) in row.iter_mut().zip(&sum) {
                    *value = normalised::<T, LOG>(*value, sum);
                }
            }
        }
    }
}

/// How many neighbours are worked on at once along a line.
const LANES: usize = 16;

/// One line whose elements are neighbours in memory.
#[inline(always)]
fn softmax_line<I: Isa, T: Real, const LOG: bool>(line: &mut [T]) {
    let mut greatest = [T::LOWEST; LANES];
    let (chunks, tail) = line.as_chunks::<LANES>();
    for chunk in chunks {
        for (greatest, &value) in greatest.iter_mut().zip(chunk) {
            *greatest = greatest.maximum(value);
        }
    }
    let mut top = T::LOWEST;
    for &value in greatest.iter().chain(tail) {
        top = top.maximum(value);
    }
    let greatest = top;
    let mut sums = [T::Wide::ZERO; LANES];
    let mut sum = T::Wide::ZERO;
    let (chunks, tail) = line.as_chunks_mut::<LANES>();
    for chunk in chunks {
        for (value, sum) in chunk.iter_mut().zip(&mut sums) {
            *value = share::<I, T, LOG>(*value, greatest, sum);
        }
    }
    for value in tail {
        *value = share::<I, T, LOG>(*value, greatest, &mut sum);
    }
    for part in sums {
        sum = sum + part;
    }
    if LOG {
        let shift = num_traits::Float::ln(sum);
        for value in line {
            *value = T::narrow(value.widen() - shift);
        }
    } else {
        let factor = num_traits::Float::recip(sum);
        for value in line {
            *value = T::narrow(value.widen() * factor);
        }
    }
}

/// `e^(value - greatest)`, added to the sum; for the logarithm, `value - greatest` stays.
///
/// A line of minus infinities has nothing to share: `-inf - -inf` makes it not-a-number.
#[inline(always)]
fn share<I: Isa, T: Real, const LOG: bool>(value: T, greatest: T, sum: &mut T::Wide) -> T {
    let shifted = value - greatest;
    let share = Analytic::exp::<I>(shifted);
    *sum = *sum + share.widen();
    if LOG { shifted } else { share }
}

#[inline(always)]
fn normalised<T: Real, const LOG: bool>(value: T, sum: T::Wide) -> T {
    let exact = value.widen();
    T::narrow(if LOG { exact - num_traits::Float::ln(sum) } else { exact / sum })
}
