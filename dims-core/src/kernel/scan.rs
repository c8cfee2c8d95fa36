//! Running along one axis of contiguous data, in place: cumulative sums, softmax.

use super::isa::{Isa, Task, dispatch};
use crate::scalar::{Analytic, Num, Real};

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
    /// Calls `f` with each block of `len` x `inner` elements.
    #[inline(always)]
    fn blocks(&mut self, mut f: impl FnMut(&mut [T])) {
        let block = self.len * self.inner;
        if block > 0 {
            self.data.chunks_exact_mut(block).for_each(&mut f);
        }
    }
}

/// Running totals: element `i` becomes `op` of the elements up to it.
pub fn cumulate<T: Copy>(mut lines: Lines<'_, T>, op: impl Fn(T, T) -> T) {
    let inner = lines.inner;
    lines.blocks(|block| {
        for at in inner..block.len() {
            block[at] = op(block[at - inner], block[at]);
        }
    });
}

/// `exp(x - max) / sum of exp(x - max)` along each line; the logarithm of that if `log`.
pub fn softmax<T: Real>(lines: Lines<'_, T>, log: bool) {
    dispatch(Softmax { lines, log });
}

struct Softmax<'d, T> {
    lines: Lines<'d, T>,
    log: bool,
}

impl<T: Real> Task for Softmax<'_, T> {
    type Out = ();

    #[inline(always)]
    fn run<I: Isa>(mut self) {
        let (inner, log) = (self.lines.inner, self.log);
        let mut greatest = vec![T::LOWEST; inner];
        let mut sum = vec![T::Wide::ZERO; inner];
        self.lines.blocks(|block| {
            greatest.fill(T::LOWEST);
            sum.fill(T::Wide::ZERO);
            for row in block.chunks_exact(inner) {
                for (greatest, &value) in greatest.iter_mut().zip(row) {
                    *greatest = greatest.maximum(value);
                }
            }
            for row in block.chunks_exact_mut(inner) {
                for ((value, &greatest), sum) in row.iter_mut().zip(&greatest).zip(&mut sum) {
                    // A line of minus infinities has no share to give: `-inf - -inf` makes it not-a-number.
                    let shifted = *value - greatest;
                    let share = Analytic::exp(shifted);
                    *sum = *sum + share.widen();
                    *value = if log { shifted } else { share };
                }
            }
            for row in block.chunks_exact_mut(inner) {
                for (value, &sum) in row.iter_mut().zip(&sum) {
                    let exact = value.widen();
                    *value = T::narrow(if log { exact - Analytic::ln(sum) } else { exact / sum });
                }
            }
        });
    }
}
