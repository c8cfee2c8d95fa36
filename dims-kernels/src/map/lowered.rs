//! Passes of [lowered programs](LoweredProgram) over nests: the counterparts of `elementwise` and
//! `update`, which run kernels.

use crate::error::Error;
use crate::load::TILE;
use crate::load::tiles::for_each_run;
use crate::loops::nest::Nest;
use crate::machine::threads::{self, Carried};
use crate::map::update::is_apart;
use crate::memory::axes::row_major;
use crate::memory::destination::Destination;
use crate::memory::elements::{ElementsMut, OutputSlots};
use crate::ops::code::DType;
use crate::program::interpreter::Span;
use crate::program::lowered::LoweredProgram;
use crate::scalar::Element;
use alloc::boxed::Box;
use alloc::vec::Vec;

/// The slots of results: a pointer to the one at the origin of the loops, and the stride along each
/// loop, in elements.
#[derive(Clone, Copy)]
struct Places<'p> {
    start: *mut u8,
    strides: &'p [isize],
}

/// The elements of a nest, in its order.
///
/// # Safety
///
/// The nest has a row for each operand of the program. The row maps each position of the nest to
/// one of the operand's elements.
///
/// # Panics
///
/// If the program's results do not have the type `T`, or there are not as many positions as slots.
pub unsafe fn collect<T: Element>(
    program: &LoweredProgram<'_>,
    nest: &Nest,
    to: Destination<'_, T>,
) -> Result<Vec<T>, Error> {
    assert_eq!(DType::of::<T>(), Some(program.dtype()), "results have the type of the places");
    let len = to.len();
    let write = |start: *mut T| {
        // SAFETY: there are `len` slots of the results' type. The program reads elements of reused
        // slots only at the positions that it writes. The nest is as the caller promises. A span is
        // computed before any of its results is written.
        unsafe { write_all(program, nest, start.cast(), len) };
        Ok(())
    };
    // SAFETY: all slots are written.
    unsafe { to.write(write) }
}

/// Writes the elements of a nest to `len` contiguous slots.
///
/// # Safety
///
/// As for [`collect`]. Nothing else accesses the slots, except operands that are read only at the
/// position that is written.
///
/// # Panics
///
/// If the number of positions is not `len`.
unsafe fn write_all(program: &LoweredProgram<'_>, nest: &Nest, start: *mut u8, len: usize) {
    assert_eq!(nest.positions(), len, "the loop nest covers the result");
    let strides = &row_major(&nest.sizes);
    // SAFETY: the caller's promise. The nest has `len` positions, and there are as many slots, in
    // the nest's order.
    unsafe { pass(program, nest, Places { start, strides }) };
}

/// Writes the results of a program to slots. The first row of the nest and the first operand of the
/// program belong to the slots.
///
/// # Safety
///
/// As for [`collect`]. The first row belongs to the slots.
///
/// # Panics
///
/// If the program's results do not have the type `T`.
pub unsafe fn update<T: Element>(program: &LoweredProgram<'_>, nest: &Nest, mut place: ElementsMut<'_, T>) {
    assert_eq!(DType::of::<T>(), Some(program.dtype()), "results have the type of the places");
    let row = nest.operands().next_row();
    row.assert_within(&place);
    let start = place.as_mut_ptr().wrapping_offset(row.offset).cast();
    if nest.sizes.contains(&0) {
        return;
    }
    // SAFETY: each position is one of the slots, which are borrowed exclusively. The rest is the
    // caller's promise.
    unsafe { pass(program, nest, Places { start, strides: row.strides }) };
}

/// Like [`update`], for slots that may be uninitialized, which the program does not read. The
/// result at a position of the loops goes to the slot at the index `offset` plus the position's
/// offset along the first row.
///
/// # Safety
///
/// As for [`collect`].
///
/// # Panics
///
/// If there is no such slot, or the program's results do not have the type `T`.
pub unsafe fn write<T: Element>(
    program: &LoweredProgram<'_>,
    nest: &Nest,
    places: OutputSlots<'_, T>,
    offset: usize,
) {
    assert_eq!(DType::of::<T>(), Some(program.dtype()), "results have the type of the places");
    let strides = nest.operands().next_row().strides;
    let start = places.reached(offset, &nest.sizes, strides).cast();
    // SAFETY: as was asserted, every position of the loops has a slot. The slots are borrowed
    // exclusively. The rest is the caller's promise.
    unsafe { pass(program, nest, Places { start, strides }) };
}

/// Runs a program over a nest, on as many threads as are worthwhile.
///
/// # Safety
///
/// As for [`collect`]. Each position of the nest has a slot, which nothing else accesses, except
/// operands that are read at that position.
unsafe fn pass(program: &LoweredProgram<'_>, nest: &Nest, places: Places<'_>) {
    let threads = threads::parts(nest.positions());
    if threads <= 1 || !is_apart(&nest.sizes, places.strides) {
        // SAFETY: the caller's promise.
        return unsafe { part(program, nest, places) };
    }
    let bytes = program.dtype().bytes() as isize;
    let parts = nest.split(0, threads);
    let mut jobs: Vec<threads::Job<'_>> = Vec::with_capacity(parts.len());
    let mut before = 0;
    for nest in &parts {
        let start = places.start.wrapping_offset(before as isize * places.strides[0] * bytes);
        before += nest.sizes[0];
        // SAFETY: elements are plain numbers. The slots of different parts are disjoint, as
        // `is_apart` has found.
        let places = unsafe { Carried::new(Places { start, ..places }) };
        jobs.push(Box::new(move || {
            // SAFETY: the positions of a part are positions of the nest, and `start` is the slot of
            // the part's first position.
            unsafe { part(program, nest, places.into_inner()) };
            Ok(())
        }));
    }
    threads::run(jobs).expect("programs do not fail");
}

/// # Safety
///
/// As for [`pass`].
unsafe fn part(program: &LoweredProgram<'_>, nest: &Nest, Places { start, strides }: Places<'_>) {
    let bytes = program.dtype().bytes() as isize;
    let last = nest.depth() - 1;
    let steps = [if last > 0 { strides[last - 1] } else { 0 }, strides[last]];
    // SAFETY: the caller's promise about the nest.
    let mut run = unsafe { program.over(&mut nest.operands()) };
    for_each_run(nest, TILE, &mut |rows| {
        let span = Span { at: rows.at, rows: rows.rows, len: rows.len };
        run.compute(&span);
        let first: isize = span.at.iter().zip(strides).map(|(&at, &stride)| at as isize * stride).sum();
        let start = start.wrapping_offset(first * bytes);
        // SAFETY: the slots of the span are among the caller's. Operands in these slots were read
        // when the span was computed.
        unsafe { run.write(start, (span.rows, span.len), steps) };
        true
    });
}
