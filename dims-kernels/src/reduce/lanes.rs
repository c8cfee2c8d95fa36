//! The accumulators of a reduction along the innermost loop.

use crate::load::Kernel;
use crate::loops::nest::{Nest, Odometer};
use crate::machine::isa::{Isa, Task};
use crate::machine::params::params;
use crate::machine::prefetch::{LINE, prefetch_lines};
use crate::reduce::fold::{self, together};
use crate::reduce::{BLOCK, Out, Reducer, is_far, push, total};
use smallvec::SmallVec;

/// The number of accumulators along the innermost loop.
const LANES: usize = 32;

/// How many elements are added to an accumulator at once, so that it is loaded and stored less
/// often.
const UNROLL: usize = 4;

/// Like `LANES`, for the rest of a loop or for a short loop.
const TAIL_LANES: usize = 8;

/// Accumulators along the innermost loop.
pub struct Lanes<A> {
    lanes: [A; LANES],
    used: usize,
    /// The accumulator of the last elements, which do not fill [`TAIL_LANES`] lanes.
    tail: A,
    /// An upper bound on the number of elements that were added to each accumulator.
    pub steps: usize,
}

impl<A: Copy> Lanes<A> {
    #[cfg_attr(not(unoptimized), inline(always))]
    pub fn new<T, R: Reducer<T, Acc = A>>(reducer: R) -> Self {
        Lanes { lanes: [reducer.start(); LANES], used: 0, tail: reducer.start(), steps: 0 }
    }

    /// Adds the `len` elements of a tile. `seen` is the index of the first.
    ///
    /// # Safety
    ///
    /// The kernel has loaded a tile of `len` elements, without a mask and without a fault.
    #[cfg_attr(not(unoptimized), inline(always))]
    pub unsafe fn add<I: Isa, K: Kernel, R: Reducer<K::Elem, Acc = A>>(
        &mut self,
        kernel: &K,
        len: usize,
        seen: usize,
        reducer: R,
    ) {
        let mut x = 0;
        if len >= LANES {
            let mut lanes = self.lanes;
            while x + UNROLL * LANES <= len {
                for (lane, acc) in lanes.iter_mut().enumerate() {
                    for row in 0..UNROLL {
                        let x = x + row * LANES + lane;
                        // SAFETY: the index is less than `len`.
                        *acc = reducer.step::<I>(*acc, unsafe { kernel.get::<I>(x) }, seen + x);
                    }
                }
                x += UNROLL * LANES;
            }
            while x + LANES <= len {
                for (lane, acc) in lanes.iter_mut().enumerate() {
                    // SAFETY: the index is less than `len`.
                    *acc = reducer.step::<I>(*acc, unsafe { kernel.get::<I>(x + lane) }, seen + x + lane);
                }
                x += LANES;
            }
            self.lanes = lanes;
            self.used = LANES;
            self.steps += x / LANES;
        }
        if len - x >= TAIL_LANES {
            let mut lanes = [reducer.start(); TAIL_LANES];
            lanes.copy_from_slice(&self.lanes[..TAIL_LANES]);
            while x + TAIL_LANES <= len {
                for (lane, acc) in lanes.iter_mut().enumerate() {
                    // SAFETY: the index is less than `len`.
                    *acc = reducer.step::<I>(*acc, unsafe { kernel.get::<I>(x + lane) }, seen + x + lane);
                }
                x += TAIL_LANES;
                self.steps += 1;
            }
            self.lanes[..TAIL_LANES].copy_from_slice(&lanes);
            self.used = self.used.max(TAIL_LANES);
        }
        self.steps += len - x;
        while x < len {
            // SAFETY: the index is less than `len`.
            self.tail = reducer.step::<I>(self.tail, unsafe { kernel.get::<I>(x) }, seen + x);
            x += 1;
        }
    }

    /// Combines all accumulators.
    #[cfg_attr(not(unoptimized), inline(always))]
    pub fn total<I: Isa, T, R: Reducer<T, Acc = A>>(&self, reducer: R) -> A {
        if self.used == 0 {
            return self.tail;
        }
        let mut few = [reducer.start(); TAIL_LANES];
        few.copy_from_slice(&self.lanes[..TAIL_LANES]);
        if self.used > TAIL_LANES {
            for (lane, few) in few.iter_mut().enumerate() {
                let left = reducer.join::<I>(self.lanes[lane], self.lanes[lane + TAIL_LANES]);
                let right =
                    reducer.join::<I>(self.lanes[lane + 2 * TAIL_LANES], self.lanes[lane + 3 * TAIL_LANES]);
                *few = reducer.join::<I>(left, right);
            }
        }
        let mut width = TAIL_LANES / 2;
        while width > 0 {
            for lane in 0..width {
                few[lane] = reducer.join::<I>(few[lane], few[lane + width]);
            }
            width /= 2;
        }
        reducer.join::<I>(few[0], self.tail)
    }
}

/// The maximum number of elements in a chunk: [`BLOCK`] for each accumulator. The accumulators are
/// combined after each chunk.
const MAX_CHUNK: usize = BLOCK * fold::LANES;

/// A reduction of elements in memory that are contiguous along the innermost loop. One task
/// computes all results, so that starting the next line costs little.
pub struct LineReduction<'n, T, R: Reducer<T>> {
    /// A pointer to the element at the origin.
    start: *const T,
    strides: SmallVec<[isize; 8]>,
    nest: &'n Nest,
    count: usize,
    reducer: R,
    out: Out<'n, R::Acc, R::Out>,
}

impl<'n, T, R: Reducer<T>> LineReduction<'n, T, R> {
    /// # Safety
    ///
    /// The nest's innermost loop is reduced, and the elements along it are contiguous. There is a
    /// valid element at each position of the nest.
    #[cfg_attr(not(unoptimized), inline(always))]
    pub unsafe fn new(
        start: *const T,
        strides: SmallVec<[isize; 8]>,
        nest: &'n Nest,
        count: usize,
        reducer: R,
        out: Out<'n, R::Acc, R::Out>,
    ) -> Self {
        LineReduction { start, strides, nest, count, reducer, out }
    }
}

impl<T: Copy, R: Reducer<T>> Task for LineReduction<'_, T, R> {
    type Out = ();
    const WIDE: bool = true;
    const WAITS: bool = true;

    #[cfg_attr(not(unoptimized), inline(always))]
    fn run<I: Isa>(self) {
        let LineReduction { start, strides, nest, count, reducer, mut out } = self;
        let last = nest.depth() - 1;
        let len = nest.sizes[last];
        let prefetch_distance = is_far::<T>(nest).then(|| params().line_prefetch_distance);
        let first = if let Out::State(_, first) = out { first } else { 0 };
        let mut at: SmallVec<[usize; 8]> = SmallVec::from_elem(0, last);
        let mut written = 0;
        let mut outer = Odometer::new(&nest.sizes[..nest.outer]);
        while !outer.is_done() {
            let mut totals = SmallVec::new();
            let (mut blocks, mut seen) = (0, first);
            let mut inner = Odometer::new(&nest.sizes[nest.outer..last]);
            while !inner.is_done() {
                let steps: isize = at.iter().zip(&strides).map(|(&at, &step)| at as isize * step).sum();
                // SAFETY: the caller of `new` promised that there is an element at each position of
                // the nest, and that they are contiguous along the innermost loop.
                let line = unsafe { core::slice::from_raw_parts(start.offset(steps), len) };
                for elements in line.chunks(MAX_CHUNK) {
                    blocks += 1;
                    let part = stretch::<I, T, R>(elements, seen, prefetch_distance, reducer);
                    push::<I, T, R>(&mut totals, blocks, part, reducer);
                    seen += elements.len();
                }
                inner.advance(&mut at[nest.outer..]);
            }
            let acc = total::<I, T, R>(totals, reducer.start(), reducer);
            match &mut out {
                Out::State(state, _) => **state = acc,
                Out::Results(out) => _ = out[written].write(reducer.finish(acc, count)),
            }
            written += 1;
            outer.advance(&mut at[..nest.outer]);
        }
        if let Out::Results(out) = out {
            assert_eq!(written, out.len(), "the kept loops cover the result");
        }
    }
}

/// Combines at most [`MAX_CHUNK`] contiguous elements. `seen` is the index of the first. If they
/// come from memory rather than from a cache, they are prefetched `prefetch_distance` elements
/// ahead.
#[cfg_attr(not(unoptimized), inline(always))]
fn stretch<I: Isa, T: Copy, R: Reducer<T>>(
    elements: &[T],
    seen: usize,
    prefetch_distance: Option<usize>,
    reducer: R,
) -> R::Acc {
    let mut lanes = [reducer.start(); fold::LANES];
    // Loads that span two cache lines take longer, so the elements before the first aligned group
    // of `fold::LANES` are combined separately. They go to the last accumulators, as if they were
    // the last elements of a group. At the end the accumulators are rotated, so each accumulator
    // has the same elements wherever they are in memory.
    let skipped =
        if prefetch_distance.is_some() { elements.as_ptr().align_offset(LINE) % fold::LANES } else { 0 };
    let (head, others) = elements.split_at(skipped.min(elements.len()));
    for (at, (acc, &value)) in lanes[fold::LANES - skipped..].iter_mut().zip(head).enumerate() {
        *acc = reducer.step::<I>(*acc, value, seen + at);
    }
    let (chunks, tail) = others.as_chunks::<{ fold::LANES }>();
    let seen = seen + head.len();
    let mut own = lanes;
    if let Some(distance) = prefetch_distance {
        for (at, chunk) in chunks.iter().enumerate() {
            prefetch_lines(chunk.as_ptr().wrapping_add(distance), fold::LANES);
            for (lane, (acc, &value)) in own.iter_mut().zip(chunk).enumerate() {
                *acc = reducer.step::<I>(*acc, value, seen + at * fold::LANES + lane);
            }
        }
    } else {
        for (at, chunk) in chunks.iter().enumerate() {
            for (lane, (acc, &value)) in own.iter_mut().zip(chunk).enumerate() {
                *acc = reducer.step::<I>(*acc, value, seen + at * fold::LANES + lane);
            }
        }
    }
    lanes = own;
    let behind = seen + others.len() - tail.len();
    for (lane, (acc, &value)) in lanes.iter_mut().zip(tail).enumerate() {
        *acc = reducer.step::<I>(*acc, value, behind + lane);
    }
    if skipped > 0 {
        lanes = rotated(lanes, fold::LANES - skipped);
    }
    together(lanes, |a, b| reducer.join::<I>(a, b))
}

/// The lanes from `first` on, followed by those before it.
#[cfg_attr(not(unoptimized), inline(always))]
fn rotated<A: Copy, const N: usize>(lanes: [A; N], first: usize) -> [A; N] {
    let twice = [lanes, lanes];
    *twice.as_flattened()[first..].first_chunk().expect("the first lane is in range")
}
