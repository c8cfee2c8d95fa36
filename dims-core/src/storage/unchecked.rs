//! All calls of kernels that read and write along strides without checking bounds.
//!
//! The strides stay within the elements because of three facts:
//!
//! 1. *Elements come with the axes that reach them.* The types that hold both (`Evaluated`, `View`,
//!    `Place`, `SharedElements` and the operands of patterns) keep their fields to their own
//!    modules. Their values are made only by functions of `storage`, and by functions that assert
//!    that the axes stay within the memory.
//! 2. *A row has the strides of those axes, each at a loop of the axis's size.*
//!    [`Shape`](crate::plan::shape::Shape) unifies the sizes of all operands' axes: a different
//!    size is an error before anything runs. [`Expr::rows`](crate::expr::Expr::rows) writes, for
//!    each operand, the stride of each axis at the loop that the axis was unified with, and 0 at
//!    the others. `Expr` is sealed, so no other crate implements it.
//! 3. *A nest visits only positions of these loops.* [`Nest`] merges, splits and orders loops, and
//!    never exceeds their sizes. [`Expr::kernel`](crate::expr::Expr::kernel) is called with the
//!    rows of the nest over which the kernel runs.
//!
//! So a row maps each position of the loops to a position of the axes, which is an element. Builds
//! with debug assertions check this for each row, unless the offsets of computed indices are added
//! to it. The functions below state what else they rely on.

use crate::error::DimError;
use crate::plan::direct::{ElementsAlong, Planned, ResultSizes, Roles};
use alloc::boxed::Box;
use alloc::vec::Vec;
use kernels::attention::{self, Change, Work};
use kernels::contract::ContractionFactor;
use kernels::contract::target::Target;
use kernels::copy::{self, FEW};
use kernels::error::Error;
use kernels::load::Kernel;
use kernels::load::gather::GatherIndices;
use kernels::load::strided::Strided;
use kernels::loops::nest::{Nest, NestParts, OperandRows, Row};
use kernels::loops::steps::ProductDims;
use kernels::loops::stride::StrideKind;
use kernels::map::update::{self, LoweredUpdate};
use kernels::map::{elementwise, lowered};
use kernels::memory::allocate::InParts;
use kernels::memory::axes::Axis;
use kernels::memory::destination::Destination;
use kernels::memory::elements::{Elements, ElementsMut, OutputSlots, Reaches};
use kernels::ops::BinaryOp;
use kernels::program::lowered::LoweredProgram;
use kernels::scalar::{Element, Num, Real};
use kernels::{reduce, scan};
use smallvec::SmallVec;

/// A position in an expression whose operands are each one contiguous line. Only [`each_in_line`]
/// and [`each_into_line`] make an `InLine`.
#[derive(Clone, Copy)]
pub struct InLine(usize);

/// Computes an expression one element at a time. All operands must have the same layout: one line
/// that is as long as the result. `element` computes the element at a position.
#[cfg_attr(not(unoptimized), inline(always))]
pub(crate) fn each_in_line<T: Copy + 'static>(
    to: Destination<'_, T>,
    element: impl Fn(InLine) -> T,
) -> Result<Vec<T>, Error> {
    to.from_fn(|at| element(InLine(at)))
}

/// Like [`each_in_line`], but writes into `places`. (For few elements, a [`Destination`] costs more
/// than computing them.)
#[cfg_attr(not(unoptimized), inline(always))]
pub(crate) fn each_into_line<T>(places: &mut [T], element: impl Fn(InLine) -> T) {
    places.iter_mut().enumerate().for_each(|(at, place)| *place = element(InLine(at)));
}

/// The element at a position of a line.
#[cfg_attr(not(unoptimized), inline(always))]
pub(crate) fn nth<T: Copy>(elements: Elements<'_, T>, InLine(at): InLine) -> T {
    // SAFETY: `each_in_line` and `each_into_line` only run if the axes of all operands are those of
    // one line as long as the result; `at` is a position in the result.
    unsafe { elements.nth(at as isize) }
}

/// All elements, if they are contiguous in the order of `axes`, which must be the elements' own
/// axes.
#[cfg_attr(not(unoptimized), inline(always))]
pub(crate) fn line<T>(
    elements: Elements<'_, T>,
    axes: impl DoubleEndedIterator<Item = Axis>,
) -> Option<&[T]> {
    let (mut len, mut is_line) = (1_usize, true);
    for axis in axes.rev() {
        is_line &= axis.stride == len as isize || axis.size == 1;
        len = len.saturating_mul(axis.size);
    }
    if !is_line {
        return None;
    }
    // SAFETY: fact 1: the axes reach these elements, which are contiguous.
    Some(unsafe { elements.line(0, len) })
}

// (Below, products of sizes are used as lengths. Such a product can wrap only if an axis is empty,
// and then it is 0.)

/// Copies elements with the axes `own` to places with the axes `axes`, and returns their number.
/// Returns `None`, without copying, unless both have the same axes and these are contiguous in
/// their order.
#[cfg_attr(not(unoptimized), inline(always))]
pub(crate) fn copy_line<'a, T: Copy>(
    elements: Elements<'_, T>,
    own: impl ExactSizeIterator<Item = &'a Axis> + DoubleEndedIterator,
    places: ElementsMut<'_, T>,
    axes: &[Axis],
) -> Option<usize> {
    let (mut len, mut same) = (1_usize, axes.len() == own.len());
    for (axis, own) in axes.iter().zip(own).rev() {
        same &= axis == own && axis.stride == len as isize;
        len = len.wrapping_mul(axis.size);
    }
    if !same {
        return None;
    }
    // SAFETY: fact 1: the axes reach these elements and these places, and both sides are
    // contiguous.
    let (elements, places) = unsafe { (elements.line(0, len), places.line(len)) };
    places.copy_from_slice(elements);
    Some(len)
}

/// All places, if they have the sizes `sizes` and are contiguous in the order of `axes`, which must
/// be the places' own axes.
#[cfg_attr(not(unoptimized), inline(always))]
pub(crate) fn line_mut<'a, T>(
    places: ElementsMut<'a, T>,
    axes: &[Axis],
    sizes: impl ExactSizeIterator<Item = usize> + DoubleEndedIterator,
) -> Option<&'a mut [T]> {
    let (mut len, mut fits) = (1_usize, axes.len() == sizes.len());
    for (axis, size) in axes.iter().zip(sizes).rev() {
        fits &= axis.size == size && axis.stride == len as isize;
        len = len.wrapping_mul(axis.size);
    }
    if !fits {
        return None;
    }
    // SAFETY: fact 1: the axes reach these places, which are contiguous.
    Some(unsafe { places.line(len) })
}

/// A reader of elements along `row`, a row of a nest. Active indices, those that are computed for
/// each element, select from further axes of the elements.
#[cfg_attr(not(unoptimized), inline(always))]
pub(crate) fn strided<'k, T: Element, X: GatherIndices, W: StrideKind>(
    elements: Elements<'k, T>,
    row: Row<'k>,
    indices: X,
) -> Strided<'k, T, X, W> {
    // SAFETY: facts 1 to 3. An index is made with the size and the stride of the axis that it
    // selects from. `W` is `UnitStride` only if all operands are contiguous in the same order.
    unsafe { Strided::along_row(elements, row, indices) }
}

/// See [`copy::copy_row`].
#[inline]
pub(crate) fn copy_row<T: Element>(
    elements: Elements<'_, T>,
    row: Row<'_>,
    out: OutputSlots<'_, T>,
    offset: usize,
    loops: (&[isize], &[usize]),
) {
    // SAFETY: facts 1 to 3; the loops are those of the nest of the row.
    unsafe { copy::copy_row(elements, row, out, offset, loops) };
}

/// See [`InParts::finish`].
pub(crate) fn finish_parts<T: Element>(parts: InParts<T>) -> Vec<T> {
    // SAFETY: parts do not overlap: they are side by side along the axis that they are joined
    // along, or at different positions of the axes that tell them apart. All positions of a part
    // were written: if a part cannot be computed, the whole result is an error.
    unsafe { parts.finish() }
}

/// See [`copy::copy_onto`].
#[inline]
pub(crate) fn copy_onto<T: Element>(
    elements: Elements<'_, T>,
    row: Row<'_>,
    target: ElementsMut<'_, T>,
    result: Row<'_>,
    sizes: &[usize],
) {
    // SAFETY: facts 1 to 3, for both rows: the target's row was made from its axes, whose sizes
    // were compared with the loops'.
    unsafe { copy::copy_onto(elements, row, target, result, sizes) };
}

/// See [`elementwise::collect_memory`].
#[inline]
#[track_caller]
pub(crate) fn collect_memory<T: Element>(
    elements: Elements<'_, T>,
    nest: &Nest,
    to: Destination<'_, T>,
    reason: &'static str,
) -> Result<Vec<T>, Error> {
    // SAFETY: facts 1 to 3.
    unsafe { elementwise::collect_memory(elements, nest, to, reason) }
}

/// See [`copy::copy_few`].
#[cfg_attr(not(unoptimized), inline(always))]
pub(crate) fn copy_few<T: Copy + 'static>(
    elements: Elements<'_, T>,
    axes: &[Axis; FEW],
    to: Destination<'_, T>,
) -> Result<Vec<T>, Error> {
    // SAFETY: fact 1: the axes are those of the elements in another order, and axes of size 1 or
    // stride 0.
    unsafe { copy::copy_few(elements, axes, to) }
}

/// The elements and the sizes of a product of tensors in memory. Plans show it with the names in
/// `dims`. `None` if the operands need the general path.
///
/// (This and [`product_onto`] are two functions, because choosing at run time between new memory
/// and places is costly for small products.)
#[cfg_attr(not(unoptimized), inline(always))]
#[track_caller]
pub(crate) fn product<T: Num>(
    roles: &Roles,
    (a, a_axes): ElementsAlong<'_, T>,
    (b, b_axes): ElementsAlong<'_, T>,
    dims: impl FnOnce() -> ProductDims,
) -> Option<Result<(Vec<T>, ResultSizes), DimError>> {
    let Planned { batch, layout, mut out, len, sizes } = match roles.planned(a_axes, b_axes, dims)? {
        Ok(planned) => planned,
        Err(error) => return Some(Err(error)),
    };
    assert_eq!(batch.count * batch.m * batch.n, len, "the products are the result");
    assert!(len <= out.capacity(), "there is room for the results");
    // SAFETY: fact 1: the plan has the sizes and strides of the operands' own axes, or of several
    // merged into one loop, and has compared the sizes of both operands. The strides of the result
    // run through its axes in order, so its `len` elements, for which there is memory, are each
    // written once. The layout is that of the operands' types.
    unsafe {
        batch.multiply(layout, a, b, out.as_mut_ptr());
        out.set_len(len);
    }
    Some(Ok((out, sizes)))
}

/// Like [`product`], but writes to places along `axes`, which are the result's axes in order.
/// Returns whether it ran.
#[cfg_attr(not(unoptimized), inline(always))]
#[track_caller]
pub(crate) fn product_onto<T: Num>(
    roles: &Roles,
    (a, a_axes): ElementsAlong<'_, T>,
    (b, b_axes): ElementsAlong<'_, T>,
    mut places: ElementsMut<'_, T>,
    axes: &[Axis],
    dims: impl FnOnce() -> ProductDims,
) -> bool {
    let Some(batch) = roles.planned_onto::<T>(a_axes, b_axes, axes, dims) else { return false };
    places.assert_reach(0, &[batch.count, batch.m, batch.n], &batch.c);
    // SAFETY: fact 1: the plan has the sizes and strides of the operands' own axes, or of several
    // merged into one loop, and has compared the sizes of both operands. It also has the strides of
    // the places' axes, and has compared their sizes with the result's. Places are distinct, as the
    // implementor of `SourceMut` promises.
    unsafe { batch.multiply(None, a, b, places.as_mut_ptr()) };
    true
}

/// A factor of a contraction with its strides along the loops.
#[inline]
pub(crate) fn factor<T: Num>(
    elements: Elements<'_, T>,
    strides: SmallVec<[isize; 8]>,
) -> ContractionFactor<'_, T> {
    // SAFETY: facts 1 and 2; the factor is contracted over the loops that the strides belong to.
    unsafe { ContractionFactor::borrowed(elements, strides) }
}

/// The factor over the loops of a pattern.
pub(crate) fn factor_over<'a, T: Num>(
    factor: ContractionFactor<'a, T>,
    strides: impl FnOnce(&[isize]) -> SmallVec<[isize; 8]>,
) -> ContractionFactor<'a, T> {
    // SAFETY: the pattern's sizes are solved from those of the operand's axes. The stride of an
    // axis that is a group is spread over the loops of the group, whose sizes multiply to that of
    // the axis.
    unsafe { factor.over(strides) }
}

/// The places of a result along the loops `kept`.
pub(crate) fn places<'a, T: Num>(
    places: ElementsMut<'a, T>,
    strides: SmallVec<[isize; 8]>,
    sizes: &[usize],
    kept: &[usize],
) -> Target<'a, T> {
    // SAFETY: `kernels::contract::target::spread` made the strides from the axes of the places,
    // whose sizes it compared with the loops'. Places are distinct, as the implementor of
    // `SourceMut` promises.
    unsafe { Target::places(places, strides, sizes, kept) }
}

/// The input of a reduction: the elements are the nest's only operand.
#[cfg_attr(not(unoptimized), inline(always))]
pub(crate) fn to_reduce<'a, T>(
    elements: Elements<'a, T>,
    nest: &'a Nest,
    work: usize,
    count: usize,
) -> reduce::input::ReduceInput<'a, T> {
    // SAFETY: facts 1 to 3.
    unsafe { reduce::input::ReduceInput::new(elements, nest, work, count) }
}

/// The input of work along lines: the elements are the only operand of the nests.
#[cfg_attr(not(unoptimized), inline(always))]
pub(crate) fn to_scan<'a, T>(
    elements: Elements<'a, T>,
    parts: &'a [Nest],
    len: usize,
    inner: usize,
) -> scan::ScanInput<'a, T> {
    // SAFETY: facts 1 to 3.
    unsafe { scan::ScanInput::new(elements, parts, len, inner) }
}

/// See [`update::update`].
pub(crate) fn update<'n, T, K, X, O>(
    nest: &'n Nest,
    parts: &'n mut NestParts,
    place: ElementsMut<'_, T>,
    lower: impl Fn(&'n Nest) -> LoweredUpdate<'n, X, K>,
    op: O,
) -> Result<(), Error>
where
    T: Element,
    K: Kernel,
    X: GatherIndices,
    O: BinaryOp<T, K::Elem, Out = T> + Copy,
{
    // SAFETY: facts 1 to 3, for the place too: its row is the first of the nest. Its indices are
    // made with the sizes and strides of the axes that they select from.
    unsafe { update::update(nest, parts, place, lower, op) }
}

/// See [`lowered::collect`].
pub(crate) fn collect_lowered<T: Element>(
    program: &LoweredProgram<'_>,
    nest: &Nest,
    to: Destination<'_, T>,
) -> Result<Vec<T>, Error> {
    // SAFETY: facts 1 to 3: the operands of a program are in the order of their rows.
    unsafe { lowered::collect(program, nest, to) }
}

/// The input of a reduction: the elements that a program computes.
pub(crate) fn to_reduce_lowered<'a, T: Element>(
    program: &'a LoweredProgram<'a>,
    nest: &'a Nest,
    work: usize,
    count: usize,
) -> reduce::input::ReduceInput<'a, T> {
    // SAFETY: facts 1 to 3: the operands of a program are in the order of their rows.
    unsafe { reduce::input::ReduceInput::of_program(program, nest, work, count) }
}

/// See [`lowered::update`].
pub(crate) fn update_lowered<T: Element>(
    program: &LoweredProgram<'_>,
    nest: &Nest,
    place: ElementsMut<'_, T>,
) {
    // SAFETY: facts 1 to 3, for the place too: it is the program's first operand, and its row is
    // the first of the nest.
    unsafe { lowered::update(program, nest, place) };
}

/// See [`lowered::write`].
pub(crate) fn write_lowered<T: Element>(
    program: &LoweredProgram<'_>,
    nest: &Nest,
    places: OutputSlots<'_, T>,
    offset: usize,
) {
    // SAFETY: facts 1 to 3: the operands of a program are in the order of their rows.
    unsafe { lowered::write(program, nest, places, offset) };
}

/// See [`attention::attend`].
pub(crate) fn attend<'w, T: Real>(
    work: &'w Work<'w, T>,
    len: usize,
    threads: usize,
    lower: &dyn Fn() -> Box<dyn Change<T> + 'w>,
) -> Result<Vec<T>, Error> {
    // SAFETY: facts 1 to 3: the rows are the strides of the three operands along the loops of one
    // shape. The result's strides run through its axes in order. An operand without elements is
    // never read, because a loop that it varies along is empty. There is one thread unless the
    // kernels of mask and bias may run on several.
    unsafe { attention::attend(work, len, threads, lower) }
}

/// See [`attention::lowered_scores`].
pub(crate) fn lowered_scores<'k, T: Real>(
    mask: &'k LoweredProgram<'k>,
    bias: Option<&'k LoweredProgram<'k>>,
    rows: &mut OperandRows<'k>,
) -> Option<Box<dyn Change<T> + 'k>> {
    // SAFETY: facts 1 to 3: the operands of a program are in the order of their rows.
    unsafe { attention::lowered_scores(mask, bias, rows) }
}
