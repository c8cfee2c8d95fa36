//! Moves rows along an axis: `roll`, `shift`, `pad`, `repeat` and the like.

#[cfg(feature = "std")]
use super::Pulled;
use super::{StepKind, StepOperands, StepResults};
use crate::copy::copy_row;
use crate::error::Error;
use crate::loops::nest::Nest;
use crate::loops::rows::Rows;
use crate::memory::allocate::InParts;
use crate::memory::axes::Axis;
use crate::memory::elements::{Elements, OutputSlots};
use crate::memory::runs::RowRun;
use crate::scalar::Element;
#[cfg(feature = "std")]
use crate::trace::{Field, Node, Part, StridedPlace, Table};
use alloc::sync::Arc;
use alloc::vec;
#[cfg(feature = "std")]
use alloc::vec::Vec;
use smallvec::SmallVec;

/// The name of moves in plans, except those with names of their own.
pub const REARRANGEMENT: &str = "rearrangement";

/// Elements moved along an axis: the rows of each block of the result are rows of the operand's
/// block, or have the value `fill`.
///
/// Operand: `outer` blocks of `size` rows of `inner` elements. Result: `outer` blocks of the
/// rows of `sources`.
#[derive(Clone, Debug)]
pub struct MoveRows<T> {
    /// The name in plans.
    pub name: &'static str,
    /// The number of blocks.
    pub outer: usize,
    /// The number of rows of a block.
    pub size: usize,
    /// The number of elements of a row.
    pub inner: usize,
    /// The source of each row of a block of the result: a row of the operand's block, or none.
    pub sources: Arc<[RowRun]>,
    /// The value of all elements in rows without a source.
    pub fill: T,
}

impl<T: Element> StepKind for MoveRows<T> {
    fn name(&self) -> &'static str {
        self.name
    }

    fn lines(&self) -> [usize; 2] {
        [self.outer, self.len() * self.inner]
    }

    fn run(&self, operands: &mut StepOperands<'_, '_>, _: usize) -> Result<StepResults, Error> {
        let mut out = InParts::of(self.outer * self.len() * self.inner)?;
        if self.outer * self.inner > 0 {
            self.copy(operands.of(0), out.places());
        }
        // SAFETY: the rows of the result are disjoint, and each is written once. If nothing is
        // copied, there are no slots.
        Ok(StepResults::one(unsafe { out.finish() }))
    }

    #[cfg(feature = "std")]
    fn pull(&self, step: &Pulled<'_>) -> Result<Vec<(Arc<Node>, Part)>, Error> {
        step.sum(&self.parts(&step.operands[0]))
    }
}

impl<T: Element> MoveRows<T> {
    /// The number of rows of a block of the result.
    fn len(&self) -> usize {
        let add = |sum: usize, run: &RowRun| sum.checked_add(run.count);
        self.sources.iter().try_fold(0, add).expect("the number of rows is a size")
    }

    fn copy(&self, data: &[T], mut out: OutputSlots<'_, T>) {
        let Self { outer, size, inner, ref sources, fill, .. } = *self;
        if sources.len() > MOST_RUNS {
            let filled = vec![fill; inner];
            let mut at = 0;
            for block in 0..outer {
                for run in sources.iter() {
                    for source in run.rows() {
                        let line = source
                            .map_or(&filled[..], |source| &data[(block * size + source) * inner..][..inner]);
                        out.put(at * inner, line);
                        at += 1;
                    }
                }
            }
            return;
        }
        let block = (self.len() * inner) as isize;
        let mut at = 0;
        for &RowRun { count, first, step } in sources.iter().filter(|run| run.count > 0) {
            let mut rows = Rows::new(3);
            rows.push().copy_from_slice(&[block, inner as isize, 1]);
            let (from, strides, offset) = match first {
                Some(first) => {
                    (data, [(size * inner) as isize, step * inner as isize, 1], (first * inner) as isize)
                }
                None => (core::slice::from_ref(&fill), [0; 3], 0),
            };
            rows.push().copy_from_slice(&strides);
            let axes = [outer, count, inner];
            assert_within(from.len(), offset, &axes, &strides);
            let own: SmallVec<[Axis; 3]> =
                axes.iter().zip(&strides).map(|(&size, &stride)| Axis::new(size, stride)).collect();
            // SAFETY: all positions along the axes lie within the slice, as asserted above.
            let elements = unsafe { Elements::new(from.as_ptr().wrapping_offset(offset), &own, &[]) };
            let nest = Nest::map(&axes, &[0, 1, 2], &rows);
            let mut operands = nest.operands();
            let to = operands.next_row();
            let row = operands.next_row();
            // SAFETY: the nest has the sizes and strides of the axes of the elements.
            unsafe { copy_row(elements, row, out.reborrow(), at * inner, (to.strides, &nest.sizes)) };
            at += count;
        }
    }

    /// The result as a sum of parts of the operand, without the filled rows.
    #[cfg(feature = "std")]
    fn parts(&self, operand: &Field) -> Vec<Part> {
        let Self { outer, size, inner, ref sources, .. } = *self;
        let Some(held) = operand.memory() else { return Vec::new() };
        let len = self.len();
        if outer * inner == 0 {
            return Vec::new();
        }
        if sources.len() > MOST_RUNS {
            let rows = sources.iter().flat_map(|run| run.rows()).enumerate();
            let pairs: Vec<(usize, usize)> = rows.filter_map(|(at, source)| Some((at, source?))).collect();
            let sizes = [outer, pairs.len(), inner];
            let place = |rows: usize, of: fn(&(usize, usize)) -> usize| looked_up(&sizes, rows, &pairs, of);
            let field = Field::held(&sizes, held, place(size, |pair| pair.1));
            return vec![Part { field, place: place(len, |pair| pair.0) }];
        }
        let mut at = 0;
        let parts = sources.iter().filter_map(|&RowRun { count, first, step }| {
            let place = |start: usize, rows: usize, step: isize| {
                let strides = [(rows * inner) as isize, step * inner as isize, 1];
                StridedPlace::strided((start * inner) as isize, strides)
            };
            let to = place(at, len, 1);
            at += count;
            let from = place(first.filter(|_| count > 0)?, size, step);
            Some(Part { field: Field::held(&[outer, count, inner], held, from), place: to })
        });
        parts.collect()
    }
}

/// Panics unless all positions of the loops are among `len` elements.
fn assert_within(len: usize, offset: isize, sizes: &[usize], strides: &[isize]) {
    let axes = sizes.iter().copied().zip(strides.iter().copied());
    assert!(crate::memory::axes::is_within(len, offset as i128, axes), "the sources are rows of the operand");
}

/// If there are at most this many runs of rows, each run is copied separately, and is a separate
/// part of the sum in the derivative.
const MOST_RUNS: usize = 8;

/// The place of the rows `of(pair)` of each block, which has `rows` rows. The loops are over
/// blocks, pairs and elements of a row.
#[cfg(feature = "std")]
pub(super) fn looked_up(
    sizes: &[usize; 3],
    rows: usize,
    pairs: &[(usize, usize)],
    of: fn(&(usize, usize)) -> usize,
) -> StridedPlace {
    let inner = sizes[2];
    let offsets = pairs.iter().map(|pair| (of(pair) * inner) as isize).collect();
    let table = Some(alloc::boxed::Box::new(Table::new(offsets, sizes, &[1])));
    StridedPlace { table, ..StridedPlace::strided(0, [(rows * inner) as isize, 0, 1]) }
}
