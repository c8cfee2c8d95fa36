//! Reductions: loops that combine many elements into one.
//!
//! Sums are as accurate as pairwise summation: along the innermost loop there are many accumulators, whose totals are
//! combined like a binary counter; across it, partial sums over `BLOCK` elements are combined.

use super::isa::{Baseline, Isa, Task, dispatch};
use super::strided::fetch_row;
use super::threads::{self, Carried};
use super::{Faults, Kernel, TILE, Tile};
use crate::error::DimError;
use crate::plan::nest::{Nest, Odometer, Parts};
use crate::storage::memory::reserve;
use alloc::vec::Vec;
use core::mem::MaybeUninit;
use smallvec::SmallVec;

/// Accumulators along the innermost loop.
const LANES: usize = 32;

/// How many elements are added to an accumulator at once, so that it is fetched and stored less often.
const ROWS: usize = 4;

/// As `LANES`, for what is left of a loop or for a short one.
const FEW: usize = 8;

/// How many elements are added to one accumulator before it is combined with others.
const BLOCK: usize = 128;

/// Bytes of accumulators across the innermost loop, if its rows are long: they stay in the first-level cache while memory is read
/// from one end to the other.
const WIDTH: usize = 32 << 10;

/// Bytes that lie in the second-level cache.
const NEAR: usize = 512 << 10;

/// A reduction to one element is cut into parts of about so many elements, whatever the number of threads, so that
/// the result does not depend on it.
const PART: usize = 1 << 17;

/// How elements are combined.
pub trait Reducer<T>: Copy {
    /// Its name in plans.
    const NAME: &'static str;
    /// The state of a partial result.
    type Acc: Copy + Send;
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

/// Runs a reduction; the result has `len` elements in the order of the kept axes.
///
/// `kernel` lowers the expression for a nest, or for a part of one: several parts run on as many threads as `work` elements are
/// worth.
pub fn reduce<'n, K: Kernel, R: Reducer<K::Elem, Out: Send>>(
    nest: &'n Nest,
    parts: &'n mut Parts,
    kernel: impl Fn(&'n Nest) -> K,
    work: usize,
    len: usize,
    count: usize,
    reducer: R,
) -> Result<Vec<R::Out>, DimError> {
    let mut out = reserve(len)?;
    let mut rest = &mut out.spare_capacity_mut()[..len];
    if len == 1 && nest.outer == 0 && !nest.inner_kept && work >= 2 * PART {
        rest[0].write(reducer.finish(single(nest, parts, kernel, reducer)?, count));
    } else if threads::parts(work) <= 1 {
        dispatch(Reduce { kernel: kernel(nest), nest, count, reducer, out: Out::Results(rest) })?;
    } else {
        *parts = nest.for_threads(work);
        let mut work = Vec::with_capacity(parts.len());
        for nest in &*parts {
            let (own, others) = rest.split_at_mut(nest.results());
            rest = others;
            let task = Reduce { kernel: kernel(nest), nest, count, reducer, out: Out::Results(own) };
            // SAFETY: kernels read elements, which are `Sync`; operations are plain values wherever `PARALLEL` lets
            // there be several parts; the places are each part's own.
            work.push(unsafe { Carried::new(task) });
        }
        threads::each(work, |part| dispatch(part.into_inner())).into_iter().collect::<Result<(), _>>()?;
    }
    // SAFETY: the kept loops of all parts cover each of the `len` places once, as `Reduce` writes one for each of their
    // positions; it returned no error.
    unsafe { out.set_len(len) };
    Ok(out)
}

/// A reduction to a single element, in parts along the outermost loop whose states are joined pairwise.
fn single<'n, K: Kernel, R: Reducer<K::Elem, Out: Send>>(
    nest: &'n Nest,
    parts: &'n mut Parts,
    kernel: impl Fn(&'n Nest) -> K,
    reducer: R,
) -> Result<R::Acc, DimError> {
    *parts = nest.split(0, nest.positions().div_ceil(PART).min(256));
    let mut states = vec![reducer.start(); parts.len()];
    let mut work = Vec::with_capacity(parts.len());
    let mut first = 0;
    for (nest, state) in parts.iter().zip(&mut states) {
        let task = Reduce { kernel: kernel(nest), nest, count: 0, reducer, out: Out::State(state, first) };
        first += nest.positions();
        // SAFETY: as in `reduce`.
        work.push(unsafe { Carried::new(task) });
    }
    threads::each(work, |part| dispatch(part.into_inner())).into_iter().collect::<Result<(), _>>()?;
    while states.len() > 1 {
        states = states
            .chunks(2)
            .map(|pair| {
                pair.iter()
                    .copied()
                    .reduce(|a, b| reducer.join::<Baseline>(a, b))
                    .expect("a chunk has a state")
            })
            .collect();
    }
    Ok(states[0])
}

/// What a part of a reduction yields.
enum Out<'n, A, T> {
    /// Elements of the result.
    Results(&'n mut [MaybeUninit<T>]),
    /// The state of one, whose first element is the so-manieth.
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
    type Out = Result<(), DimError>;

    #[inline(always)]
    fn run<I: Isa>(self) -> Result<(), DimError> {
        let Reduce { mut kernel, nest, count, reducer, out } = self;
        let (out, mut state, first) = match out {
            Out::Results(out) => (out, None, 0),
            Out::State(state, first) => (Default::default(), Some(state), first),
        };
        if out.is_empty() && state.is_none() {
            // The loops may be long, though there is nothing to write.
            return Ok(());
        }
        let mut faults = Faults::default();
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
                        .zip(&nest.result)
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

/// Accumulators along the innermost loop.
struct Lanes<A> {
    lanes: [A; LANES],
    /// How many of the lanes are in use.
    used: usize,
    /// What fills no lanes.
    tail: A,
    /// How many elements have been added to the accumulator that has most.
    steps: usize,
}

impl<A: Copy> Lanes<A> {
    #[inline(always)]
    fn new<T, R: Reducer<T, Acc = A>>(reducer: R) -> Self {
        Lanes { lanes: [reducer.start(); LANES], used: 0, tail: reducer.start(), steps: 0 }
    }

    /// Adds a tile that was just loaded; its first element is the `seen`th.
    #[inline(always)]
    fn add<I: Isa, K: Kernel, R: Reducer<K::Elem, Acc = A>>(
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
    fn total<I: Isa, T, R: Reducer<T, Acc = A>>(&self, reducer: R) -> A {
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

/// One element of the result, whose innermost loop is reduced. `seen` elements come before its own; `moved` is the one loop in which the
/// position has moved since the last call, if it is one.
#[inline(always)]
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
        // The loops around may be long, though there is nothing in them.
        return reducer.start();
    }
    let mut lanes = Lanes::new::<K::Elem, R>(reducer);
    if nest.outer == last && inner <= TILE {
        // One short loop, the common case, needs no totals.
        let moved = moved.map(|at| (at, 1));
        kernel.load::<I>(&Tile { at, len: inner, mask: None, moved }, faults);
        if faults.any() {
            return reducer.start();
        }
        lanes.add::<I, K, R>(kernel, inner, seen, reducer);
        return lanes.total::<I, K::Elem, R>(reducer);
    }
    let mut totals = SmallVec::new();
    let mut blocks = 0;
    let mut seen = seen;
    let mut moved = None;
    let mut odometer = Odometer::new(&nest.sizes[nest.outer..last]);
    while !odometer.is_done() {
        let mut start = 0;
        while start < inner {
            let len = TILE.min(inner - start);
            at[last] = start;
            kernel.load::<I>(&Tile { at, len, mask: None, moved }, faults);
            // After a fault nothing is computed: what stands in for the element could, for one, be divided by.
            if faults.any() {
                return reducer.start();
            }
            lanes.add::<I, K, R>(kernel, len, seen, reducer);
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

/// A row of the result, whose innermost loop is kept. Returns how many elements that is.
#[inline(always)]
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

/// The rows of a block, added one after the other.
#[inline(always)]
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
    if K::GATHERS
        && last == nest.outer + 1
        && across_rows::<I, K, R>(kernel, nest, at, start, reducer, block, levels, faults)
    {
        return;
    }
    let mut odometer = Odometer::new(&nest.sizes[nest.outer..last]);
    let mut seen = 0;
    let mut moved = None;
    // Elements at computed places come in no order that the machine could guess.
    let ahead = K::GATHERS && last > nest.outer && block.len() <= TILE;
    while !odometer.is_done() {
        if ahead {
            fetch_ahead::<I, K>(kernel, nest, at, start, block.len());
            moved = None;
        }
        for (tile, accs) in block.chunks_mut(TILE).enumerate() {
            at[last] = start + tile * TILE;
            kernel.load::<I>(&Tile { at, len: accs.len(), mask: None, moved }, faults);
            if faults.any() {
                return;
            }
            across_tile::<I, K, R>(kernel, accs, seen, reducer);
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

/// As `across_block`, for rows at computed places in memory along one reduced loop: their places are computed first, then the rows are
/// added, a strip of each at a time, whose accumulators stay in registers. Returns whether the kernel could do that.
#[inline(always)]
#[allow(clippy::too_many_arguments)]
fn across_rows<I: Isa, K: Kernel, R: Reducer<K::Elem>>(
    kernel: &mut K,
    nest: &Nest,
    at: &mut [usize],
    start: usize,
    reducer: R,
    block: &mut [R::Acc],
    levels: &mut Levels<R::Acc>,
    faults: &mut Faults,
) -> bool {
    let (along, last) = (nest.outer, nest.outer + 1);
    let rows = nest.sizes[along];
    let mut starts = [core::ptr::null(); BLOCK];
    let mut seen = 0;
    while seen < rows {
        let starts = &mut starts[..BLOCK.min(rows - seen)];
        (at[along], at[last]) = (seen, start);
        if !kernel.starts::<I>(at, along, starts, faults) {
            at[along] = 0;
            return false;
        }
        if faults.any() {
            break;
        }
        for (strip, accs) in block.chunks_mut(LANES).enumerate() {
            let skipped = strip * LANES;
            let rest = if strip == 0 { nest.sizes[last].min(TILE) } else { 0 };
            if let Ok(accs) = <&mut [R::Acc; LANES]>::try_from(&mut *accs) {
                let mut own = *accs;
                for (row, &place) in starts.iter().enumerate() {
                    fetch_row(starts[(row + AHEAD).min(starts.len() - 1)], rest);
                    for (x, acc) in own.iter_mut().enumerate() {
                        // SAFETY: the row lies in memory from its start on, and is as long as the innermost loop.
                        *acc = reducer.step::<I>(*acc, unsafe { *place.add(skipped + x) }, seen + row);
                    }
                }
                *accs = own;
            } else {
                for (row, &place) in starts.iter().enumerate() {
                    for (x, acc) in accs.iter_mut().enumerate() {
                        // SAFETY: as above.
                        *acc = reducer.step::<I>(*acc, unsafe { *place.add(skipped + x) }, seen + row);
                    }
                }
            }
        }
        seen += starts.len();
        if seen % BLOCK == 0 {
            levels.push::<I, K::Elem, R>(block, reducer);
        }
    }
    at[along] = 0;
    true
}

/// How many tiles ahead elements at computed places are asked for.
const AHEAD: usize = 3;

/// Asks the memory for the row that comes some steps later, in this element of the result or in the next.
#[inline(always)]
fn fetch_ahead<I: Isa, K: Kernel>(kernel: &mut K, nest: &Nest, at: &mut [usize], start: usize, len: usize) {
    let last = nest.depth() - 1;
    let loop_ = last - 1;
    let (here, size) = (at[loop_], nest.sizes[loop_]);
    at[last] = start;
    if here + AHEAD < size {
        at[loop_] = here + AHEAD;
        kernel.fetch::<I>(&Tile { at, len, mask: None, moved: None });
    } else if last == nest.outer + 1 && nest.outer > 0 && here + AHEAD - size < size {
        let outer = nest.outer - 1;
        if at[outer] + 1 < nest.sizes[outer] {
            at[outer] += 1;
            at[loop_] = here + AHEAD - size;
            kernel.fetch::<I>(&Tile { at, len, mask: None, moved: None });
            at[outer] -= 1;
        }
    }
    at[loop_] = here;
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

/// Rows of totals that are combined like the carries of a binary counter, so that rounding errors grow with the logarithm of their
/// number: level `i` holds the total of `2^i` rows if bit `i` of their number is set.
struct Levels<A> {
    width: usize,
    count: usize,
    rows: Vec<A>,
}

impl<A: Copy> Levels<A> {
    #[inline(always)]
    fn new(width: usize) -> Self {
        Levels { width, count: 0, rows: Vec::new() }
    }

    /// Takes a row of totals, and leaves it as it was before the first element.
    #[inline(always)]
    fn push<I: Isa, T, R: Reducer<T, Acc = A>>(&mut self, row: &mut [A], reducer: R) {
        self.count += 1;
        let level = self.count.trailing_zeros() as usize;
        for lower in self.rows.chunks_exact(self.width).take(level) {
            for (total, &part) in row.iter_mut().zip(lower) {
                *total = reducer.join::<I>(part, *total);
            }
        }
        let place = level * self.width;
        if place == self.rows.len() {
            self.rows.resize(place + self.width, reducer.start());
        }
        self.rows[place..place + self.width].copy_from_slice(row);
        row.fill(reducer.start());
    }

    /// Joins the totals of all levels to what came last.
    #[inline(always)]
    fn finish<I: Isa, T, R: Reducer<T, Acc = A>>(&self, last: &mut [A], reducer: R) {
        for (level, row) in self.rows.chunks_exact(self.width).enumerate() {
            if self.count >> level & 1 == 1 {
                for (total, &part) in last.iter_mut().zip(row) {
                    *total = reducer.join::<I>(part, *total);
                }
            }
        }
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

/// The total of all levels and of what came last.
#[inline(always)]
fn total<I: Isa, T, R: Reducer<T>>(levels: SmallVec<[R::Acc; 12]>, last: R::Acc, reducer: R) -> R::Acc {
    levels.into_iter().rev().fold(last, |right, left| reducer.join::<I>(left, right))
}
