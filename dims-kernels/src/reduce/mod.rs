//! Reductions: loops that combine many elements into one.
//!
//! Sums are about as accurate as with pairwise summation. If the innermost loop is reduced, several
//! accumulators share its elements. If it is kept, each of its positions has an accumulator. In
//! both cases, an accumulator takes about [`BLOCK`] elements, and the totals are then combined in
//! pairs, like the carries of a binary counter.

pub(crate) mod dots;
pub(crate) mod fold;
pub mod input;
pub(crate) mod lanes;
pub(crate) mod levels;
pub(crate) mod pairs;
pub mod reducers;
pub(crate) mod rows;

use crate::error::Error;
use crate::load::tiles::fill_tile;
use crate::load::{Faults, Kernel, TILE, Tile};
use crate::loops::nest::{Nest, NestParts, Odometer};
use crate::machine::isa::{Baseline, Isa, Task, dispatch};
use crate::machine::threads::{self, Carried};
use crate::memory::destination::Destination;
use crate::ops::code::ReductionKind;
use crate::reduce::input::ReduceInput;
use crate::reduce::lanes::{Lanes, LineReduction};
use crate::reduce::levels::Levels;
use crate::reduce::pairs::{PairReduction, are_pairs, can_pair};
use crate::reduce::rows::reduce_rows;
use crate::scalar::Element;
use alloc::boxed::Box;
use alloc::vec::Vec;
use core::mem::MaybeUninit;
use smallvec::SmallVec;

/// How many elements are added to an accumulator before it is combined with others.
pub const BLOCK: usize = 128;

/// If the innermost loop is kept and long, its positions are processed in blocks with about this
/// many bytes of accumulators. The accumulators stay in the first-level cache while the elements
/// are read from memory.
pub const WIDTH: usize = 32 << 10;

/// Bytes that fit into the second-level cache.
const NEAR: usize = 512 << 10;

/// The prefetch distance along the innermost loop, in tiles. For elements of 4 bytes or more, it is
/// longer than a page, at whose end the hardware prefetchers stop.
const PREFETCH_TILES: usize = 3;

/// Whether elements probably come from memory rather than from a cache, judging by their total
/// size.
pub fn is_far<T>(nest: &Nest) -> bool {
    nest.positions().saturating_mul(size_of::<T>()) > 4 * NEAR
}

/// A reduction to one element is split along the outermost loop if its kernel may run on several
/// threads. There are at most 256 parts, each with about this many elements or more. The split does
/// not depend on the number of threads, so neither does the result.
const PART: usize = 1 << 17;

/// A way to combine elements.
pub trait Reducer<T>: Copy {
    /// The name in plans.
    fn name(&self) -> &'static str;
    /// The state of a partial result.
    type Acc: Copy + Send;
    /// The result.
    type Out: Copy + 'static;
    /// The state before the first element.
    fn start(&self) -> Self::Acc;
    /// The state after one more element, whose index `at` is greater than the indices of all
    /// elements in `acc`.
    fn step<I: Isa>(&self, acc: Self::Acc, value: T, at: usize) -> Self::Acc;
    /// The combined state of two parts, whose elements may be interleaved.
    fn join<I: Isa>(&self, a: Self::Acc, b: Self::Acc) -> Self::Acc;
    /// Whether the result depends on the indices of the elements, which are counted along the
    /// reduced loops in the order in which the caller lists their axes.
    const COUNTS: bool = false;
    /// Whether [`line`](Reducer::line) is faster on contiguous elements than individual steps.
    const AT_ONCE: bool = false;
    /// Whether reductions across rows in memory may run in [separate loops](rows). These loops are
    /// most of the code of a reduction, so they are not compiled for reductions whose computation
    /// takes longer than reading the elements.
    const BY_ROWS: bool = true;
    /// Whether reductions across rows in memory run in [separate loops](rows) even if the elements
    /// are probably in a cache. The other loops keep their states in memory, where a step that
    /// compares takes several times as long.
    const ALWAYS_BY_ROWS: bool = false;
    /// The state of contiguous elements. The first element has the index `first`.
    #[cfg_attr(not(unoptimized), inline(always))]
    fn line<I: Isa>(&self, values: &[T], first: usize) -> Self::Acc
    where
        T: Copy,
    {
        (first..).zip(values).fold(self.start(), |acc, (at, &value)| self.step::<I>(acc, value, at))
    }
    /// Whether [`repeated`](Reducer::repeated) gives the result for repeated elements.
    const REPEATS: bool = false;
    /// The reducer for elements that occur `times` times each, but are passed to it once.
    fn repeated(self, _times: usize) -> Self {
        self
    }
    /// The kind of reduction, for derivatives.
    fn derivative(&self) -> ReductionKind {
        ReductionKind::Opaque
    }
    /// The result for `count` elements.
    fn finish(&self, acc: Self::Acc, count: usize) -> Self::Out;
    /// Reduces elements in memory, or those of a lowered program. Common reductions of common
    /// element types are [compiled](crate::compiled) with the library.
    #[cfg_attr(not(unoptimized), inline(always))]
    fn reduce_memory(
        self,
        memory: ReduceInput<'_, T>,
        to: Destination<'_, Self::Out>,
    ) -> Result<Vec<Self::Out>, Error>
    where
        T: Element,
        Self::Out: Send,
    {
        memory.reduce(to, self)
    }
}

/// Runs a reduction. The results are in the order of the kept axes. After an error, some of them
/// may have been written.
///
/// `kernel` lowers the expression for a nest or a part of it. (As `dyn`, so that this function is
/// compiled once for each type of kernel.) With many elements (`work`), the parts run on several
/// threads. `count` is the number of elements that [`finish`](Reducer::finish) gets for each
/// result.
///
/// # Panics
///
/// If `to` is [`Destination::Reused`], or does not have as many slots as there are results.
pub fn reduce<'n, K: Kernel, R: Reducer<K::Elem, Out: Send>>(
    nest: &'n Nest,
    parts: &'n mut NestParts,
    kernel: &dyn Fn(&'n Nest) -> K,
    work: usize,
    to: Destination<'_, R::Out>,
    count: usize,
    reducer: R,
) -> Result<Vec<R::Out>, Error> {
    // SAFETY: all slots are written, if there is no error.
    unsafe { to.fill(|places| write(nest, parts, kernel, work, places, count, reducer)) }
}

/// Writes all results unless there is an error: `Reduce` writes one for each position of the kept
/// loops, and there are as many positions as slots.
fn write<'n, K: Kernel, R: Reducer<K::Elem, Out: Send>>(
    nest: &'n Nest,
    parts: &'n mut NestParts,
    kernel: &dyn Fn(&'n Nest) -> K,
    work: usize,
    places: &mut [MaybeUninit<R::Out>],
    count: usize,
    reducer: R,
) -> Result<(), Error> {
    assert_eq!(nest.results(), places.len(), "the kept loops cover the result");
    let (len, mut rest) = (places.len(), places);
    if len == 1 && nest.outer == 0 && !nest.inner_kept && work >= 2 * PART && K::PARALLEL {
        rest[0].write(reducer.finish(single(nest, parts, kernel, reducer)?, count));
    } else if threads::parts(work) <= 1 || !K::PARALLEL {
        dispatch(Reduce { kernel: kernel(nest), nest, count, reducer, out: Out::Results(rest) })?;
    } else {
        *parts = nest.for_threads(work);
        let mut jobs: Vec<threads::Job<'_>> = Vec::with_capacity(parts.len());
        for nest in &*parts {
            let (own, others) = rest.split_at_mut(nest.results());
            rest = others;
            let task = Reduce { kernel: kernel(nest), nest, count, reducer, out: Out::Results(own) };
            // SAFETY: kernels read elements, which are `Sync`. Their operations are plain values,
            // as `PARALLEL` says. Each part has separate slots.
            let task = unsafe { Carried::new(task) };
            jobs.push(Box::new(move || dispatch(task.into_inner())));
        }
        threads::run(jobs)?;
    }
    Ok(())
}

/// The state of a reduction to a single element.
fn single<'n, K: Kernel, R: Reducer<K::Elem, Out: Send>>(
    nest: &'n Nest,
    parts: &'n mut NestParts,
    kernel: &dyn Fn(&'n Nest) -> K,
    reducer: R,
) -> Result<R::Acc, Error> {
    *parts = nest.split(0, nest.positions().div_ceil(PART).min(256));
    let mut states = vec![reducer.start(); parts.len()];
    let mut jobs: Vec<threads::Job<'_>> = Vec::with_capacity(parts.len());
    let mut first = 0;
    for (nest, state) in parts.iter().zip(&mut states) {
        let task = Reduce { kernel: kernel(nest), nest, count: 0, reducer, out: Out::State(state, first) };
        first += nest.positions();
        // SAFETY: kernels read elements, which are `Sync`. Their operations are plain values, as
        // the caller has checked with `PARALLEL`. Each part has a separate state.
        let task = unsafe { Carried::new(task) };
        jobs.push(Box::new(move || dispatch(task.into_inner())));
    }
    threads::run(jobs)?;
    Ok(joined(states, reducer))
}

/// Joins states pairwise, adjacent states first.
fn joined<T, R: Reducer<T>>(mut states: Vec<R::Acc>, reducer: R) -> R::Acc {
    while states.len() > 1 {
        let pairs = states.len().div_ceil(2);
        for at in 0..pairs {
            states[at] = match states.get(2 * at + 1) {
                Some(&second) => reducer.join::<Baseline>(states[2 * at], second),
                None => states[2 * at],
            };
        }
        states.truncate(pairs);
    }
    states[0]
}

/// Where a part of a reduction writes to.
pub enum Out<'n, A, T> {
    /// Elements of the result.
    Results(&'n mut [MaybeUninit<T>]),
    /// The state of a part of the only result, and the index of the part's first element.
    State(&'n mut A, usize),
}

struct Reduce<'n, K: Kernel, R: Reducer<K::Elem>> {
    kernel: K,
    nest: &'n Nest,
    count: usize,
    reducer: R,
    out: Out<'n, R::Acc, R::Out>,
}

impl<K: Kernel, R: Reducer<K::Elem>> Task for Reduce<'_, K, R> {
    type Out = Result<(), Error>;
    const WIDE: bool = K::LONG || R::AT_ONCE;

    #[cfg_attr(not(unoptimized), inline(always))]
    fn run<I: Isa>(self) -> Result<(), Error> {
        let Reduce { mut kernel, nest, count, reducer, out } = self;
        if !R::AT_ONCE
            && K::READS
            && let Some((start, strides)) = long_lines(&kernel, nest)
        {
            // SAFETY: the kernel says that these are the elements of the nest.
            dispatch(unsafe { LineReduction::new(start, strides, nest, count, reducer, out) });
            return Ok(());
        }
        let out = match out {
            Out::Results(out)
                if const { K::HAS_LEFT_OPERAND && can_pair::<K, R>() }
                    && are_pairs::<K, R, true>(&kernel, nest) =>
            {
                dispatch(PairReduction::<K, R, true>::new(kernel, nest, count, reducer, out));
                return Ok(());
            }
            Out::Results(out)
                if const { K::HAS_RIGHT_OPERAND && can_pair::<K, R>() }
                    && are_pairs::<K, R, false>(&kernel, nest) =>
            {
                dispatch(PairReduction::<K, R, false>::new(kernel, nest, count, reducer, out));
                return Ok(());
            }
            out => out,
        };
        let (out, mut state, first) = match out {
            Out::Results(out) => (out, None, 0),
            Out::State(state, first) => (Default::default(), Some(state), first),
        };
        if out.is_empty() && state.is_none() {
            // The loops may be long, although there is nothing to write.
            return Ok(());
        }
        let mut faults = Faults::default();
        if const { K::READS && R::BY_ROWS }
            && nest.inner_kept
            && reduce_rows(&mut kernel, nest, count, reducer, out, &mut faults)
        {
            return faults.into_result();
        }
        let mut at: SmallVec<[usize; 8]> = SmallVec::from_elem(0, nest.depth());
        let at = &mut at[..];
        let mut written = 0;
        let mut place: isize = 0;
        let mut moved = None;
        let mut odometer = Odometer::new(&nest.sizes[..nest.outer]);
        while !odometer.is_done() {
            if nest.inner_kept {
                let row = &mut out[place as usize..];
                written += across::<I, K, R>(&mut kernel, nest, at, count, reducer, row, &mut faults);
            } else {
                let acc = along::<I, K, R>(&mut kernel, nest, at, reducer, first, moved, &mut faults);
                match &mut state {
                    Some(state) => **state = acc,
                    None => _ = out[place as usize].write(reducer.finish(acc, count)),
                }
                written += 1;
            }
            if faults.any() {
                return faults.into_result();
            }
            moved = odometer.advance(&mut at[..nest.outer]);
            match moved {
                Some(last) => place += nest.result[last],
                None => {
                    place = at
                        .iter()
                        .zip(nest.result.iter())
                        .take(nest.outer)
                        .map(|(&at, &step)| at as isize * step)
                        .sum()
                }
            }
        }
        assert!(state.is_some() || written == out.len(), "the kept loops cover the result");
        faults.into_result()
    }
}

/// A pointer to the element at the origin, and the strides, if the elements are in memory and the
/// innermost loop is reduced, contiguous and longer than a tile. `None` if a loop is empty. Not
/// inlined, so that it is compiled once for all reducers.
#[inline(never)]
fn long_lines<K: Kernel>(kernel: &K, nest: &Nest) -> Option<(*const K::Elem, SmallVec<[isize; 8]>)> {
    let last = nest.depth() - 1;
    if nest.inner_kept || nest.sizes[last] <= TILE || nest.sizes.contains(&0) {
        return None;
    }
    let origin: SmallVec<[usize; 8]> = SmallVec::from_elem(0, nest.depth());
    let (start, 1) = kernel.steps(&origin, last)? else { return None };
    let strides = (0..=last).map(|along| Some(kernel.steps(&origin, along)?.1)).collect::<Option<_>>()?;
    Some((start, strides))
}

/// The state of one result, in a nest whose innermost loop is reduced. `seen` is the index of the
/// first element. `moved` is the only loop along which the position has changed since the last
/// call; `None` in the first call, or if more loops have moved. After a fault, the state is
/// unspecified.
#[cfg_attr(not(unoptimized), inline(always))]
fn along<I: Isa, K: Kernel, R: Reducer<K::Elem>>(
    kernel: &mut K,
    nest: &Nest,
    at: &mut [usize],
    reducer: R,
    seen: usize,
    moved: Option<usize>,
    faults: &mut Faults,
) -> R::Acc {
    let last = nest.depth() - 1;
    let inner = nest.sizes[last];
    if inner == 0 {
        // The other loops may be long, although there are no elements.
        return reducer.start();
    }
    let mut lanes = Lanes::new::<K::Elem, R>(reducer);
    if nest.outer == last && inner <= TILE {
        // A single short loop, the common case, has only one total.
        let moved = moved.map(|at| (at, 1));
        kernel.load::<I>(&Tile { at, len: inner, mask: None, moved }, faults);
        if faults.any() {
            return reducer.start();
        }
        if R::AT_ONCE {
            // SAFETY: the tile was just loaded, without a mask and without a fault.
            return unsafe { at_once::<I, K, R>(kernel, inner, seen, reducer) };
        }
        // SAFETY: the tile was just loaded, without a mask and without a fault.
        unsafe { lanes.add::<I, K, R>(kernel, inner, seen, reducer) };
        return lanes.total::<I, K::Elem, R>(reducer);
    }
    let mut totals = SmallVec::new();
    let mut blocks = 0;
    let mut seen = seen;
    let far = inner > TILE && is_far::<K::Elem>(nest);
    let mut moved = None;
    let mut odometer = Odometer::new(&nest.sizes[nest.outer..last]);
    while !odometer.is_done() {
        let mut start = 0;
        while start < inner {
            let len = TILE.min(inner - start);
            if far && !K::GATHERS {
                at[last] = start + PREFETCH_TILES * TILE;
                kernel.prefetch::<I>(&Tile { at, len: TILE, mask: None, moved: None });
            }
            at[last] = start;
            kernel.load::<I>(&Tile { at, len, mask: None, moved }, faults);
            // After a fault, nothing is computed: for example, the substitute for the element whose
            // index is out of range could be a divisor that is 0.
            if faults.any() {
                return reducer.start();
            }
            if R::AT_ONCE {
                blocks += 1;
                // SAFETY: the tile was just loaded, without a mask and without a fault.
                let part = unsafe { at_once::<I, K, R>(kernel, len, seen, reducer) };
                push::<I, K::Elem, R>(&mut totals, blocks, part, reducer);
            } else {
                // SAFETY: the tile was just loaded, without a mask and without a fault.
                unsafe { lanes.add::<I, K, R>(kernel, len, seen, reducer) };
            }
            if lanes.steps >= BLOCK {
                blocks += 1;
                push::<I, K::Elem, R>(&mut totals, blocks, lanes.total::<I, K::Elem, R>(reducer), reducer);
                lanes = Lanes::new::<K::Elem, R>(reducer);
            }
            seen += len;
            start += len;
            moved = Some((last, len));
        }
        at[last] = 0;
        let next = odometer.advance(&mut at[nest.outer..last]).map(|at| (nest.outer + at, 1));
        moved = if inner <= TILE { next } else { None };
    }
    let rest = lanes.total::<I, K::Elem, R>(reducer);
    total::<I, K::Elem, R>(totals, rest, reducer)
}

/// The state of the `len` elements of a tile. `seen` is the index of the first.
///
/// # Safety
///
/// The kernel has loaded a tile of `len` elements, without a mask and without a fault.
#[cfg_attr(not(unoptimized), inline(always))]
unsafe fn at_once<I: Isa, K: Kernel, R: Reducer<K::Elem>>(
    kernel: &K,
    len: usize,
    seen: usize,
    reducer: R,
) -> R::Acc {
    let mut values = [const { MaybeUninit::uninit() }; TILE];
    let values = &mut values[..len];
    // SAFETY: the caller's promise.
    unsafe { fill_tile::<I, K>(kernel, values) };
    // SAFETY: all values were just written.
    let values = unsafe { core::slice::from_raw_parts(values.as_ptr().cast(), len) };
    reducer.line::<I>(values, seen)
}

/// Computes one row of the result, in a nest whose innermost loop is kept. Returns the number of
/// elements of the row.
#[cfg_attr(not(unoptimized), inline(always))]
fn across<I: Isa, K: Kernel, R: Reducer<K::Elem>>(
    kernel: &mut K,
    nest: &Nest,
    at: &mut [usize],
    count: usize,
    reducer: R,
    out: &mut [MaybeUninit<R::Out>],
    faults: &mut Faults,
) -> usize {
    let last = nest.depth() - 1;
    let inner = nest.sizes[last];
    let step = nest.result[last] as usize;
    let rows: usize = nest.sizes[nest.outer..last].iter().product();
    let near = rows.saturating_mul(inner).saturating_mul(size_of::<K::Elem>()) <= NEAR;
    let width = if near { TILE } else { (WIDTH / size_of::<R::Acc>().max(1)).max(TILE) };
    let mut block = Vec::new();
    let mut start = 0;
    while start < inner {
        let len = width.min(inner - start);
        block.clear();
        block.resize(len, reducer.start());
        let mut levels = Levels::new(len);
        across_block::<I, K, R>(kernel, nest, at, start, reducer, &mut block, &mut levels, faults);
        if faults.any() {
            return inner;
        }
        levels.finish::<I, K::Elem, R>(&mut block, reducer);
        for (x, &acc) in block.iter().enumerate() {
            out[(start + x) * step].write(reducer.finish(acc, count));
        }
        start += len;
    }
    inner
}

/// Adds the elements of all reduced loops to `block`: the accumulators of the results from `start`
/// on, along the innermost loop. After every [`BLOCK`] elements of each result, moves the totals to
/// `levels`.
#[cfg_attr(not(unoptimized), inline(always))]
#[allow(clippy::too_many_arguments)]
fn across_block<I: Isa, K: Kernel, R: Reducer<K::Elem>>(
    kernel: &mut K,
    nest: &Nest,
    at: &mut [usize],
    start: usize,
    reducer: R,
    block: &mut [R::Acc],
    levels: &mut Levels<R::Acc>,
    faults: &mut Faults,
) {
    let last = nest.depth() - 1;
    let mut odometer = Odometer::new(&nest.sizes[nest.outer..last]);
    let mut seen = 0;
    let mut moved = None;
    // Elements at computed indices come in an order that the hardware cannot predict.
    let prefetches_gathered = K::GATHERS && last > nest.outer && block.len() <= TILE;
    let far = !K::GATHERS && last > nest.outer && block.len() > TILE && is_far::<K::Elem>(nest);
    let tiles = block.len().div_ceil(TILE);
    while !odometer.is_done() {
        if prefetches_gathered {
            prefetch_gathered::<I, K>(kernel, nest, at, start, block.len());
            moved = None;
        }
        for (tile, accs) in block.chunks_mut(TILE).enumerate() {
            if far {
                // After the last tile of a row comes the next row of the block.
                let next = tile + PREFETCH_TILES;
                let row = usize::from(next >= tiles);
                at[last - 1] += row;
                at[last] = start + (next - row * tiles.min(next)) * TILE;
                kernel.prefetch::<I>(&Tile { at, len: accs.len(), mask: None, moved: None });
                at[last - 1] -= row;
            }
            at[last] = start + tile * TILE;
            kernel.load::<I>(&Tile { at, len: accs.len(), mask: None, moved }, faults);
            if faults.any() {
                return;
            }
            // SAFETY: the tile was just loaded, without a mask and without a fault.
            unsafe { across_tile::<I, K, R>(kernel, accs, seen, reducer) };
            moved = Some((last, accs.len()));
        }
        seen += 1;
        if seen % BLOCK == 0 {
            levels.push::<I, K::Elem, R>(block, reducer);
        }
        let next = odometer.advance(&mut at[nest.outer..last]).map(|at| (nest.outer + at, 1));
        moved = if block.len() <= TILE { next } else { None };
    }
}

/// The prefetch distance of rows at computed indices, in steps of the innermost reduced loop.
const PREFETCH_GATHERED: usize = 3;

/// Prefetches the elements that are added [`PREFETCH_GATHERED`] steps later: `len` elements from
/// `start` on, which belong to this row of the result or to the next one.
#[cfg_attr(not(unoptimized), inline(always))]
fn prefetch_gathered<I: Isa, K: Kernel>(
    kernel: &mut K,
    nest: &Nest,
    at: &mut [usize],
    start: usize,
    len: usize,
) {
    let last = nest.depth() - 1;
    let loop_ = last - 1;
    let (here, size) = (at[loop_], nest.sizes[loop_]);
    at[last] = start;
    if here + PREFETCH_GATHERED < size {
        at[loop_] = here + PREFETCH_GATHERED;
        kernel.prefetch::<I>(&Tile { at, len, mask: None, moved: None });
    } else if last == nest.outer + 1 && nest.outer > 0 && here + PREFETCH_GATHERED - size < size {
        let outer = nest.outer - 1;
        if at[outer] + 1 < nest.sizes[outer] {
            at[outer] += 1;
            at[loop_] = here + PREFETCH_GATHERED - size;
            kernel.prefetch::<I>(&Tile { at, len, mask: None, moved: None });
            at[outer] -= 1;
        }
    }
    at[loop_] = here;
}

/// Adds each element of a tile to the state of its position.
///
/// # Safety
///
/// The kernel has loaded a tile with an element for each state, without a mask and without a fault.
#[cfg_attr(not(unoptimized), inline(always))]
unsafe fn across_tile<I: Isa, K: Kernel, R: Reducer<K::Elem>>(
    kernel: &K,
    block: &mut [R::Acc],
    seen: usize,
    reducer: R,
) {
    for (x, acc) in block.iter_mut().enumerate() {
        // SAFETY: the caller's promise.
        *acc = reducer.step::<I>(*acc, unsafe { kernel.get::<I>(x) }, seen);
    }
}

/// Adds `total`, the `count`th total (counted from 1), to `levels`. Totals of equally many elements
/// are combined, like the carries of a binary counter, so rounding errors grow with the logarithm
/// of the number of totals.
#[cfg_attr(not(unoptimized), inline(always))]
pub fn push<I: Isa, T, R: Reducer<T>>(
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

/// The total of all levels and of the last state.
#[cfg_attr(not(unoptimized), inline(always))]
pub fn total<I: Isa, T, R: Reducer<T>>(levels: SmallVec<[R::Acc; 12]>, last: R::Acc, reducer: R) -> R::Acc {
    levels.into_iter().rev().fold(last, |right, left| reducer.join::<I>(left, right))
}
