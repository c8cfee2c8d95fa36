//! Elementwise loops: the drivers that run kernels over a nest, and write the results into new or existing memory.

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

/// The elements of a loop nest in its order. The nest is cut into `parts`, which are computed on threads of their own, each by a kernel that `lower` makes for it.
pub fn collect<'n, K: Kernel<Elem: Send> + 'n>(
    parts: &'n [Nest],
    lower: impl Fn(&'n Nest) -> K,
    to: Destination<'_, K::Elem>,
) -> Result<Vec<K::Elem>, Error> {
    if let [nest] = parts {
        return collect_lines(&mut Compute::new(lower(nest)), nest, to);
    }
    assert!(K::PARALLEL, "kernels with a user's closure run on one thread");
    collect_parts(parts, &|nest| Box::new(Compute::new(lower(nest))), to)
}

/// [`collect`] for a nest that is not cut.
fn collect_lines<T: Copy + 'static>(
    lines: &mut dyn RowWriter<T>,
    nest: &Nest,
    to: Destination<'_, T>,
) -> Result<Vec<T>, Error> {
    if let Destination::Reused(_) = to {
        let len = to.len();
        // SAFETY: these are `len` places of elements that the kernel reads at the positions at which they are written; `replace_lines` writes all, or returns an error.
        return unsafe { to.write(|start| replace_lines(lines, nest, start, len)) };
    }
    // SAFETY: `fill_lines` writes all places, or returns an error.
    unsafe { to.fill(|out| fill_lines(lines, nest, out)) }
}

/// [`collect`] for the parts of a nest.
fn collect_parts<'n, T: Copy + Send + 'static>(
    parts: &'n [Nest],
    lower: &dyn Fn(&'n Nest) -> Box<dyn RowWriter<T> + 'n>,
    to: Destination<'_, T>,
) -> Result<Vec<T>, Error> {
    let all = parts.iter().try_fold(0, |all: usize, nest| all.checked_add(nest.positions()));
    assert_eq!(all, Some(to.len()), "the parts cover the result");
    let is_reused = matches!(to, Destination::Reused(_));
    // Each part runs as a nest of its own, whose places are all given or all reused.
    let write = |start: *mut T| {
        let mut jobs: Vec<threads::Job<'_>> = Vec::with_capacity(parts.len());
        let mut done = 0;
        for nest in parts {
            // SAFETY: kernels read elements, which are `Sync`; their operations are plain values, as `PARALLEL` says; the places are each part's own.
            let part = unsafe { Carried::new((lower(nest), start.wrapping_add(done))) };
            let len = nest.positions();
            done += len;
            jobs.push(Box::new(move || {
                let (mut lines, start) = part.into_inner();
                if is_reused {
                    // SAFETY: the part's own places, which are as many as its nest has positions.
                    unsafe { replace_lines(&mut *lines, nest, start, len) }
                } else {
                    // SAFETY: likewise; nothing else accesses them.
                    fill_lines(&mut *lines, nest, unsafe { from_raw_parts_mut(start.cast(), len) })
                }
            }));
        }
        threads::run(jobs)
    };
    // SAFETY: the parts have as many positions as there are places, and each part writes its own, or returns an error.
    unsafe { to.write(write) }
}

/// How many elements are computed before they are written to places that others of them are read from, and how many bytes those have at most.
const HELD: usize = 4 * TILE;
const HELD_BYTES: usize = 16 << 10;

/// As [`fill_lines`], for `len` places that the lines may be read from, each for its own element: some lines are computed before they are written.
///
/// # Safety
///
/// The places are valid for writes. Nothing else accesses them, but for lines that read each at the position at which it is written.
///
/// # Panics
///
/// If the nest has more or fewer positions.
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
        // SAFETY: the runs of a nest have as many elements as the nest has positions, and so there are these places; the lines, which may
        // read them, do not while they are written.
        unsafe { core::ptr::copy_nonoverlapping(buffer.as_ptr(), place.add(done), len) };
        done += len;
        true
    });
    faults.into_result()?;
    assert_eq!(done, len, "the loop nest covers the result");
    Ok(())
}

/// As [`collect`], for elements that lie in memory already, the nest's only operand: a copy.
///
/// # Panics
///
/// If the memory is reused, or the nest has more or fewer positions than there are places.
///
/// # Safety
///
/// Each position of the nest is, along its row, one of the elements' axes.
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
        // SAFETY: a part has positions of the nest only, and the caller promises that each of these is an element.
        threads::each(work, |(nest, out)| unsafe { copy(elements, nest, out) });
        Ok(())
    };
    // SAFETY: `copy` writes all places of each part, and the parts are the nest, which covers the result.
    unsafe { to.fill(fill) }
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
