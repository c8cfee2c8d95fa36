//! Memory.

use super::{FreedMemory, Mode, Ran, with};
use alloc::collections::BTreeMap;
use alloc::vec::Vec;

/// How many bytes the results of steps have now, and had at most at one time: a mode, as [`peak_memory`] runs it.
#[derive(Clone, Debug, Default)]
pub struct PeakMemory {
    /// The bytes of each result that is not freed, by its address.
    held: BTreeMap<usize, usize>,
    bytes: usize,
    peak: usize,
}

impl PeakMemory {
    /// The bytes of the results that are not freed.
    pub fn now(&self) -> usize {
        self.bytes
    }

    /// The bytes that results had at most at one time.
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
            // Memory that the result overlaps has been freed where it was not heard, or is that of the result itself.
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

/// Runs `f`, and returns what it returns with the bytes that the results of its steps had at most at one time.
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
///     (twice + squares).sum(i).eval()     // a number; nothing of these is copied
/// });
/// assert_eq!(peak, 8004);
/// # drop(sum);
/// ```
///
/// This is the memory of tensors that steps on this thread computed: not of those that were there before, not of constructors such as `zeros`, and not what a kernel needs while it runs, such as copies
/// of the operands of a product. A result that is written over an operand takes no more memory. An array that `order` returns counts until it is handed over.
pub fn peak_memory<T>(f: impl FnOnce() -> T) -> (T, usize) {
    let mut mode = PeakMemory::default();
    let result = with(&mut mode, f);
    (result, mode.peak)
}
