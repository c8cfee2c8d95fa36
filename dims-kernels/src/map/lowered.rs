//! Passes of [lowered programs](LoweredProgram) over nests: what `elementwise` and `update` do with kernels.

use crate::error::Error;
use crate::load::TILE;
use crate::load::tiles::for_each_run;
use crate::loops::nest::Nest;
use crate::machine::threads::{self, Carried};
use crate::map::update::is_apart;
use crate::memory::allocate::reserve;
use crate::memory::elements::{ElementsMut, OutputSlots};
use crate::memory::freed::Freed;
use crate::ops::code::DType;
use crate::program::interpreter::Span;
use crate::program::lowered::LoweredProgram;
use crate::scalar::Element;
use alloc::boxed::Box;
use alloc::vec::Vec;
use smallvec::SmallVec;

/// Where results go: the place of the one at the origin of the loops, and how far apart those along each loop are, in elements.
#[derive(Clone, Copy)]
struct Places<'p> {
    start: *mut u8,
    strides: &'p [isize],
}

/// The elements of a nest in its order, as a new vector of `len` elements.
///
/// # Safety
///
/// The nest has a row for each operand of the program, and each position of it is, along that row, one of the operand's elements.
///
/// # Panics
///
/// If the program yields another type.
pub unsafe fn collect<T: Element>(
    program: &LoweredProgram<'_>,
    nest: &Nest,
    len: usize,
) -> Result<Vec<T>, Error> {
    let mut out: Vec<T> = reserve(len)?;
    assert_eq!(DType::of::<T>(), Some(program.dtype()), "results have the type of the places");
    // SAFETY: the vector has room for `len` elements of the type; the nest is the caller's.
    unsafe { write_all(program, nest, out.as_mut_ptr().cast(), len) };
    // SAFETY: all of them were written.
    unsafe { out.set_len(len) };
    Ok(out)
}

/// As [`collect`], into memory that is there already.
///
/// # Safety
///
/// As for [`collect`].
///
/// # Panics
///
/// If the program yields another type.
pub unsafe fn fill<T: Element>(program: &LoweredProgram<'_>, nest: &Nest, out: OutputSlots<'_, T>) {
    assert_eq!(DType::of::<T>(), Some(program.dtype()), "results have the type of the places");
    // SAFETY: elements alone are written, into as many places as there are; the nest is the caller's.
    unsafe {
        let out = out.into_inner();
        write_all(program, nest, out.as_mut_ptr().cast(), out.len());
    }
}

/// As [`collect`], into the `len` places of elements that the program reads, each at the position at which it is written, and that are no longer needed.
///
/// # Safety
///
/// As for [`collect`]; the places are those of such elements.
///
/// # Panics
///
/// If the program yields another type.
pub unsafe fn replace<T: Element>(program: &LoweredProgram<'_>, nest: &Nest, freed: &Freed<T>, len: usize) {
    assert_eq!(DType::of::<T>(), Some(program.dtype()), "results have the type of the places");
    // SAFETY: there are `len` places; the rest is the caller's promise. (A span is computed before any of its results is written.)
    unsafe { write_all(program, nest, freed.places(len).cast(), len) };
}

/// Writes the elements of a nest to `len` places one behind the other.
///
/// # Safety
///
/// As for [`collect`]; nothing else accesses the places, but for operands that read each at the position at which it is written.
///
/// # Panics
///
/// If the nest has more or fewer positions.
unsafe fn write_all(program: &LoweredProgram<'_>, nest: &Nest, start: *mut u8, len: usize) {
    assert_eq!(nest.positions(), len, "the loop nest covers the result");
    let mut strides: SmallVec<[isize; 8]> = SmallVec::from_elem(0, nest.depth());
    let mut step = 1;
    for (stride, &size) in strides.iter_mut().zip(nest.sizes.iter()).rev() {
        *stride = step;
        step *= size as isize;
    }
    // SAFETY: the caller's promise; the positions of the nest are `len`, and so are the places, in the nest's order.
    unsafe { pass(program, nest, Places { start, strides: &strides }) };
}

/// Puts the results of a program into places. The nest's first row is that of the places, and so is the program's first operand.
///
/// # Safety
///
/// As for [`collect`]; the first row is that of the places.
///
/// # Panics
///
/// If the program yields another type.
pub unsafe fn update<T: Element>(program: &LoweredProgram<'_>, nest: &Nest, mut place: ElementsMut<'_, T>) {
    assert_eq!(DType::of::<T>(), Some(program.dtype()), "results have the type of the places");
    let row = nest.operands().next_row();
    row.assert_within(&place);
    let start = place.as_mut_ptr().wrapping_offset(row.offset).cast();
    if nest.sizes.contains(&0) {
        return;
    }
    // SAFETY: each position is one of the places, which are borrowed exclusively; the rest is the caller's promise.
    unsafe { pass(program, nest, Places { start, strides: row.strides }) };
}

/// As [`update`], where the first row of the nest, along which the program reads nothing, is that of places that may have no value yet: the one at a position of the loops goes
/// `offset` places behind the first, and as far as the row says.
///
/// # Safety
///
/// As for [`collect`].
///
/// # Panics
///
/// If there is no such place, or the program yields another type.
pub unsafe fn write<T: Element>(
    program: &LoweredProgram<'_>,
    nest: &Nest,
    places: OutputSlots<'_, T>,
    offset: usize,
) {
    assert_eq!(DType::of::<T>(), Some(program.dtype()), "results have the type of the places");
    let strides = nest.operands().next_row().strides;
    let start = places.reached(offset, &nest.sizes, strides).cast();
    // SAFETY: every position of the loops is a place, as was asserted, which is borrowed exclusively; the rest is the caller's promise.
    unsafe { pass(program, nest, Places { start, strides }) };
}

/// Runs a program over a nest, on as many threads as are worthwhile.
///
/// # Safety
///
/// As for [`collect`]; each position of the nest has a place, which nothing else accesses, but for operands that read it at that position.
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
        // SAFETY: elements are plain numbers. The places of two parts have none in common, as `is_apart` has found.
        let places = unsafe { Carried::new(Places { start, ..places }) };
        jobs.push(Box::new(move || {
            // SAFETY: the positions of a part are some of the nest's, from the `before`th of the first loop on.
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
        // SAFETY: the places of the span are some of the caller's. All that operands have there was read when the span was computed.
        unsafe { run.write(start, (span.rows, span.len), steps) };
        true
    });
}
