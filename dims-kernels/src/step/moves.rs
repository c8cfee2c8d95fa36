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
use crate::scalar::Element;
#[cfg(feature = "std")]
use crate::trace::{Field, Node, Part, StridedPlace, Table};
use alloc::sync::Arc;
#[cfg(feature = "std")]
use alloc::vec::Vec;
use smallvec::SmallVec;

/// The name of moves in plans, except those with names of their own.
pub const REARRANGEMENT: &str = "rearrangement";

/// Elements moved along an axis: for each block, `out[at] = x[sources[at]]`, or `fill` where there
/// is no source.
///
/// Operand: `outer` blocks of `size` rows of `inner` elements. Result: `outer` blocks of
/// `sources.len()` rows.
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
    /// For each row of a block of the result: the row of the operand's block that it comes from.
    pub sources: Arc<[Option<usize>]>,
    /// The value of all elements in rows without a source.
    pub fill: T,
}

impl<T: Element> StepKind for MoveRows<T> {
    fn name(&self) -> &'static str {
        self.name
    }

    fn lines(&self) -> [usize; 2] {
        [self.outer, self.sources.len() * self.inner]
    }

    fn run(&self, operands: &mut StepOperands<'_, '_>, _: usize) -> Result<StepResults, Error> {
        let mut out = InParts::of(self.outer * self.sources.len() * self.inner)?;
        if !self.sources.is_empty() && self.outer * self.inner > 0 {
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
    fn copy(&self, data: &[T], mut out: OutputSlots<'_, T>) {
        let Self { outer, size, inner, ref sources, fill, .. } = *self;
        let Some(runs) = runs(sources) else {
            let lines = (0..outer).flat_map(|block| sources.iter().map(move |source| (block, source)));
            let filled = vec![fill; inner];
            for (number, (block, source)) in lines.enumerate() {
                let line =
                    source.map_or(&filled[..], |source| &data[(block * size + source) * inner..][..inner]);
                out.put(number * inner, line);
            }
            return;
        };
        let block = (sources.len() * inner) as isize;
        for SourceRun { at, count, first, step } in runs {
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
        }
    }

    /// The result as a sum of parts of the operand, without the filled rows.
    #[cfg(feature = "std")]
    fn parts(&self, operand: &Field) -> Vec<Part> {
        let Self { outer, size, inner, ref sources, .. } = *self;
        let Some(held) = operand.memory() else { return Vec::new() };
        let len = sources.len();
        let pairs: Vec<(usize, usize)> =
            sources.iter().enumerate().filter_map(|(at, &source)| Some((at, source?))).collect();
        if pairs.is_empty() || outer * inner == 0 {
            return Vec::new();
        }
        let runs = pair_runs(&pairs);
        if runs.len() > MOST_RUNS {
            let sizes = [outer, pairs.len(), inner];
            let place = |rows: usize, of: fn(&(usize, usize)) -> usize| looked_up(&sizes, rows, &pairs, of);
            let field = Field::held(&sizes, held, place(size, |pair| pair.1));
            return vec![Part { field, place: place(len, |pair| pair.0) }];
        }
        let part = |run: &[(usize, usize)]| {
            let place = |rows: usize, of: fn(&(usize, usize)) -> usize| {
                let step = if run.len() > 1 { of(&run[1]) as isize - of(&run[0]) as isize } else { 0 };
                let strides = [(rows * inner) as isize, step * inner as isize, 1];
                StridedPlace::strided((of(&run[0]) * inner) as isize, strides)
            };
            let field = Field::held(&[outer, run.len(), inner], held, place(size, |pair| pair.1));
            Part { field, place: place(len, |pair| pair.0) }
        };
        runs.into_iter().map(part).collect()
    }
}

/// Panics unless all positions of the loops are among `len` elements.
fn assert_within(len: usize, offset: isize, sizes: &[usize], strides: &[isize]) {
    let axes = sizes.iter().copied().zip(strides.iter().copied());
    assert!(crate::memory::axes::is_within(len, offset as i128, axes), "the sources are rows of the operand");
}

/// Up to this many runs of rows, each run is copied alone, or is a separate part of a sum.
const MOST_RUNS: usize = 8;

/// Consecutive rows, beginning at `at`. Their sources begin at `first` and change by `step`.
/// Without `first`, the rows are filled.
struct SourceRun {
    at: usize,
    count: usize,
    first: Option<usize>,
    step: isize,
}

/// Splits the sources into runs. `None` if there are more than [`MOST_RUNS`], because a copy is
/// planned for each run.
fn runs(sources: &[Option<usize>]) -> Option<SmallVec<[SourceRun; 4]>> {
    let mut runs: SmallVec<[SourceRun; 4]> = SmallVec::new();
    for (at, &source) in sources.iter().enumerate() {
        if let Some(run) = runs.last_mut() {
            match (run.first, source) {
                (None, None) => {
                    run.count += 1;
                    continue;
                }
                (Some(first), Some(source)) => {
                    let step = source as isize - first as isize;
                    if run.count == 1 || step == run.step * run.count as isize {
                        run.step = if run.count == 1 { step } else { run.step };
                        run.count += 1;
                        continue;
                    }
                }
                _ => {}
            }
        }
        if runs.len() == MOST_RUNS {
            return None;
        }
        runs.push(SourceRun { at, count: 1, first: source, step: 0 });
    }
    Some(runs)
}

/// Splits pairs of rows into runs in which both numbers change by constant steps.
#[cfg(feature = "std")]
fn pair_runs(pairs: &[(usize, usize)]) -> Vec<&[(usize, usize)]> {
    let (mut runs, mut rest) = (Vec::new(), pairs);
    while !rest.is_empty() {
        let step = |at: usize| {
            let ((to, from), (next_to, next_from)) = (rest[at], rest[at + 1]);
            (next_to.wrapping_sub(to), next_from.wrapping_sub(from))
        };
        let end = (1..rest.len()).find(|&at| step(at - 1) != step(0)).unwrap_or(rest.len());
        let (run, behind) = rest.split_at(end);
        runs.push(run);
        rest = behind;
    }
    runs
}

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
