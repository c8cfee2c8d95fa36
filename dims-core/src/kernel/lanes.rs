//! The accumulators of a reduction along the innermost loop.

use super::isa::{Isa, Task};
use super::norm::together;
use super::reduce::{BLOCK, Reducer};
use super::strided::fetch_row;
use super::{Kernel, norm};

/// Accumulators along the innermost loop.
const LANES: usize = 32;

/// How many elements are added to an accumulator at once, so that it is fetched and stored less often.
const ROWS: usize = 4;

/// As `LANES`, for what is left of a loop or for a short one.
const FEW: usize = 8;

/// Accumulators along the innermost loop.
pub(super) struct Lanes<A> {
    lanes: [A; LANES],
    /// How many of the lanes are in use.
    used: usize,
    /// What fills no lanes.
    tail: A,
    /// How many elements have been added to the accumulator that has most.
    pub(super) steps: usize,
}

impl<A: Copy> Lanes<A> {
    #[inline(always)]
    pub(super) fn new<T, R: Reducer<T, Acc = A>>(reducer: R) -> Self {
        Lanes { lanes: [reducer.start(); LANES], used: 0, tail: reducer.start(), steps: 0 }
    }

    /// Adds a tile that was just loaded; its first element is the `seen`th.
    #[inline(always)]
    pub(super) fn add<I: Isa, K: Kernel, R: Reducer<K::Elem, Acc = A>>(
        &mut self,
        kernel: &K,
        len: usize,
        seen: usize,
        reducer: R,
    ) {
        let mut x = 0;
        if len >= LANES {
            let mut lanes = self.lanes;
            while x + ROWS * LANES <= len {
                for (lane, acc) in lanes.iter_mut().enumerate() {
                    for row in 0..ROWS {
                        let x = x + row * LANES + lane;
                        // SAFETY: less than the length of the tile, which was loaded without a mask.
                        *acc = reducer.step::<I>(*acc, unsafe { kernel.get::<I>(x) }, seen + x);
                    }
                }
                x += ROWS * LANES;
            }
            while x + LANES <= len {
                for (lane, acc) in lanes.iter_mut().enumerate() {
                    // SAFETY: as above.
                    *acc = reducer.step::<I>(*acc, unsafe { kernel.get::<I>(x + lane) }, seen + x + lane);
                }
                x += LANES;
            }
            self.lanes = lanes;
            self.used = LANES;
            self.steps += x / LANES;
        }
        if len - x >= FEW {
            let mut lanes = [reducer.start(); FEW];
            lanes.copy_from_slice(&self.lanes[..FEW]);
            while x + FEW <= len {
                for (lane, acc) in lanes.iter_mut().enumerate() {
                    // SAFETY: as above.
                    *acc = reducer.step::<I>(*acc, unsafe { kernel.get::<I>(x + lane) }, seen + x + lane);
                }
                x += FEW;
                self.steps += 1;
            }
            self.lanes[..FEW].copy_from_slice(&lanes);
            self.used = self.used.max(FEW);
        }
        self.steps += len - x;
        while x < len {
            // SAFETY: as above.
            self.tail = reducer.step::<I>(self.tail, unsafe { kernel.get::<I>(x) }, seen + x);
            x += 1;
        }
    }

    /// All accumulators in one.
    #[inline(always)]
    pub(super) fn total<I: Isa, T, R: Reducer<T, Acc = A>>(&self, reducer: R) -> A {
        if self.used == 0 {
            return self.tail;
        }
        let mut few = [reducer.start(); FEW];
        few.copy_from_slice(&self.lanes[..FEW]);
        if self.used > FEW {
            for (lane, few) in few.iter_mut().enumerate() {
                let left = reducer.join::<I>(self.lanes[lane], self.lanes[lane + FEW]);
                let right = reducer.join::<I>(self.lanes[lane + 2 * FEW], self.lanes[lane + 3 * FEW]);
                *few = reducer.join::<I>(left, right);
            }
        }
        let mut width = FEW / 2;
        while width > 0 {
            for lane in 0..width {
                few[lane] = reducer.join::<I>(few[lane], few[lane + width]);
            }
            width /= 2;
        }
        reducer.join::<I>(few[0], self.tail)
    }
}

/// How many elements ahead the memory is asked for what follows: beyond the end of the page, where the machine stops to look ahead.
const AHEAD: usize = 1024;

/// Elements that are neighbours in memory, to be combined: as many as there are between one combination of the accumulators and the next.
pub(super) struct Stretch<'l, T, R> {
    /// At most [`Stretch::MOST`].
    pub elements: &'l [T],
    /// How many elements have been combined before.
    pub seen: usize,
    /// Whether they come from memory rather than from a cache.
    pub far: bool,
    pub reducer: R,
}

impl<T, R> Stretch<'_, T, R> {
    /// The most elements at once.
    pub(super) const MOST: usize = BLOCK * norm::LANES;
}

impl<T: Copy, R: Reducer<T>> Task for Stretch<'_, T, R> {
    type Out = R::Acc;
    const WIDE: bool = true;

    #[inline(always)]
    fn run<I: Isa>(self) -> R::Acc {
        let Stretch { elements, seen, far, reducer } = self;
        let mut lanes = [reducer.start(); norm::LANES];
        let (chunks, tail) = elements.as_chunks::<{ norm::LANES }>();
        let behind = seen + elements.len() - tail.len();
        if far {
            for (at, chunk) in chunks.iter().enumerate() {
                fetch_row(chunk.as_ptr().wrapping_add(AHEAD), norm::LANES);
                for (lane, (acc, &value)) in lanes.iter_mut().zip(chunk).enumerate() {
                    *acc = reducer.step::<I>(*acc, value, seen + at * norm::LANES + lane);
                }
            }
        } else {
            for (at, chunk) in chunks.iter().enumerate() {
                for (lane, (acc, &value)) in lanes.iter_mut().zip(chunk).enumerate() {
                    *acc = reducer.step::<I>(*acc, value, seen + at * norm::LANES + lane);
                }
            }
        }
        for (lane, (acc, &value)) in lanes.iter_mut().zip(tail).enumerate() {
            *acc = reducer.step::<I>(*acc, value, behind + lane);
        }
        together(lanes, |a, b| reducer.join::<I>(a, b))
    }
}
