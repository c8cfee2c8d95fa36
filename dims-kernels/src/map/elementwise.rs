//! Elementwise loops: the drivers that run kernels over a nest, and write the results into new or existing memory.

use crate::copy::copy;
use crate::error::Error;
use crate::load::tiles::for_each_run;
use crate::load::{Faults, Kernel, TILE};
use crate::loops::nest::{Nest, Odometer};
use crate::loops::steps::{Loops, Step, record};
use crate::machine::threads::{self, Carried};
use crate::map::lines::{Compute, RowWriter};
use crate::memory::allocate::reserve;
use crate::memory::elements::{Elements, OutputSlots};
use crate::memory::freed::Freed;
use crate::scalar::Element;
use alloc::boxed::Box;
use alloc::vec::Vec;
use core::mem::MaybeUninit;
use smallvec::SmallVec;

/// The elements of a loop nest in its order, as a new vector of `len` elements.
pub fn collect<K: Kernel>(kernel: K, nest: &Nest, len: usize) -> Result<Vec<K::Elem>, Error> {
    collect_lines(&mut Compute::new(kernel), nest, len)
}

fn collect_lines<T: Copy>(lines: &mut dyn RowWriter<T>, nest: &Nest, len: usize) -> Result<Vec<T>, Error> {
    let mut out = reserve(len)?;
    fill_lines(lines, nest, &mut out.spare_capacity_mut()[..len])?;
    // SAFETY: `fill_lines` wrote all `len` places, or returned an error.
    unsafe { out.set_len(len) };
    Ok(out)
}

/// As [`collect`], into memory that is there already.
pub fn fill<K: Kernel>(kernel: K, nest: &Nest, out: OutputSlots<'_, K::Elem>) -> Result<(), Error> {
    // SAFETY: `fill_lines` writes elements alone.
    fill_lines(&mut Compute::new(kernel), nest, unsafe { out.into_inner() })
}

/// As [`collect`], for the parts of a loop nest one after the other, each with a kernel of its own, on several threads.
pub fn collect_parts<'n, K: Kernel<Elem: Send> + 'n>(
    parts: &'n [Nest],
    kernel: impl Fn(&'n Nest) -> K,
    len: usize,
) -> Result<Vec<K::Elem>, Error> {
    assert!(K::PARALLEL || parts.len() <= 1, "kernels with a user's closure run on one thread");
    let mut out = reserve(len)?;
    fill_parts(parts, &|nest| Box::new(Compute::new(kernel(nest))), &mut out.spare_capacity_mut()[..len])?;
    // SAFETY: all `len` places were written, or an error was returned.
    unsafe { out.set_len(len) };
    Ok(out)
}

/// Writes the parts of a loop nest, which cover the result, one behind the other.
fn fill_parts<'n, T: Copy + Send>(
    parts: &'n [Nest],
    lower: &dyn Fn(&'n Nest) -> Box<dyn RowWriter<T> + 'n>,
    out: &mut [MaybeUninit<T>],
) -> Result<(), Error> {
    let mut rest = out;
    let mut jobs: Vec<threads::Job<'_>> = Vec::with_capacity(parts.len());
    for nest in parts {
        let (own, others) = rest.split_at_mut(nest.positions());
        rest = others;
        // SAFETY: kernels read elements, which are `Sync`; their operations are plain values, as `PARALLEL` says where there are several parts; the places are each part's own.
        let part = unsafe { Carried::new((lower(nest), own)) };
        jobs.push(Box::new(move || {
            let (mut lines, out) = part.into_inner();
            fill_lines(&mut *lines, nest, out)
        }));
    }
    assert!(rest.is_empty(), "the loop nests cover the result");
    threads::run(jobs)
}

/// As [`collect_parts`], into the `len` places of elements that the kernels read, each at the position at which it is written, and that are no
/// longer needed. Returns the elements if there is no such place.
pub fn replace<'n, K: Kernel<Elem: Send> + 'n>(
    parts: &'n [Nest],
    kernel: impl Fn(&'n Nest) -> K,
    freed: Option<&Freed<K::Elem>>,
    len: usize,
) -> Result<Vec<K::Elem>, Error> {
    assert!(K::PARALLEL || parts.len() <= 1, "kernels with a user's closure run on one thread");
    let mut new = if freed.is_some() { Vec::new() } else { reserve(len)? };
    let place = freed.map_or(new.as_mut_ptr(), |freed| freed.places(len));
    // SAFETY: there are `len` places, of the expression's own elements in the order of the loops, each read at its own position alone, or
    // new memory.
    unsafe { replace_parts(parts, &|nest| Box::new(Compute::new(kernel(nest))), place, len)? };
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
unsafe fn replace_parts<'n, T: Copy + Send>(
    parts: &'n [Nest],
    lower: &dyn Fn(&'n Nest) -> Box<dyn RowWriter<T> + 'n>,
    place: *mut T,
    len: usize,
) -> Result<(), Error> {
    assert_eq!(parts.iter().map(Nest::positions).sum::<usize>(), len, "the loop nests cover the result");
    if let [nest] = parts {
        // SAFETY: the caller's places, which are as many as the nest has positions.
        return unsafe { replace_lines(&mut *lower(nest), nest, place) };
    }
    let mut jobs: Vec<threads::Job<'_>> = Vec::with_capacity(parts.len());
    let mut done = 0;
    for nest in parts {
        // SAFETY: kernels read elements, which are `Sync`; their operations are plain values, as `PARALLEL` says where there are several parts; the places are each part's own.
        let part = unsafe { Carried::new((lower(nest), place.wrapping_add(done))) };
        done += nest.positions();
        jobs.push(Box::new(move || {
            let (mut lines, place) = part.into_inner();
            // SAFETY: the part's own places, which are as many as its nest has positions.
            unsafe { replace_lines(&mut *lines, nest, place) }
        }));
    }
    threads::run(jobs)
}

/// How many elements are computed before they are written to places that others of them are read from, and how many bytes those have at most.
const HELD: usize = 4 * TILE;
const HELD_BYTES: usize = 16 << 10;

/// As [`fill_lines`], for places that the lines may be read from, each for its own element: some lines are computed before they are written.
///
/// # Safety
///
/// As for [`replace_parts`]; there are as many places as the nest has positions.
unsafe fn replace_lines<T: Copy>(
    lines: &mut dyn RowWriter<T>,
    nest: &Nest,
    place: *mut T,
) -> Result<(), Error> {
    let mut faults = Faults::default();
    let most = (HELD_BYTES / size_of::<T>().max(1)).clamp(1, HELD);
    let mut buffer = Vec::with_capacity(most);
    let mut done = 0;
    for_each_run(nest, most, &mut |run| {
        let len = run.elements();
        lines.rows(run, &mut buffer.spare_capacity_mut()[..len], false, &mut faults);
        if faults.any() {
            return false;
        }
        // SAFETY: the runs of a nest have as many elements as the nest has positions, and so there are these places; the lines, which may
        // read them, do not while they are written.
        unsafe { core::ptr::copy_nonoverlapping(buffer.as_ptr(), place.add(done), len) };
        done += len;
        true
    });
    faults.into_result()?;
    assert_eq!(done, nest.positions(), "the loop nest covers the result");
    Ok(())
}

/// As [`collect`], for elements that lie in memory already, the nest's only operand: a copy.
///
/// # Safety
///
/// Each position of the nest is, along its row, one of the elements' axes.
#[inline]
#[track_caller]
pub unsafe fn collect_memory<T: Element>(
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
        // SAFETY: the caller's promise.
        unsafe { copy(elements, nest, rest) };
    } else {
        let parts = nest.split(0, threads);
        let mut work = Vec::with_capacity(parts.len());
        for nest in &parts {
            let (own, others) = rest.split_at_mut(nest.positions());
            rest = others;
            work.push((nest, own));
        }
        // SAFETY: a part has positions of the nest only, and the caller promises that each of these is an element.
        threads::each(work, |(nest, out)| unsafe { copy(elements, nest, out) });
    }
    // SAFETY: `copy` wrote all places of each part, all together `len`.
    unsafe { out.set_len(len) };
    Ok(out)
}

/// Whether a share of a result is too large for the caches, and its lines are so long that prefetched elements are mostly on them: short
/// lines may lie far apart.
fn is_large<T>(nest: &Nest, out: &[T]) -> bool {
    const LARGE: usize = 1 << 20;
    nest.sizes.last().is_some_and(|&len| len > TILE) && size_of_val(out) >= LARGE
}

/// Writes the elements of a loop nest.
///
/// # Panics
///
/// If the nest has more or fewer positions than there are places.
fn fill_lines<T: Copy>(
    lines: &mut dyn RowWriter<T>,
    nest: &Nest,
    out: &mut [MaybeUninit<T>],
) -> Result<(), Error> {
    let mut faults = Faults::default();
    let mut done = 0;
    if lines.in_parts(nest) {
        let (&len, outer) = nest.sizes.split_last().expect("a nest has a loop");
        let mut at: SmallVec<[usize; 8]> = SmallVec::from_elem(0, nest.depth());
        let mut odometer = Odometer::new(outer);
        while !odometer.is_done() && !faults.any() {
            lines.line(&mut at, &mut out[done..done + len], &mut faults);
            done += len;
            odometer.advance(&mut at[..outer.len()]);
        }
    } else {
        let large = is_large(nest, out);
        for_each_run(nest, usize::MAX, &mut |run| {
            let len = run.elements();
            lines.rows(run, &mut out[done..done + len], large, &mut faults);
            done += len;
            !faults.any()
        });
    }
    faults.into_result()?;
    assert_eq!(done, out.len(), "the loop nest covers the result");
    Ok(())
}

/// Whether each of `shares` shares of a nest is computed in [parts of lines](Kernel::IN_PARTS): for expensive expressions unless the lines are short, and for
/// memory-bound ones if the lines are long and do not fit into near caches.
pub fn in_parts<K: Kernel>(nest: &Nest, shares: usize) -> bool {
    let len = nest.sizes.last().copied().unwrap_or(0);
    K::IN_PARTS
        && if K::LONG {
            len >= 64
        } else {
            len >= 1024 && nest.positions() / shares * size_of::<K::Elem>() >= 1 << 17
        }
}
