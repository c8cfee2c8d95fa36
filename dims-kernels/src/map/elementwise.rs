//! Elementwise loops: run kernels over a nest, and write the results to new or existing memory.

use crate::copy::copy;
use crate::error::Error;
use crate::load::tiles::for_each_run;
use crate::load::{Faults, Kernel, TILE};
use crate::loops::nest::{Nest, Odometer};
use crate::loops::steps::{Loops, PlanStep, note};
use crate::machine::threads::{self, Carried};
use crate::map::lines::{Compute, RowWriter};
use crate::memory::destination::Destination;
use crate::memory::elements::Elements;
use crate::scalar::Element;
use alloc::boxed::Box;
use alloc::vec::Vec;
use core::mem::MaybeUninit;
use core::slice::from_raw_parts_mut;
use smallvec::SmallVec;

/// The elements of a loop nest, in its order. The nest is split into `parts`, which may be computed
/// on different threads, each by a kernel that `lower` makes for it.
pub fn collect<'n, K: Kernel<Elem: Send> + 'n>(
    parts: &'n [Nest],
    lower: &dyn Fn(&'n Nest) -> K,
    to: Destination<'_, K::Elem>,
) -> Result<Vec<K::Elem>, Error> {
    if let [nest] = parts {
        return collect_lines(&mut Compute::new(lower(nest)), nest, to);
    }
    assert!(K::PARALLEL, "kernels with a user's closure run on one thread");
    collect_parts(parts, &|nest| Box::new(Compute::new(lower(nest))), to)
}

/// [`collect`] for a nest with one part.
fn collect_lines<T: Copy + 'static>(
    lines: &mut dyn RowWriter<T>,
    nest: &Nest,
    to: Destination<'_, T>,
) -> Result<Vec<T>, Error> {
    if let Destination::Reused(_) = to {
        let len = to.len();
        // SAFETY: there are `len` slots. To compute the element at a position, the kernel reads no
        // slot but the one at that position. `replace_lines` writes all slots, or returns an error.
        return unsafe { to.write(|start| replace_lines(lines, nest, start, len)) };
    }
    // SAFETY: `fill_lines` writes all slots, or returns an error.
    unsafe { to.fill(|out| fill_lines(lines, nest, out)) }
}

/// [`collect`] for several parts of a nest.
fn collect_parts<'n, T: Copy + Send + 'static>(
    parts: &'n [Nest],
    lower: &dyn Fn(&'n Nest) -> Box<dyn RowWriter<T> + 'n>,
    to: Destination<'_, T>,
) -> Result<Vec<T>, Error> {
    let all = parts.iter().try_fold(0, |all: usize, nest| all.checked_add(nest.positions()));
    assert_eq!(all, Some(to.len()), "the parts cover the result");
    let is_reused = matches!(to, Destination::Reused(_));
    let write = |start: *mut T| {
        let mut jobs: Vec<threads::Job<'_>> = Vec::with_capacity(parts.len());
        let mut done = 0;
        for nest in parts {
            // SAFETY: kernels read elements, which are `Sync`. The kernels' operations are plain
            // values, as `Kernel::PARALLEL` says. Each part has separate slots.
            let part = unsafe { Carried::new((lower(nest), start.wrapping_add(done))) };
            let len = nest.positions();
            done += len;
            jobs.push(Box::new(move || {
                let (mut lines, start) = part.into_inner();
                if is_reused {
                    // SAFETY: these are the part's slots, one for each position of its nest.
                    unsafe { replace_lines(&mut *lines, nest, start, len) }
                } else {
                    // SAFETY: as for `replace_lines`. Nothing else accesses the slots.
                    fill_lines(&mut *lines, nest, unsafe { from_raw_parts_mut(start.cast(), len) })
                }
            }));
        }
        threads::run(jobs)
    };
    // SAFETY: the parts have as many positions as there are slots, and each part writes its slots,
    // or returns an error.
    unsafe { to.write(write) }
}

/// The maximum number of elements that are buffered before they overwrite slots that are also read,
/// and the maximum size of this buffer in bytes.
const HELD: usize = 4 * TILE;
const HELD_BYTES: usize = 16 << 10;

/// Like [`fill_lines`], for `len` slots that the lines may also read. So elements are buffered
/// before they are written.
///
/// # Safety
///
/// The slots are valid for writes. Nothing else accesses them, except that `lines` may read a
/// slot to compute the element at the same position.
///
/// # Panics
///
/// If the number of positions is not `len`.
unsafe fn replace_lines<T: Copy>(
    lines: &mut dyn RowWriter<T>,
    nest: &Nest,
    place: *mut T,
    len: usize,
) -> Result<(), Error> {
    assert_eq!(nest.positions(), len, "the loop nest covers the result");
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
        // SAFETY: the runs of a nest together have as many elements as the nest has positions, so
        // these slots exist. The lines may read the slots, but not while they are written.
        unsafe { core::ptr::copy_nonoverlapping(buffer.as_ptr(), place.add(done), len) };
        done += len;
        true
    });
    faults.into_result()?;
    assert_eq!(done, len, "the loop nest covers the result");
    Ok(())
}

/// Like [`collect`], for elements in memory, which are the nest's only operand: a copy.
///
/// # Panics
///
/// If `to` is [reused](Destination::Reused) memory, or the number of positions is not the number of
/// slots.
///
/// # Safety
///
/// The nest's row maps each position of the nest to a position of the elements' axes.
#[inline]
#[track_caller]
pub unsafe fn collect_memory<T: Element>(
    elements: Elements<'_, T>,
    nest: &Nest,
    to: Destination<'_, T>,
    reason: &'static str,
) -> Result<Vec<T>, Error> {
    let threads = threads::parts(to.len());
    note(|| PlanStep::Copy { reason, loops: Loops::new::<T>(nest, to.len(), threads) });
    let fill = |mut rest: &mut [MaybeUninit<T>]| {
        if threads <= 1 {
            // SAFETY: the caller's promise.
            unsafe { copy(elements, nest, rest) };
            return Ok(());
        }
        let parts = nest.split(0, threads);
        let mut work = Vec::with_capacity(parts.len());
        for nest in &parts {
            let (own, others) = rest.split_at_mut(nest.positions());
            rest = others;
            work.push((nest, own));
        }
        assert!(rest.is_empty(), "the parts cover the result");
        // SAFETY: a part has only positions of the nest, and the caller promises that each of them
        // is the position of an element.
        threads::each(work, |(nest, out)| unsafe { copy(elements, nest, out) });
        Ok(())
    };
    // SAFETY: `copy` writes all slots that it gets: those of the result, or those of each part.
    // The parts cover the result.
    unsafe { to.fill(fill) }
}

/// Whether a part of a result is large, and its lines are long enough that prefetched elements are
/// mostly on the same line.
fn is_large<T>(nest: &Nest, out: &[T]) -> bool {
    const LARGE: usize = 1 << 20;
    nest.sizes.last().is_some_and(|&len| len > TILE) && size_of_val(out) >= LARGE
}

/// Writes the elements of a loop nest.
///
/// # Panics
///
/// If the number of positions is not the number of slots.
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
