//! Elementwise loops: the drivers that run kernels over a nest, and write what they yield into new memory, or into memory that is there.

use crate::copy::copy;
use crate::error::Error;
use crate::load::prefetch::Fetches;
use crate::load::tiles::{Tiles, fill_tile, fill_tile_ahead};
use crate::load::{Faults, Kernel, TILE};
use crate::loops::nest::{Nest, Odometer};
use crate::loops::steps::{Loops, Step, record};
use crate::machine::isa::{Isa, Task, dispatch};
use crate::machine::threads::{self, Carried};
use crate::memory::allocate::reserve;
use crate::memory::elements::{Elements, Places};
use crate::memory::freed::Freed;
use crate::scalar::Element;
use alloc::vec::Vec;
use core::mem::MaybeUninit;
use smallvec::SmallVec;

/// The elements of a loop nest in its order, as a new vector of `len` elements.
pub fn collect<K: Kernel>(kernel: K, nest: &Nest, len: usize) -> Result<Vec<K::Elem>, Error> {
    let mut out = reserve(len)?;
    dispatch(Fill { kernel, nest, out: &mut out.spare_capacity_mut()[..len] })?;
    // SAFETY: `Fill` wrote as many elements as the nest has positions, which are `len`, or returned an error.
    unsafe { out.set_len(len) };
    Ok(out)
}

/// As [`collect`], into memory that is there already.
pub fn fill<K: Kernel>(kernel: K, nest: &Nest, out: Places<'_, K::Elem>) -> Result<(), Error> {
    // SAFETY: the task writes elements alone.
    dispatch(Fill { kernel, nest, out: unsafe { out.into_inner() } })
}

/// As [`collect`], for the parts of a loop nest one after the other, each with a kernel of its own, on several threads.
pub fn collect_parts<'n, K: Kernel<Elem: Send>>(
    parts: &'n [Nest],
    kernel: impl Fn(&'n Nest) -> K,
    len: usize,
) -> Result<Vec<K::Elem>, Error> {
    let mut out = reserve(len)?;
    let mut rest = &mut out.spare_capacity_mut()[..len];
    let mut work = Vec::with_capacity(parts.len());
    for nest in parts {
        let (own, others) = rest.split_at_mut(nest.positions());
        rest = others;
        // SAFETY: kernels read elements, which are `Sync`; operations are plain values wherever `PARALLEL` lets
        // there be several parts; the places are each part's own.
        work.push(unsafe { Carried::new(Fill { kernel: kernel(nest), nest, out: own }) });
    }
    assert!(rest.is_empty(), "the loop nests cover the result");
    threads::each(work, |fill| dispatch(fill.into_inner())).into_iter().collect::<Result<(), _>>()?;
    // SAFETY: each `Fill` wrote as many elements as its nest has positions, all together `len`, or returned an error.
    unsafe { out.set_len(len) };
    Ok(out)
}

/// As [`collect_parts`], into the `len` places of elements that the kernels read, each at the position at which it is written, and that are no
/// longer needed. Returns the elements if there is no such place.
pub fn replace<'n, K: Kernel<Elem: Send>>(
    parts: &'n [Nest],
    kernel: impl Fn(&'n Nest) -> K,
    freed: Option<&Freed<K::Elem>>,
    len: usize,
) -> Result<Vec<K::Elem>, Error> {
    let mut new = if freed.is_some() { Vec::new() } else { reserve(len)? };
    let place = freed.map_or(new.as_mut_ptr(), |freed| freed.places(len));
    // SAFETY: there are `len` places, of the expression's own elements in the order of the loops, each read at its own position alone, or
    // new memory.
    unsafe { replace_at(parts, kernel, place, len)? };
    if freed.is_none() {
        // SAFETY: all places were written.
        unsafe { new.set_len(len) };
    }
    Ok(new)
}

/// # Safety
///
/// The places are valid for writes, and nothing else accesses them, but for kernels that read each of them at the position at which it is
/// written.
#[inline(always)]
unsafe fn replace_at<'n, K: Kernel<Elem: Send>>(
    parts: &'n [Nest],
    kernel: impl Fn(&'n Nest) -> K,
    place: *mut K::Elem,
    len: usize,
) -> Result<(), Error> {
    assert_eq!(parts.iter().map(Nest::positions).sum::<usize>(), len, "the loop nests cover the result");
    if let [nest] = parts {
        return dispatch(Replace { kernel: kernel(nest), nest, place, len });
    }
    let mut work = Vec::with_capacity(parts.len());
    let mut done = 0;
    for nest in parts {
        let len = nest.positions();
        let part = Replace { kernel: kernel(nest), nest, place: place.wrapping_add(done), len };
        // SAFETY: kernels read elements, which are `Sync`; operations are plain values wherever `PARALLEL` lets there be
        // several parts; the places are each part's own.
        work.push(unsafe { Carried::new(part) });
        done += len;
    }
    threads::each(work, |part| dispatch(part.into_inner())).into_iter().collect()
}

/// As [`Fill`], for places that the kernel may read from, each for its own element: what is computed is held back, and written in one go.
struct Replace<'n, K: Kernel> {
    kernel: K,
    nest: &'n Nest,
    place: *mut K::Elem,
    len: usize,
}

impl<K: Kernel> Task for Replace<'_, K> {
    type Out = Result<(), Error>;
    const WIDE: bool = K::LONG;

    #[inline(always)]
    fn run<I: Isa>(self) -> Result<(), Error> {
        let Replace { mut kernel, nest, place, len } = self;
        let mut faults = Faults::default();
        let mut buffer = [const { MaybeUninit::<K::Elem>::uninit() }; TILE];
        // What is written, and how many elements behind that are held back.
        let (mut done, mut held) = (0, 0);
        let write = |buffer: &[MaybeUninit<K::Elem>], done: usize| {
            // SAFETY: the caller of `replace` gave us the places, of which there are as many as the nest has positions; the kernel, which
            // may read them, does not while they are written.
            unsafe {
                core::ptr::copy_nonoverlapping(buffer.as_ptr().cast(), place.add(done), buffer.len());
            }
        };
        let mut tiles = Tiles::new(nest);
        while let Some(tile) = tiles.tile() {
            kernel.load::<I>(&tile, &mut faults);
            if faults.any() {
                return faults.into_result();
            }
            if held + tile.len > TILE {
                write(&buffer[..held], done);
                done += held;
                held = 0;
            }
            fill_tile::<I, K>(&kernel, &mut buffer[held..held + tile.len]);
            held += tile.len;
            tiles.advance();
        }
        write(&buffer[..held], done);
        assert_eq!(done + held, len, "the loop nest covers the result");
        Ok(())
    }
}

/// As [`collect`], for elements that lie in memory already, the nest's only operand: a copy.
#[inline]
#[track_caller]
pub fn collect_memory<T: Element>(
    elements: Elements<'_, T>,
    nest: &Nest,
    len: usize,
    reason: &'static str,
) -> Result<Vec<T>, Error> {
    let mut out = reserve(len)?;
    let mut rest = &mut out.spare_capacity_mut()[..len];
    let threads = threads::parts(len);
    record(|| Step::Copy { reason, loops: Loops::new::<T>(nest, len, threads) });
    if threads <= 1 {
        copy(elements, nest, rest);
    } else {
        let parts = nest.split(0, threads);
        let mut work = Vec::with_capacity(parts.len());
        for nest in &parts {
            let (own, others) = rest.split_at_mut(nest.positions());
            rest = others;
            work.push((nest, own));
        }
        threads::each(work, |(nest, out)| copy(elements, nest, out));
    }
    // SAFETY: `copy` wrote all places of each part, all together `len`.
    unsafe { out.set_len(len) };
    Ok(out)
}

/// Whether a share of a result is so large that no cache near by is expected to have it, and its lines are so long that what is asked for ahead of time
/// is mostly on them: short ones may lie far apart.
fn is_large<T>(nest: &Nest, out: &[T]) -> bool {
    const LARGE: usize = 1 << 20;
    nest.sizes.last().is_some_and(|&len| len > TILE) && size_of_val(out) >= LARGE
}

struct Fill<'n, K: Kernel> {
    kernel: K,
    nest: &'n Nest,
    out: &'n mut [MaybeUninit<K::Elem>],
}

impl<K: Kernel> Task for Fill<'_, K> {
    type Out = Result<(), Error>;
    const WIDE: bool = K::LONG;

    #[inline(always)]
    fn run<I: Isa>(self) -> Result<(), Error> {
        if K::HAS_RIGHT && self.kernel.is_beside::<false>() {
            return self.beside::<I, false>();
        }
        if K::HAS_LEFT && self.kernel.is_beside::<true>() {
            return self.beside::<I, true>();
        }
        if in_parts::<K>(self.nest, 1) {
            return self.in_parts::<I>();
        }
        let Fill { mut kernel, nest, out } = self;
        let mut faults = Faults::default();
        let mut done = 0;
        let large = is_large(nest, out);
        let mut tiles = Tiles::new(nest);
        while let Some(tile) = tiles.tile() {
            kernel.load::<I>(&tile, &mut faults);
            // After a fault nothing is computed: what stands in for the element could, for one, be divided by.
            if !faults.any() {
                let out = &mut out[done..done + tile.len];
                let fetches = Fetches::of(large, &kernel, tile.at, out);
                fill_tile_ahead::<I, K>(&kernel, out, fetches);
            }
            done += tile.len;
            tiles.advance();
        }
        assert_eq!(done, out.len(), "the loop nest covers the result");
        faults.into_result()
    }
}

/// Whether each of so many shares of a nest is computed in [parts of lines](Kernel::IN_PARTS): lines of what computes much, unless they are short; and
/// of what waits for memory if they are long, and so many that caches near by do not have them.
pub fn in_parts<K: Kernel>(nest: &Nest, shares: usize) -> bool {
    let len = nest.sizes.last().copied().unwrap_or(0);
    K::IN_PARTS
        && if K::LONG {
            len >= 64
        } else {
            len >= 1024 && nest.positions() / shares * size_of::<K::Elem>() >= 1 << 17
        }
}

impl<K: Kernel> Fill<'_, K> {
    /// As `run`, where lines [consist of parts](Kernel::IN_PARTS).
    #[inline(always)]
    fn in_parts<I: Isa>(self) -> Result<(), Error> {
        let Fill { mut kernel, nest, mut out } = self;
        let (&len, outer) = nest.sizes.split_last().expect("a nest has a loop");
        let mut faults = Faults::default();
        let mut at: SmallVec<[usize; 8]> = SmallVec::from_elem(0, nest.depth());
        let mut odometer = Odometer::new(outer);
        while !odometer.is_done() {
            let (line, rest) = out.split_at_mut(len);
            kernel.write_line::<I>(&mut at, line, &mut faults);
            if faults.any() {
                return faults.into_result();
            }
            out = rest;
            odometer.advance(&mut at[..outer.len()]);
        }
        assert!(out.is_empty(), "the loop nest covers the result");
        Ok(())
    }

    /// As `run`, where operands on one side [are the same](Kernel::is_beside) along the innermost loop.
    #[inline(always)]
    fn beside<I: Isa, const LEFT: bool>(self) -> Result<(), Error> {
        let Fill { mut kernel, nest, out } = self;
        let mut faults = Faults::default();
        let mut done = 0;
        let large = is_large(nest, out);
        let mut tiles = Tiles::new(nest);
        while let Some(tile) = tiles.tile() {
            kernel.load_beside::<I, LEFT>(&tile, &mut faults);
            if !faults.any() {
                let held = kernel.hold::<I, LEFT>();
                let out = &mut out[done..done + tile.len];
                let fetches = Fetches::of(large, &kernel, tile.at, out);
                let mut start = 0;
                for piece in out.chunks_mut(fetches.piece()) {
                    fetches.fetch(start, piece.len());
                    for (x, out) in piece.iter_mut().enumerate() {
                        // SAFETY: a tile that has this element was just loaded, without a mask.
                        out.write(unsafe { K::get_beside::<I, LEFT>(&held, start + x) });
                    }
                    start += piece.len();
                }
            }
            done += tile.len;
            tiles.advance();
        }
        assert_eq!(done, out.len(), "the loop nest covers the result");
        faults.into_result()
    }
}
