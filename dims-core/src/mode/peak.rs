//! Peak memory.

use super::{FreedMemory, Mode, Ran, with};
use alloc::collections::BTreeMap;
use alloc::vec::Vec;

/// The current and the peak size of the results of steps in bytes: the mode of [`peak_memory`].
#[derive(Clone, Debug, Default)]
pub struct PeakMemory {
    /// The size of each live result, by its address.
    held: BTreeMap<usize, usize>,
    bytes: usize,
    peak: usize,
}

impl PeakMemory {
    /// The size of the live results in bytes.
    pub fn now(&self) -> usize {
        self.bytes
    }

    /// The peak size of the results in bytes.
    pub fn peak(&self) -> usize {
        self.peak
    }

    fn free(&mut self, address: usize) {
        self.bytes -= self.held.remove(&address).unwrap_or(0);
    }
}

impl Mode for PeakMemory {
    fn ran(&mut self, ran: &Ran<'_>) {
        for result in ran.results.iter().filter(|result| !result.is_given() && result.bytes() > 0) {
            let (start, end) = (result.address(), result.address() + result.bytes());
            // If this result overlaps a result in `held`, that one was freed without notice, or
            // both are the same memory.
            let before = self.held.range(..start).next_back().filter(|&(&at, &bytes)| at + bytes > start);
            let freed: Vec<usize> =
                before.into_iter().chain(self.held.range(start..end)).map(|(&at, _)| at).collect();
            freed.into_iter().for_each(|address| self.free(address));
            self.held.insert(start, result.bytes());
            self.bytes += result.bytes();
        }
        self.peak = self.peak.max(self.bytes);
    }

    fn freed(&mut self, freed: &FreedMemory) {
        self.free(freed.address);
    }
}

/// Runs `f` and returns its result with the peak size in bytes of the results of its steps.
///
/// ```
/// use typed_dims::mode;
/// use typed_dims::prelude::*;
///
/// dims!(i = 1000);
/// let x = ones::<f32, _>(i);
/// let (sum, peak) = mode::peak_memory(|| {
///     let twice = (&x * 2.0).eval();      // 4000 bytes
///     let squares = (&x * &x).eval();     // and 4000 more
///     (twice + squares).sum(i).eval()     // a number; neither tensor is copied
/// });
/// assert_eq!(peak, 8004);
/// # drop(sum);
/// ```
///
/// This counts the memory of tensors that steps on this thread computed. It does not count tensors
/// that existed before, constructors such as `zeros`, or temporary memory of a kernel, such as
/// copies of the operands of a product. A result that reuses an operand's memory adds nothing if
/// that memory already counts. The array that `order` makes counts until `order` returns it.
pub fn peak_memory<T>(f: impl FnOnce() -> T) -> (T, usize) {
    let mut mode = PeakMemory::default();
    let result = with(&mut mode, f);
    (result, mode.peak)
}
