//! Results assembled from elements in memory: each part is copied to its positions.

use crate::error::DimError;
use crate::execute::loops::RunLoops;
use crate::expr::step::{LoopOperand, StepOfParts};
use crate::storage::unchecked::{copy_row, finish_parts, line};
use alloc::vec::Vec;
use kernels::loops::axes::Sizes;
use kernels::loops::nest::Nest;
use kernels::loops::rows::Rows;
use kernels::loops::steps::{Loops, PlanStep, note, told, told_array};
use kernels::memory::allocate::{InParts, defaults, reserve};
use kernels::memory::axes::Axis;
use kernels::memory::buffer::Buffer;
use kernels::memory::elements::{Elements, OutputSlots};
use kernels::scalar::Element;
use smallvec::SmallVec;

/// A result of zeros into which parts are copied along loops: a position that no part covers is 0.
pub(crate) struct CopiedParts<T> {
    data: Vec<T>,
    step: StepOfParts,
}

impl<T: Element> CopiedParts<T> {
    /// Starts with zeros. The parts are elements that `operand` reads.
    pub(crate) fn over_zeros(len: usize, operand: &impl LoopOperand) -> Result<Self, DimError> {
        Ok(CopiedParts { data: defaults(len)?, step: StepOfParts::of(operand) })
    }

    /// Copies elements along the axes `order` of the loops; the first element goes to the position
    /// `target`. `loops` has a row of strides for the elements and one for their positions in the
    /// result.
    #[track_caller]
    pub(crate) fn copy(
        &mut self,
        elements: Elements<'_, T>,
        target: isize,
        loops: RunLoops<'_>,
        order: &[usize],
    ) -> Result<(), DimError> {
        let RunLoops { sizes, rows } = loops;
        let nest = Nest::map(sizes, order, rows);
        let mut operands = nest.operands();
        let (from, to) = (operands.next_row(), operands.next_row());
        let len = order.iter().map(|&axis| sizes[axis]).product();
        note_part::<T>(&nest, len);
        copy_row(elements, from, (&mut self.data[..]).into(), target as usize, (to.strides, &nest.sizes));
        let along = |axis: usize| if order.contains(&axis) { sizes[axis] } else { 1 };
        let sizes: Sizes = (0..sizes.len()).map(along).collect();
        self.step.add(&sizes, (elements, rows.row(0)), (target, rows.row(1)))
    }

    #[track_caller]
    pub(crate) fn finish(self) -> Buffer<T> {
        self.step.finish(self.data)
    }
}

#[track_caller]
fn note_part<T: Element>(nest: &Nest, len: usize) {
    note(|| PlanStep::Copy { reason: "part of the result", loops: Loops::new::<T>(nest, len, 1) });
}

/// Copies parts that have the same layout, each to the position given for its first element, on the
/// [fast path](crate::execute::loops::short_way). There must be at least one part, and the parts
/// must be disjoint and fill all `len` positions. `None` if memory is short.
///
/// `loops` has a row of strides for the elements of a part and one for their positions in the
/// result.
#[track_caller]
pub(crate) fn copied_alike<'e, T: Element>(
    parts: impl ExactSizeIterator<Item = (Elements<'e, T>, isize)>,
    loops: RunLoops<'_>,
    order: &[usize],
    len: usize,
) -> Option<Vec<T>> {
    let mut nest = Nest::map(loops.sizes, order, loops.rows);
    *nest.result = nest.strides_of(1).into();
    let mut out = InParts::of(len).ok()?;
    let each = len / parts.len();
    for (elements, target) in parts {
        note_part::<T>(&nest, each);
        let row = nest.operands().next_row();
        copy_row(elements, row, out.places(), target as usize, (&nest.result, &nest.sizes));
    }
    let data = finish_parts(out);
    told(&data);
    Some(data)
}

/// The elements of parts, concatenated.
pub(crate) fn chained<T: Element>(
    len: usize,
    parts: impl Iterator<Item = Result<Vec<T>, DimError>>,
) -> Result<Vec<T>, DimError> {
    let mut data = reserve(len)?;
    for part in parts {
        data.extend(part?);
    }
    told(&data);
    Ok(data)
}

/// Arrays concatenated along one axis of a result.
pub(crate) struct JoinedArrays<T> {
    out: InParts<T>,
    /// The number of elements in a row of the result, which spans the joined axis and the axes
    /// after it.
    row: usize,
    /// The start of the next array in each row.
    start: usize,
}

impl<T: Element> JoinedArrays<T> {
    /// A result of `len` elements in rows of `row` elements; each array fills a part of every row.
    pub(crate) fn of(len: usize, row: usize) -> Result<Self, DimError> {
        Ok(JoinedArrays { out: InParts::of(len)?, row, start: 0 })
    }

    /// Copies an array. At each position of the first `before` axes, its elements along the other
    /// axes are contiguous in the result.
    pub(crate) fn push(&mut self, elements: Elements<'_, T>, axes: &[Axis], before: usize) {
        let block: usize = axes[before..].iter().map(|axis| axis.size).product();
        let rows: usize = axes[..before].iter().map(|axis| axis.size).product();
        if block > 0 && rows > 0 {
            copy_blocks(elements, axes, self.out.places().starting_at(self.start), (self.row, before, block));
        }
        self.start += block;
    }

    pub(crate) fn finish(self) -> Vec<T> {
        let data = finish_parts(self.out);
        told_array(&data);
        data
    }
}

/// Copies a nonempty array to its blocks of the result, which are `row` elements apart.
fn copy_blocks<T: Element>(
    elements: Elements<'_, T>,
    axes: &[Axis],
    mut out: OutputSlots<'_, T>,
    (row, before, block): (usize, usize, usize),
) {
    if let Some(line) = line(elements, axes.iter().copied()) {
        for (at, elements) in line.chunks_exact(block).enumerate() {
            out.put(at * row, elements);
        }
        return;
    }
    let sizes: SmallVec<[usize; 6]> = axes.iter().map(|axis| axis.size).collect();
    let order: SmallVec<[usize; 6]> = (0..sizes.len()).collect();
    let mut rows = Rows::new(sizes.len());
    rows.push().iter_mut().zip(axes).for_each(|(stride, axis)| *stride = axis.stride);
    let target = rows.push();
    let mut step = 1;
    for axis in (before..sizes.len()).rev() {
        target[axis] = step;
        step *= sizes[axis] as isize;
    }
    let mut step = row as isize;
    for axis in (0..before).rev() {
        target[axis] = step;
        step *= sizes[axis] as isize;
    }
    let nest = Nest::map(&sizes, &order, &rows);
    let mut operands = nest.operands();
    let (from, to) = (operands.next_row(), operands.next_row());
    copy_row(elements, from, out, 0, (to.strides, &nest.sizes));
}
