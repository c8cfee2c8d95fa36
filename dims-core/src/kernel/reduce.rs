//! Reductions: loops that combine many elements into one.
//!
//! Sums are as accurate as pairwise summation: along the innermost loop there are many accumulators, whose totals are
//! combined like a binary counter; across it, partial sums over `BLOCK` elements are combined.

use super::elementwise::Parts;
use super::isa::{Isa, Task, dispatch};
use super::threads::{self, Carried};
use super::{Faults, Kernel, TILE, Tile};
use crate::error::DimError;
use crate::plan::nest::{Nest, Odometer};
use crate::storage::memory::reserve;
use smallvec::SmallVec;
use std::mem::MaybeUninit;

/// Accumulators along the innermost loop.
const LANES: usize = 32;

/// How many accumulators are at hand across the innermost loop: they fit into the first-level cache.
const WIDTH: usize = 4 * TILE;

/// How many elements are added to one accumulator before it is combined with others.
const BLOCK: usize = 128;

/// How elements are combined.
pub trait Reducer<T>: Copy {
    /// Its name in plans.
    const NAME: &'static str;
    /// The state of a partial result.
    type Acc: Copy;
    /// The result.
    type Out: Copy;
    /// The state before the first element.
    fn start(&self) -> Self::Acc;
    /// The state after one more element, the `at`th.
    fn step<I: Isa>(&self, acc: Self::Acc, value: T, at: usize) -> Self::Acc;
    /// The state of two parts, the left one first.
    fn join<I: Isa>(&self, a: Self::Acc, b: Self::Acc) -> Self::Acc;
    /// The result of `count` elements.
    fn finish(&self, acc: Self::Acc, count: usize) -> Self::Out;
}

/// Runs a reduction in parts of the loops that it keeps; the result has `len` elements in the order of the kept axes.
///
/// Each part has a kernel of its own; several parts run on several threads.
#[inline]
pub fn reduce<K: Kernel, R: Reducer<K::Elem, Out: Send>>(
    parts: Parts<'_, K>,
    len: usize,
    count: usize,
    reducer: R,
) -> Result<Vec<R::Out>, DimError> {
    let mut out = reserve(len)?;
    let mut rest = &mut out.spare_capacity_mut()[..len];
    if parts.len() == 1 {
        for (kernel, nest) in parts {
            dispatch(Reduce { kernel, nest, count, reducer, out: rest })?;
        }
    } else {
        let mut work = Vec::with_capacity(parts.len());
        for (kernel, nest) in parts {
            let (own, others) = rest.split_at_mut(nest.results());
            rest = others;
            // SAFETY: kernels read elements, which are `Sync`; operations are plain values wherever `PARALLEL` lets
            // there be several parts; the places are each part's own.
            work.push(unsafe { Carried::new(Reduce { kernel, nest, count, reducer, out: own }) });
        }
        threads::each(work, |part| dispatch(part.into_inner())).into_iter().collect::<Result<(), _>>()?;
    }
    // SAFETY: the kept loops of all parts cover each of the `len` places once, as `Reduce` writes one for each of their
    // positions; it returned no error.
    unsafe { out.set_len(len) };
    Ok(out)
}

struct Reduce<'n, K: Kernel, R: Reducer<K::Elem>> {
    kernel: K,
    nest: &'n Nest,
    count: usize,
    reducer: R,
    out: &'n mut [MaybeUninit<R::Out>],
}

impl<K: Kernel, R: Reducer<K::Elem>> Task for Reduce<'_, K, R> {
    type Out = Result<(), DimError>;

    #[inline(always)]
    fn run<I: Isa>(self) -> Result<(), DimError> {
        let nest = self.nest;
        if self.out.is_empty() {
            // The loops may be long, though there is nothing to write.
            return Ok(());
        }
        let mut faults = Faults::default();
        let mut at: SmallVec<[usize; 8]> = SmallVec::from_elem(0, nest.depth());
        let mut written = 0;
        let mut odometer = Odometer::new(&nest.sizes[..nest.outer]);
        let Reduce { mut kernel, count, reducer, out, .. } = self;
        while !odometer.is_done() {
            let place: isize =
                at.iter().zip(&nest.result).take(nest.outer).map(|(&at, &step)| at as isize * step).sum();
            let place = place as usize;
            if nest.inner_kept {
                written +=
                    across::<I, K, R>(&mut kernel, nest, &mut at, count, reducer, place, out, &mut faults);
            } else {
                let acc = along::<I, K, R>(&mut kernel, nest, &mut at, reducer, &mut faults);
                out[place].write(reducer.finish(acc, count));
                written += 1;
            }
            if faults.any() {
                return faults.into_result();
            }
            odometer.advance(&mut at[..nest.outer]);
        }
        assert_eq!(written, out.len(), "the kept loops cover the result");
        faults.into_result()
    }
}

/// One element of the result, whose innermost loop is reduced.
#[inline(always)]
fn along<I: Isa, K: Kernel, R: Reducer<K::Elem>>(
    kernel: &mut K,
    nest: &Nest,
    at: &mut [usize],
    reducer: R,
    faults: &mut Faults,
) -> R::Acc {
    let last = nest.depth() - 1;
    let inner = nest.sizes[last];
    if inner == 0 {
        // The loops around may be long, though there is nothing in them.
        return reducer.start();
    }
    if nest.outer == last && inner <= TILE {
        // One short loop, the common case, needs no totals.
        kernel.load::<I>(&Tile { at, len: inner, mask: None }, faults);
        if faults.any() {
            return reducer.start();
        }
        return along_tile::<I, K, R>(kernel, inner, 0, reducer);
    }
    let mut totals = SmallVec::new();
    let mut tiles = 0;
    let mut seen = 0;
    let mut odometer = Odometer::new(&nest.sizes[nest.outer..last]);
    while !odometer.is_done() {
        let mut start = 0;
        while start < inner {
            let len = TILE.min(inner - start);
            at[last] = start;
            kernel.load::<I>(&Tile { at, len, mask: None }, faults);
            // After a fault nothing is computed: what stands in for the element could, for one, be divided by.
            if faults.any() {
                return reducer.start();
            }
            tiles += 1;
            push::<I, K::Elem, R>(
                &mut totals,
                tiles,
                along_tile::<I, K, R>(kernel, len, seen, reducer),
                reducer,
            );
            seen += len;
            start += len;
        }
        odometer.advance(&mut at[nest.outer..last]);
    }
    total::<I, K::Elem, R>(totals, reducer)
}

#[inline(always)]
fn along_tile<I: Isa, K: Kernel, R: Reducer<K::Elem>>(
    kernel: &K,
    len: usize,
    seen: usize,
    reducer: R,
) -> R::Acc {
    let mut tail = reducer.start();
    let whole = if len >= LANES { len - len % LANES } else { 0 };
    for x in whole..len {
        // SAFETY: `x < len`, the length of the tile that was just loaded, without a mask.
        tail = reducer.step::<I>(tail, unsafe { kernel.get::<I>(x) }, seen + x);
    }
    if whole == 0 {
        return tail;
    }
    let mut lanes = [reducer.start(); LANES];
    let mut base = 0;
    while base < whole {
        for (lane, acc) in lanes.iter_mut().enumerate() {
            let x = base + lane;
            // SAFETY: as above.
            *acc = reducer.step::<I>(*acc, unsafe { kernel.get::<I>(x) }, seen + x);
        }
        base += LANES;
    }
    let mut width = LANES / 2;
    while width > 0 {
        for lane in 0..width {
            lanes[lane] = reducer.join::<I>(lanes[lane], lanes[lane + width]);
        }
        width /= 2;
    }
    reducer.join::<I>(lanes[0], tail)
}

/// A row of the result, whose innermost loop is kept. Returns how many elements that is.
#[inline(always)]
#[allow(clippy::too_many_arguments)]
fn across<I: Isa, K: Kernel, R: Reducer<K::Elem>>(
    kernel: &mut K,
    nest: &Nest,
    at: &mut [usize],
    count: usize,
    reducer: R,
    place: usize,
    out: &mut [MaybeUninit<R::Out>],
    faults: &mut Faults,
) -> usize {
    let last = nest.depth() - 1;
    let inner = nest.sizes[last];
    let step = nest.result[last] as usize;
    let reduced = &nest.sizes[nest.outer..last];
    let mut start = 0;
    while start < inner {
        let len = WIDTH.min(inner - start);
        let mut blocks: Vec<R::Acc> = Vec::new();
        let mut block: SmallVec<[R::Acc; 32]> = SmallVec::from_elem(reducer.start(), len);
        let mut seen = 0;
        let mut odometer = Odometer::new(reduced);
        while !odometer.is_done() {
            for (tile, block) in block.chunks_mut(TILE).enumerate() {
                at[last] = start + tile * TILE;
                kernel.load::<I>(&Tile { at, len: block.len(), mask: None }, faults);
                if faults.any() {
                    return inner;
                }
                across_tile::<I, K, R>(kernel, block, seen, reducer);
            }
            seen += 1;
            if seen % BLOCK == 0 {
                if blocks.is_empty() {
                    blocks = vec![reducer.start(); len];
                }
                for (total, part) in blocks.iter_mut().zip(&mut block) {
                    *total = reducer.join::<I>(*total, std::mem::replace(part, reducer.start()));
                }
            }
            odometer.advance(&mut at[nest.outer..last]);
        }
        for (x, &part) in block.iter().enumerate() {
            let acc = blocks.get(x).map_or(part, |&total| reducer.join::<I>(total, part));
            out[place + (start + x) * step].write(reducer.finish(acc, count));
        }
        start += len;
    }
    inner
}

#[inline(always)]
fn across_tile<I: Isa, K: Kernel, R: Reducer<K::Elem>>(
    kernel: &K,
    block: &mut [R::Acc],
    seen: usize,
    reducer: R,
) {
    for (x, acc) in block.iter_mut().enumerate() {
        // SAFETY: `x` is less than the length of the tile that was just loaded, without a mask.
        *acc = reducer.step::<I>(*acc, unsafe { kernel.get::<I>(x) }, seen);
    }
}

/// Combines totals of equal weight, like the carries of a binary counter, so that rounding errors grow with the
/// logarithm of their number. `count` totals, this one included, have been pushed.
#[inline(always)]
fn push<I: Isa, T, R: Reducer<T>>(
    levels: &mut SmallVec<[R::Acc; 12]>,
    count: usize,
    total: R::Acc,
    reducer: R,
) {
    let mut total = total;
    for _ in 0..count.trailing_zeros() {
        if let Some(previous) = levels.pop() {
            total = reducer.join::<I>(previous, total);
        }
    }
    levels.push(total);
}

/// The total of all levels.
#[inline(always)]
fn total<I: Isa, T, R: Reducer<T>>(levels: SmallVec<[R::Acc; 12]>, reducer: R) -> R::Acc {
    levels
        .into_iter()
        .rev()
        .reduce(|right, left| reducer.join::<I>(left, right))
        .unwrap_or_else(|| reducer.start())
}
