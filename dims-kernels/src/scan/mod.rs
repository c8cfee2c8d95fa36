//! Operations along lines, such as cumulative sums and softmax. Usually, the elements of a block of
//! lines are computed first, and the operation then runs in place while they are in the cache.
//! Contiguous lines that are already in memory are not copied first.

pub(crate) mod line;
pub mod norm;
#[cfg(feature = "std")]
pub(crate) mod pull;
mod running;

pub use running::{Cumulate, CumulateBest, CumulateLogSumExp, CumulateProduct};

use crate::error::Error;
use crate::load::strided::Strided;
use crate::load::tiles::{Tiles, fill_tile};
use crate::load::{Faults, Kernel, TILE};
use crate::loops::nest::{Nest, Odometer};
use crate::machine::isa::{Isa, Task, dispatch};
use crate::machine::threads::{self, Carried};
use crate::memory::destination::Destination;
use crate::memory::elements::Elements;
use crate::ops::code::LineWork;
use crate::reduce::fold::{LANES, fold, together};
use crate::scalar::{Element, Num, Real};
use crate::scan::line::Line;
use alloc::vec::Vec;
use core::mem::MaybeUninit;
use smallvec::SmallVec;

/// An operation along lines.
pub trait LineOp<T: Copy>: Copy + Send + Sync {
    /// The name in plans.
    const NAME: &'static str;

    /// Whether the operation requires contiguous lines: `inner` is 1 in calls of
    /// [`block`](LineOp::block).
    const NEIGHBORS: bool = false;

    /// The kind of operation, for derivatives.
    fn derivative(&self) -> LineWork {
        LineWork::Opaque
    }

    /// Processes a block of lines: there are `inner` lines, whose elements are `inner` apart.
    fn block<I: Isa>(&self, block: &mut [T], inner: usize);

    /// Processes one contiguous line, whose results may go elsewhere.
    #[cfg_attr(not(unoptimized), inline(always))]
    fn line<I: Isa>(&self, mut line: Line<'_, T>) {
        self.block::<I>(line.map(|value| value), 1);
    }

    /// Processes contiguous lines of equal length, whose results go elsewhere.
    #[cfg_attr(not(unoptimized), inline(always))]
    fn lines<'l, I: Isa>(&self, lines: impl Iterator<Item = Line<'l, T>>)
    where
        T: 'l,
    {
        // Not a closure, whose body would be compiled for the baseline instructions.
        for line in lines {
            self.line::<I>(line);
        }
    }

    /// Processes contiguous blocks in place. For common operations and element types, this function
    /// and the next are [compiled](crate::compiled) with the library.
    #[cfg_attr(not(unoptimized), inline(always))]
    fn blocks(self, data: &mut [T], block: usize, inner: usize) {
        blocks(self, data, block, inner);
    }

    /// Processes elements in memory, whose results go elsewhere.
    #[cfg_attr(not(unoptimized), inline(always))]
    fn collect_memory(self, memory: ScanInput<'_, T>) -> Result<Vec<T>, Error>
    where
        T: Element,
    {
        memory.collect(self)
    }
}

/// An operation along lines as two functions, compiled here for `f32` and `f64`: one in place, and
/// one for elements in memory whose results go elsewhere.
macro_rules! along {
    ($blocks:ident, $memory:ident, $bound:ident, $work:ty) => {
        $crate::compiled::compiled! {
            for f32 f64:
            fn $blocks<'a, T: $bound>(work: $work, data: &'a mut [T], block: usize, inner: usize) {
                $crate::scan::blocks(work, data, block, inner)
            }
        }

        $crate::compiled::compiled! {
            for f32 f64:
            fn $memory<'a, T: $bound>(work: $work, memory: $crate::scan::ScanInput<'a, T>) -> Result<Vec<T>, Error> {
                memory.collect(work)
            }
        }
    };
}

use along;

/// Processes contiguous blocks of lines in place.
pub fn blocks<T: Copy, W: LineOp<T>>(along: W, data: &mut [T], block: usize, inner: usize) {
    dispatch(BlockInPlace { data, block, inner, along });
}

/// The input of operations along lines: elements in memory.
pub struct ScanInput<'a, T> {
    elements: Elements<'a, T>,
    parts: &'a [Nest],
    len: usize,
    inner: usize,
}

impl<'a, T> ScanInput<'a, T> {
    /// Elements with a row of strides in each of `parts`, the parts of a loop nest. The first
    /// [`outer`](Nest::outer) loops of each part run over blocks of lines. There are `len` results,
    /// in which the elements of a line are `inner` apart.
    ///
    /// # Safety
    ///
    /// In each part, the row of strides maps every position of the loops to a position of the
    /// elements' axes.
    #[cfg_attr(not(unoptimized), inline(always))]
    pub unsafe fn new(elements: Elements<'a, T>, parts: &'a [Nest], len: usize, inner: usize) -> Self {
        ScanInput { elements, parts, len, inner }
    }
}

impl<T: Element> ScanInput<'_, T> {
    /// The results.
    pub fn collect<W: LineOp<T>>(self, along: W) -> Result<Vec<T>, Error> {
        let ScanInput { elements, parts, len, inner } = self;
        in_parts(
            Destination::of_step(len),
            parts.iter(),
            |nest| nest.positions(),
            |nest, out| {
                // SAFETY: each position of the nest, over which the kernel runs, is an element, as
                // the caller of `new` promised.
                let kernel = unsafe { Strided::<T, ()>::new(elements, nest.operands().next_row(), ()) };
                if inner == 1 && !out.is_empty() && are_lines(&kernel, nest) {
                    dispatch(LineScan { kernel, nest, out, along });
                    return Ok(());
                }
                dispatch(Scan { kernel, nest, out, inner, along: &along })
            },
        )
    }
}

/// The elements of the parts of a loop nest, after the operation along their lines. The first
/// [`outer`](Nest::outer) loops of each part run over blocks of lines. The elements of a line are
/// `inner` apart in the result.
///
/// # Panics
///
/// If there are several parts although the kernel may not run on several threads, or if the parts
/// do not have as many positions as `to` has slots.
pub fn collect<'n, K: Kernel<Elem: Send>, W: LineOp<K::Elem>>(
    parts: impl ExactSizeIterator<Item = (K, &'n Nest)>,
    inner: usize,
    along: W,
    to: Destination<'_, K::Elem>,
) -> Result<Vec<K::Elem>, Error> {
    assert!(K::PARALLEL || parts.len() <= 1, "kernels with a user's closure run on one thread");
    if let Destination::Reused(_) = to {
        let len = to.len();
        // SAFETY: these are `len` slots, whose elements the kernels read only at the positions that
        // they write. All are written, or there is an error.
        return unsafe { to.write(|place| replace(parts, place, len, inner, along)) };
    }
    in_parts(
        to,
        parts,
        |(_, nest)| nest.positions(),
        |(kernel, nest), out| dispatch(Scan { kernel, nest, out, inner, along: &along }),
    )
}

/// Calls `run` with each of `parts`, in parallel. Each call writes as many elements as the part has
/// positions, or returns an error.
fn in_parts<T: Copy + Send + 'static, P>(
    to: Destination<'_, T>,
    parts: impl ExactSizeIterator<Item = P>,
    positions: impl Fn(&P) -> usize,
    run: impl Fn(P, &mut [MaybeUninit<T>]) -> Result<(), Error> + Sync,
) -> Result<Vec<T>, Error> {
    let fill = |mut rest: &mut [MaybeUninit<T>]| {
        let mut work = Vec::with_capacity(parts.len());
        for part in parts {
            let (own, others) = rest.split_at_mut(positions(&part));
            rest = others;
            // SAFETY: a part is a nest, or a kernel with one: kernels read elements, which are
            // `Sync`, and their operations are plain values if there are several parts, as callers
            // assert. Each part has separate slots.
            work.push(unsafe { Carried::new((part, own)) });
        }
        assert!(rest.is_empty(), "the parts cover the result");
        let run = |work: Carried<(P, &mut [MaybeUninit<T>])>| {
            let (part, own) = work.into_inner();
            run(part, own)
        };
        threads::each(work, run).into_iter().collect()
    };
    // SAFETY: each part writes as many elements as it has positions, which are all slots in total,
    // or returns an error.
    unsafe { to.fill(fill) }
}

/// Like [`collect`], into the `len` slots of elements that the kernels read.
///
/// # Safety
///
/// The slots are valid for writes. Nothing else accesses them, except kernels that read each slot
/// only at the position that they write.
unsafe fn replace<'n, K: Kernel<Elem: Send>, W: LineOp<K::Elem>>(
    parts: impl ExactSizeIterator<Item = (K, &'n Nest)>,
    place: *mut K::Elem,
    len: usize,
    inner: usize,
    along: W,
) -> Result<(), Error> {
    let mut done: usize = 0;
    let mut work = Vec::with_capacity(parts.len());
    for (kernel, nest) in parts {
        let len = nest.positions();
        let part = ReplacingScan { kernel, nest, place: place.wrapping_add(done), len, inner, along: &along };
        // SAFETY: kernels read elements, which are `Sync`. Their operations are plain values if
        // there are several parts, as the caller asserts. The slots of a part are the elements of
        // the expression at the part's positions, which no other part reads or writes.
        work.push(unsafe { Carried::new(part) });
        done = done.saturating_add(len);
    }
    assert_eq!(done, len, "the loop nests cover the result");
    threads::each(work, |scan| dispatch(scan.into_inner())).into_iter().collect()
}

/// Like [`collect`], for the elements of a slice, in blocks of `block` elements. The blocks are
/// split into at most `parts` parts, which run in parallel.
pub fn in_place<T: Copy + Send, W: LineOp<T>>(
    data: &mut [T],
    block: usize,
    inner: usize,
    parts: usize,
    along: W,
) {
    if data.is_empty() {
        return;
    }
    let blocks = data.len() / block;
    let pieces: Vec<_> = data.chunks_mut(blocks.div_ceil(parts.max(1)) * block).collect();
    threads::each(pieces, |data| along.blocks(data, block, inner));
}

struct BlockInPlace<'d, T, W> {
    data: &'d mut [T],
    block: usize,
    inner: usize,
    along: W,
}

impl<T: Copy, W: LineOp<T>> Task for BlockInPlace<'_, T, W> {
    type Out = ();
    const WIDE: bool = true;

    #[cfg_attr(not(unoptimized), inline(always))]
    fn run<I: Isa>(self) {
        for block in self.data.chunks_exact_mut(self.block) {
            self.along.block::<I>(block, self.inner);
        }
    }
}

/// [`LineOp::blocks`] of any operation.
trait LineBlocks<T> {
    fn blocks(&self, data: &mut [T], block: usize, inner: usize);
}

impl<T: Copy, W: LineOp<T>> LineBlocks<T> for W {
    fn blocks(&self, data: &mut [T], block: usize, inner: usize) {
        LineOp::blocks(*self, data, block, inner);
    }
}

/// An operation along lines of computed elements. The operation is a trait object, called once for
/// several lines, so that fewer loops are compiled.
struct Scan<'n, K: Kernel> {
    kernel: K,
    nest: &'n Nest,
    out: &'n mut [MaybeUninit<K::Elem>],
    inner: usize,
    along: &'n dyn LineBlocks<K::Elem>,
}

impl<K: Kernel> Task for Scan<'_, K> {
    type Out = Result<(), Error>;
    const WIDE: bool = K::LONG;

    #[cfg_attr(not(unoptimized), inline(always))]
    fn run<I: Isa>(self) -> Result<(), Error> {
        let Scan { mut kernel, nest, out, inner, along } = self;
        if out.is_empty() {
            return Ok(());
        }
        let block: usize = nest.sizes[nest.outer..].iter().product();
        let mut faults = Faults::default();
        let mut tiles = Tiles::new(nest);
        for blocks in out.chunks_mut(some_blocks(block)) {
            let mut done = 0;
            while done < blocks.len() {
                let Some(tile) = tiles.tile() else { unreachable!("the loop nest covers the result") };
                kernel.load::<I>(&tile, &mut faults);
                // After a fault, nothing is computed. For example, an element whose index is out of
                // range has a substitute, which could be 0 and used as a divisor.
                if faults.any() {
                    return faults.into_result();
                }
                // SAFETY: the tile was just loaded, without a mask and without a fault.
                unsafe { fill_tile::<I, K>(&kernel, &mut blocks[done..done + tile.len]) };
                done += tile.len;
                tiles.advance();
            }
            // SAFETY: all of the blocks were just written.
            let data = unsafe { &mut *(blocks as *mut [MaybeUninit<K::Elem>] as *mut [K::Elem]) };
            along.blocks(data, block, inner);
        }
        Ok(())
    }
}

/// How many elements are computed before the operation runs along their lines: whole blocks, which
/// stay in the first-level cache if they are short.
fn some_blocks(block: usize) -> usize {
    block * (TILE / block.max(1)).max(1)
}

/// An operation along lines in memory whose results go elsewhere: the lines are read in place.
struct LineScan<'n, K: Kernel, W> {
    kernel: K,
    nest: &'n Nest,
    out: &'n mut [MaybeUninit<K::Elem>],
    along: W,
}

impl<K: Kernel, W: LineOp<K::Elem>> Task for LineScan<'_, K, W> {
    type Out = ();
    const WIDE: bool = true;

    /// The hardware prefetches the lines. A software prefetch of the next line here would take more
    /// time than it saves. Only [`Line::overlapped`] prefetches.
    #[cfg_attr(not(unoptimized), inline(always))]
    fn run<I: Isa>(self) {
        let LineScan { kernel, nest, out, along } = self;
        let len = nest.sizes[nest.outer];
        let mut at: SmallVec<[usize; 8]> = SmallVec::from_elem(0, nest.depth());
        let mut odometer = Odometer::new(&nest.sizes[..nest.outer]);
        let lines = out.chunks_exact_mut(len).map(|out| {
            let (from, _) = kernel.steps(&at, nest.outer).expect("all lines are in memory");
            odometer.advance(&mut at[..nest.outer]);
            // SAFETY: the kernel says that the innermost loop runs over elements from there on. The
            // result is new memory.
            unsafe { Line::new(from, out.as_mut_ptr().cast(), len) }
        });
        along.lines::<I>(lines);
    }
}

/// Whether lines are contiguous in memory.
fn are_lines<K: Kernel>(kernel: &K, nest: &Nest) -> bool {
    let origin: SmallVec<[usize; 8]> = SmallVec::from_elem(0, nest.depth());
    nest.depth() == nest.outer + 1 && matches!(kernel.steps(&origin, nest.outer), Some((_, 1)))
}

/// Like [`Scan`], for slots that the kernel may read from, at the same positions: each tile is
/// computed into a buffer before it is written.
struct ReplacingScan<'n, K: Kernel> {
    kernel: K,
    nest: &'n Nest,
    place: *mut K::Elem,
    len: usize,
    inner: usize,
    along: &'n dyn LineBlocks<K::Elem>,
}

impl<K: Kernel> Task for ReplacingScan<'_, K> {
    type Out = Result<(), Error>;
    const WIDE: bool = K::LONG;

    #[cfg_attr(not(unoptimized), inline(always))]
    fn run<I: Isa>(self) -> Result<(), Error> {
        let ReplacingScan { mut kernel, nest, place, len, inner, along } = self;
        let block: usize = nest.sizes[nest.outer..].iter().product();
        let mut buffer = [const { MaybeUninit::<K::Elem>::uninit() }; TILE];
        let mut faults = Faults::default();
        let mut tiles = Tiles::new(nest);
        let some = some_blocks(block);
        let (mut done, mut worked) = (0, 0);
        while let Some(tile) = tiles.tile() {
            kernel.load::<I>(&tile, &mut faults);
            if faults.any() {
                return faults.into_result();
            }
            // SAFETY: the tile was just loaded, without a mask and without a fault.
            unsafe { fill_tile::<I, K>(&kernel, &mut buffer[..tile.len]) };
            // SAFETY: these are slots from the caller of `replace`, as many as the nest has
            // positions. The kernel may read them, but not while they are written.
            unsafe { core::ptr::copy_nonoverlapping(buffer.as_ptr().cast(), place.add(done), tile.len) };
            done += tile.len;
            tiles.advance();
            if done - worked == some || done == len {
                // SAFETY: the slots from `worked` to `done` are from the caller of `replace`, and
                // were all written. These blocks are complete, so the kernel does not read them any
                // more.
                let data = unsafe { core::slice::from_raw_parts_mut(place.add(worked), done - worked) };
                along.blocks(data, block, inner);
                worked = done;
            }
        }
        assert_eq!(done, len, "the loop nest covers the result");
        Ok(())
    }
}

along!(softmax_blocks, softmax_memory, Real, Softmax<false>);
along!(log_softmax_blocks, log_softmax_memory, Real, Softmax<true>);

/// `exp(x - max) / sum of exp(x - max)` along each line; its logarithm if `LOG`.
#[derive(Clone, Copy)]
pub struct Softmax<const LOG: bool>;

impl<T: Real, const LOG: bool> LineOp<T> for Softmax<LOG> {
    const NAME: &'static str = if LOG { "log_softmax" } else { "softmax" };

    fn derivative(&self) -> LineWork {
        LineWork::Softmax { log: LOG }
    }

    #[cfg_attr(not(unoptimized), inline(always))]
    fn block<I: Isa>(&self, block: &mut [T], inner: usize) {
        if inner == 1 {
            self.line::<I>(Line::in_place(block));
            return;
        }
        // A row has one element of each line. If there are few lines, several rows are processed
        // together to fill vectors: `wide` elements.
        let wide = inner * (2 * LANES).div_ceil(inner);
        let mut greatest = vec![T::LOWEST; wide];
        let mut sum = vec![T::Wide::ZERO; wide];
        for rows in block.chunks(wide) {
            // NaN need not be the greatest element: see [`greater`].
            for (greatest, &value) in greatest.iter_mut().zip(rows) {
                *greatest = if value > *greatest { value } else { *greatest };
            }
        }
        share_out(&mut greatest, inner, |a, b| if b > a { b } else { a });
        for rows in block.chunks_mut(wide) {
            for ((value, &greatest), sum) in rows.iter_mut().zip(&greatest).zip(&mut sum) {
                *value = share::<I, T, LOG>(*value, greatest, sum);
            }
        }
        share_out(&mut sum, inner, |a, b| a + b);
        sum.iter_mut().for_each(|sum| *sum = finally::<T, LOG>(*sum));
        for rows in block.chunks_mut(wide) {
            for (value, &last) in rows.iter_mut().zip(&sum) {
                *value = scaled::<T, LOG>(*value, last);
            }
        }
    }

    #[cfg_attr(not(unoptimized), inline(always))]
    fn line<I: Isa>(&self, mut line: Line<'_, T>) {
        let greatest = fold(line.elements(), T::LOWEST, greater, greater);
        let (line, sums) =
            line.map_and_sum(T::Wide::ZERO, |value, sum| share::<I, T, LOG>(value, greatest, sum));
        let last = finally::<T, LOG>(together(sums, |a, b| a + b));
        for value in line {
            *value = scaled::<T, LOG>(*value, last);
        }
    }

    /// Unless lines are very short or long, one pass computes the shares of a line, finds the
    /// greatest element of the next line, and divides the shares of the previous line by their sum
    /// (or subtracts its logarithm). So nothing waits for the last additions of a line, and memory
    /// traffic is spread over the time of the computation.
    #[cfg_attr(not(unoptimized), inline(always))]
    fn lines<'l, I: Isa>(&self, mut lines: impl Iterator<Item = Line<'l, T>>)
    where
        T: 'l,
    {
        let Some(first) = lines.next() else { return };
        let len = first.elements().len();
        if !(LANES..=SHARES).contains(&len) {
            for line in core::iter::once(first).chain(lines) {
                self.line::<I>(line);
            }
            return;
        }
        let mut buffer = vec![T::ZERO; 3 * len];
        let (nowhere, shares) = buffer.split_at_mut(len);
        let (mut own, mut before) = shares.split_at_mut(len);
        let (mut unscaled, mut last) = (Line::in_place(nowhere), T::Wide::ZERO);
        let mut next = Some((fold(first.elements(), T::LOWEST, greater, greater), first));
        while let Some((most, line)) = next {
            let next_line = lines.next();
            let elements = next_line.as_ref().unwrap_or(&line).elements();
            let share = |value, sum: &mut T::Wide| share::<I, T, LOG>(value, most, sum);
            let scale = |share| scaled::<T, LOG>(share, last);
            let (sums, greatest) =
                unscaled.overlapped((line.elements(), own, share), (elements, greater), (before, scale));
            last = finally::<T, LOG>(together(sums, |a, b| a + b));
            next = next_line.map(|line| (together(greatest, greater), line));
            (own, before) = (before, own);
            unscaled = line;
        }
        unscaled.write(before, |share| scaled::<T, LOG>(share, last));
    }

    #[cfg_attr(not(unoptimized), inline(always))]
    fn blocks(self, data: &mut [T], block: usize, inner: usize) {
        if LOG {
            log_softmax_blocks(Softmax, data, block, inner)
        } else {
            softmax_blocks(Softmax, data, block, inner)
        }
    }

    #[cfg_attr(not(unoptimized), inline(always))]
    fn collect_memory(self, memory: ScanInput<'_, T>) -> Result<Vec<T>, Error> {
        if LOG { log_softmax_memory(Softmax, memory) } else { softmax_memory(Softmax, memory) }
    }
}

/// The shares of a line with at most this many elements stay in the first-level cache.
const SHARES: usize = 2048;

/// The greater of two numbers. NaN need not be the greatest: it makes the sum NaN, and therefore
/// the whole line.
#[cfg_attr(not(unoptimized), inline(always))]
fn greater<T: Real>(a: T, b: T) -> T {
    if b > a { b } else { a }
}

/// The final factor of shares, or the final shift if they are logarithms.
#[cfg_attr(not(unoptimized), inline(always))]
fn finally<T: Real, const LOG: bool>(sum: T::Wide) -> T::Wide {
    if LOG { num_traits::Float::ln(sum) } else { num_traits::Float::recip(sum) }
}

#[cfg_attr(not(unoptimized), inline(always))]
fn scaled<T: Real, const LOG: bool>(share: T, last: T::Wide) -> T {
    let exact = share.widen();
    T::narrow(if LOG { exact - last } else { exact * last })
}

/// Combines the elements that are `inner` apart, and writes the result to all of their slots.
#[cfg_attr(not(unoptimized), inline(always))]
fn share_out<T: Copy>(states: &mut [T], inner: usize, combine: impl Fn(T, T) -> T) {
    let (first, others) = states.split_at_mut(inner);
    for row in others.chunks_exact(inner) {
        first.iter_mut().zip(row).for_each(|(state, &other)| *state = combine(*state, other));
    }
    others.chunks_exact_mut(inner).for_each(|row| row.copy_from_slice(first));
}

/// Returns `e^(value - greatest)` times a constant, and adds it to the sum. For the logarithm,
/// returns `value - greatest`, and adds the exponential without the constant.
///
/// A line of negative infinities becomes NaN, because of `-inf - -inf`.
#[cfg_attr(not(unoptimized), inline(always))]
fn share<I: Isa, T: Real, const LOG: bool>(value: T, greatest: T, sum: &mut T::Wide) -> T {
    let shifted = value - greatest;
    let share = if LOG { shifted.exp_down::<I>() } else { shifted.exp_share::<I>() };
    *sum = *sum + share.widen();
    if LOG { shifted } else { share }
}
