//! Loop nests: axes of size 1 are dropped, and adjacent axes are merged if every operand allows it.

use super::stride::{StrideKind, UnitStride};
use crate::loops::rows::Rows;
use crate::machine::threads;
use crate::memory::elements::Reaches;
use alloc::vec::Vec;
use core::mem::ManuallyDrop;
use smallvec::SmallVec;

const INLINE_LOOPS: usize = 6;
const INLINE_STRIDES: usize = 16;

/// Loops from the outermost to the innermost, with the strides of each operand.
#[derive(Clone, Debug)]
pub struct Nest {
    /// The size of each loop. There is at least one loop.
    pub sizes: ManuallyDrop<SmallVec<[usize; INLINE_LOOPS]>>,
    /// The number of outer loops that run over elements of the result.
    pub outer: usize,
    /// Whether the innermost loop runs over elements of the result. All loops in between are
    /// reduced.
    pub inner_kept: bool,
    /// The stride of the result along each loop; 0 along reduced loops.
    pub result: ManuallyDrop<SmallVec<[isize; INLINE_LOOPS]>>,
    strides: ManuallyDrop<SmallVec<[isize; INLINE_STRIDES]>>,
    offsets: ManuallyDrop<SmallVec<[isize; INLINE_LOOPS]>>,
    /// The set of packed operands, as bits, and the strides of all operands after packing. There
    /// are no such strides if no operand is packed.
    packed: (u64, ManuallyDrop<Vec<isize>>),
    /// Whether the types guarantee that all strides along the innermost loop are 1.
    pub typed: bool,
}

/// Drops the fields in a function that is compiled in this crate. Otherwise rustc compiles this
/// code again in each crate that drops a nest, even without optimization.
impl Drop for Nest {
    fn drop(&mut self) {
        let Nest { sizes, result, strides, offsets, packed: (_, packed), .. } = self;
        // SAFETY: a nest is dropped once, and its fields are dropped only here.
        unsafe {
            ManuallyDrop::drop(sizes);
            ManuallyDrop::drop(result);
            ManuallyDrop::drop(strides);
            ManuallyDrop::drop(offsets);
            ManuallyDrop::drop(packed);
        }
    }
}

/// Parts of a loop nest.
pub type NestParts = SmallVec<[Nest; 1]>;

/// Loops that are being merged: the size of each, and the axis whose strides it has.
type MergedLoops = SmallVec<[(usize, usize); INLINE_LOOPS]>;

impl Nest {
    /// Loops over the axes `order`, the outermost first, for a result that is contiguous in this
    /// order.
    pub fn map(sizes: &[usize], order: &[usize], rows: &Rows) -> Self {
        let mut loops = MergedLoops::new();
        merge(&mut loops, sizes, order, rows);
        let outer = loops.len();
        Self::assemble(&mut loops, outer, true, rows)
    }

    /// One loop over contiguous elements, for this number of operands. `W` says whether the types
    /// guarantee that the operands are contiguous.
    #[inline]
    pub fn line<W: StrideKind>(len: usize, operands: usize) -> Self {
        Nest::line_of(len, operands, W::UNIT)
    }

    fn line_of(len: usize, operands: usize, typed: bool) -> Self {
        let mut strides = zeros(operands, [0; INLINE_STRIDES]);
        strides.fill(1);
        Nest {
            sizes: zeros(1, [len; INLINE_LOOPS]),
            outer: 0,
            inner_kept: true,
            result: zeros(1, [1; INLINE_LOOPS]),
            strides,
            offsets: zeros(operands, [0; INLINE_LOOPS]),
            packed: (0, ManuallyDrop::new(Vec::new())),
            typed,
        }
    }

    /// Loops over the axes `order`: those in `kept`, and the others, which are reduced. The types
    /// guarantee that all operands are contiguous in this order, the last axis fastest. The
    /// innermost loop contains the last axis whose size is not 1. Other kept loops are outside of
    /// reduced loops.
    pub fn typed_reduce(order: &[usize], sizes: &[usize], kept: &[usize], operands: usize) -> Self {
        // Adjacent axes that are both kept or both reduced form one loop.
        let mut loops: SmallVec<[(usize, bool); INLINE_LOOPS]> = SmallVec::new();
        for axis in order.iter().filter(|&&axis| sizes[axis] != 1) {
            let (size, kept) = (sizes[*axis], kept.contains(axis));
            match loops.last_mut() {
                Some((outer, same)) if *same == kept => *outer *= size,
                _ => loops.push((size, kept)),
            }
        }
        let Some(&(_, inner_kept)) = loops.last() else { return Self::line::<UnitStride>(1, operands) };
        let depth = loops.len();
        let outer = loops[..depth - 1].iter().filter(|&&(_, kept)| kept).count();
        let mut nest = Nest {
            sizes: zeros(depth, [0; INLINE_LOOPS]),
            outer,
            inner_kept,
            result: zeros(depth, [0; INLINE_LOOPS]),
            strides: zeros(depth * operands, [0; INLINE_STRIDES]),
            offsets: zeros(operands, [0; INLINE_LOOPS]),
            packed: (0, ManuallyDrop::new(Vec::new())),
            typed: true,
        };
        // Loops are placed from the innermost outwards: the innermost loop and the reduced loops at
        // the indices below `inside`, the other kept loops at the indices below `outside`.
        let (mut outside, mut inside) = (outer, depth);
        let (mut step, mut result_step): (isize, isize) = (1, 1);
        for (number, &(size, kept)) in loops.iter().enumerate().rev() {
            let side = if kept && number + 1 < depth { &mut outside } else { &mut inside };
            *side -= 1;
            let at = *side;
            nest.sizes[at] = size;
            nest.strides[at..].iter_mut().step_by(depth).for_each(|stride| *stride = step);
            step = step.wrapping_mul(size as isize);
            if kept {
                nest.result[at] = result_step;
                result_step = result_step.wrapping_mul(size as isize);
            }
        }
        nest
    }

    /// Loops over the `kept` axes and, for each element of the result, over the `reduced` axes.
    ///
    /// The innermost loop is the last kept or the last reduced loop, usually the one along which
    /// more operands are contiguous.
    pub fn reduce(sizes: &[usize], kept: &[usize], reduced: &[usize], rows: &Rows) -> Self {
        // The number of operands that are contiguous along the last loop, times the size of that
        // loop. Beyond 64, the size does not matter.
        let merit = |loops: &[(usize, usize)]| {
            loops.last().map_or(0, |&(size, axis)| {
                size.min(64) * rows.iter().filter(|row| row[axis].unsigned_abs() == 1).count()
            })
        };
        let mut loops = MergedLoops::new();
        merge(&mut loops, sizes, kept, rows);
        let outer = loops.len();
        merge(&mut loops, sizes, reduced, rows);
        if outer == 0 || merit(&loops[outer..]) > merit(&loops[..outer]) {
            if let Some(packed) = worth_packing(&loops, outer, rows) {
                loops[outer - 1..].rotate_left(1);
                let mut nest = Self::assemble(&mut loops, outer - 1, true, rows);
                nest.packed.0 = packed;
                nest.pack();
                return nest;
            }
            Self::assemble(&mut loops, outer, false, rows)
        } else {
            loops[outer - 1..].rotate_left(1);
            Self::assemble(&mut loops, outer - 1, true, rows)
        }
    }

    /// Loops over the axes `blocks`, and inside them over `lines`, for a result that is contiguous
    /// in this order and processed block by block. The loops over `lines` count as reduced.
    pub fn blocks(sizes: &[usize], blocks: &[usize], lines: &[usize], rows: &Rows) -> Self {
        let mut loops = MergedLoops::new();
        merge(&mut loops, sizes, blocks, rows);
        let outer = loops.len();
        merge(&mut loops, sizes, lines, rows);
        if loops.len() == outer {
            loops.push((1, usize::MAX));
        }
        Self::assemble(&mut loops, outer, false, rows)
    }

    /// Loops over the axes of several groups, merged within each group. The longest loop of each
    /// group is its last. Also returns the number of loops of each group, at least 1.
    pub fn grouped(sizes: &[usize], groups: &[&[usize]], rows: &Rows) -> (Self, SmallVec<[usize; 4]>) {
        let mut loops = MergedLoops::new();
        let mut counts = SmallVec::new();
        for group in groups {
            let first = loops.len();
            merge(&mut loops, sizes, group, rows);
            let own = &mut loops[first..];
            if let Some(longest) = (0..own.len()).max_by_key(|&at| own[at].0) {
                own[longest..].rotate_left(1);
            } else {
                loops.push((1, usize::MAX));
            }
            counts.push(loops.len() - first);
        }
        let outer = loops.len();
        (Self::assemble(&mut loops, outer, false, rows), counts)
    }

    /// The strides of an operand along the loops.
    pub fn strides_of(&self, operand: usize) -> &[isize] {
        let depth = self.depth();
        &self.strides[operand * depth..(operand + 1) * depth]
    }

    fn assemble(loops: &mut MergedLoops, outer: usize, inner_kept: bool, rows: &Rows) -> Self {
        let (mut outer, mut inner_kept) = (outer, inner_kept);
        if loops.is_empty() {
            // A single element: one loop of size 1, along no axis.
            loops.push((1, usize::MAX));
            inner_kept = true;
            outer = 0;
        } else if inner_kept && outer == loops.len() {
            outer -= 1;
        }
        let loops = &loops[..];
        let depth = loops.len();
        let mut nest = Nest {
            sizes: zeros(depth, [0; INLINE_LOOPS]),
            outer,
            inner_kept,
            result: zeros(depth, [0; INLINE_LOOPS]),
            strides: zeros(depth * rows.offsets().len(), [0; INLINE_STRIDES]),
            offsets: zeros(rows.offsets().len(), [0; INLINE_LOOPS]),
            packed: (0, ManuallyDrop::new(Vec::new())),
            typed: false,
        };
        // The result is contiguous in the order of its loops.
        let mut step: isize = 1;
        for (at, ((&(size, _), own), result)) in
            loops.iter().zip(&mut nest.sizes[..]).zip(&mut nest.result[..]).enumerate().rev()
        {
            *own = size;
            if at < outer || inner_kept && at + 1 == depth {
                *result = step;
                step = step.wrapping_mul(size as isize);
            }
        }
        nest.offsets.copy_from_slice(rows.offsets());
        for (row, strides) in rows.iter().zip(nest.strides.chunks_exact_mut(depth)) {
            for (stride, &(_, axis)) in strides.iter_mut().zip(loops) {
                *stride = row.get(axis).copied().unwrap_or(0);
            }
        }
        nest
    }

    /// The strides of the operands, one row for each.
    #[cfg_attr(not(debug_assertions), inline)]
    pub fn operands(&self) -> OperandRows<'_> {
        OperandRows {
            sizes: &self.sizes,
            strides: &self.strides,
            offsets: &self.offsets,
            packed: self.packed.0,
            packed_strides: &self.packed.1,
        }
    }

    /// Computes the strides of packed operands: contiguous along the innermost loop, then along the
    /// others.
    fn pack(&mut self) {
        let depth = self.depth();
        *self.packed.1 = vec![0; self.strides.len()];
        for (row, packed) in self.strides.chunks_exact(depth).zip(self.packed.1.chunks_exact_mut(depth)) {
            let mut step: isize = 1;
            for at in (0..depth).rev().filter(|&at| row[at] != 0) {
                packed[at] = step;
                step = step.wrapping_mul(self.sizes[at] as isize);
            }
        }
    }

    /// The strides of each operand along the loops.
    pub fn operand_strides(&self) -> Vec<Vec<isize>> {
        self.strides.chunks(self.depth()).map(<[isize]>::to_vec).collect()
    }

    /// The number of positions; saturating, because reduced loops may have more positions than
    /// memory has elements.
    #[cfg_attr(not(debug_assertions), inline)]
    pub fn positions(&self) -> usize {
        self.sizes.iter().fold(1, |count, &size| count.saturating_mul(size))
    }

    /// The number of positions of the kept loops.
    #[cfg_attr(not(debug_assertions), inline)]
    pub fn results(&self) -> usize {
        let inner = if self.inner_kept { self.sizes[self.depth() - 1] } else { 1 };
        self.sizes[..self.outer].iter().fold(inner, |count, &size| count.saturating_mul(size))
    }

    /// Splits the nest along a loop into at most `parts` parts of about the same size.
    pub fn split(&self, at: usize, parts: usize) -> NestParts {
        let size = self.sizes[at];
        let parts = parts.clamp(1, size.max(1));
        let depth = self.depth();
        // `part * size / parts` without overflow.
        let cut = |part: usize| size / parts * part + size % parts * part / parts;
        (0..parts)
            .map(|part| {
                let (start, end) = (cut(part), cut(part + 1));
                let mut nest = self.clone();
                nest.sizes[at] = end - start;
                for (row, offset) in nest.offsets.iter_mut().enumerate() {
                    *offset =
                        offset.wrapping_add(self.strides[row * depth + at].wrapping_mul(start as isize));
                }
                if nest.packed.0 != 0 {
                    nest.pack();
                }
                nest
            })
            .collect()
    }

    /// Splits a reduction's nest along its outermost kept loop, into at most one part for each
    /// thread that this much work keeps busy. A nest without kept loops is not split.
    pub fn for_threads(&self, work: usize) -> NestParts {
        let parts = threads::parts(work);
        match (self.outer, self.inner_kept) {
            (1.., _) => self.split(0, parts),
            (0, true) => self.split(self.depth() - 1, parts),
            (0, false) => self.split(0, 1),
        }
    }

    /// The number of loops.
    #[inline]
    pub fn depth(&self) -> usize {
        self.sizes.len()
    }
}

/// The first `len` elements of `few`, stored without an allocation, or `len` zeros if
/// `few` is shorter.
#[cfg_attr(not(unoptimized), inline(always))]
fn zeros<T: Copy + Default, const N: usize>(len: usize, few: [T; N]) -> ManuallyDrop<SmallVec<[T; N]>>
where
    [T; N]: smallvec::Array<Item = T>,
{
    let zeros =
        if len <= N { SmallVec::from_buf_and_len(few, len) } else { SmallVec::from_elem(T::default(), len) };
    ManuallyDrop::new(zeros)
}

/// Appends loops over some axes. Adjacent axes are merged into one loop if, for every operand, the
/// outer stride is the inner stride times the inner size. A merged loop has the strides of its
/// innermost axis.
fn merge(loops: &mut MergedLoops, sizes: &[usize], order: &[usize], rows: &Rows) {
    let first = loops.len();
    for &axis in order {
        let size = sizes[axis];
        if size == 1 {
            continue;
        }
        if loops.len() > first
            && let Some((outer_size, outer_axis)) = loops.last_mut()
        {
            let merges = rows.iter().all(|row| row[*outer_axis] == row[axis].wrapping_mul(size as isize));
            if merges {
                *outer_size *= size;
                *outer_axis = axis;
                continue;
            }
        }
        loops.push((size, axis));
    }
}

/// A reduced loop with fewer elements is short: combining its accumulators costs as much as filling
/// them.
const MIN_LONG_LOOP: usize = 256;

/// Which operands have to be packed so that the last kept loop can be the innermost one, for
/// reductions over a short loop. `None` if the nest should not be packed.
fn worth_packing(loops: &[(usize, usize)], outer: usize, rows: &Rows) -> Option<u64> {
    let &(width, axis) = loops[..outer].last()?;
    let &(short, _) = loops[outer..].last()?;
    if width < 32 || short >= MIN_LONG_LOOP || rows.offsets().len() > u64::BITS as usize {
        return None;
    }
    let positions: f64 = loops.iter().map(|&(size, _)| size as f64).product();
    let mut packed = 0;
    for (number, row) in rows.iter().enumerate() {
        if matches!(row[axis], 0 | 1) {
            continue;
        }
        let own = loops.iter().filter(|&&(_, axis)| row[axis] != 0).map(|&(size, _)| size as f64);
        if own.product::<f64>() * 16.0 > positions {
            return None;
        }
        packed |= 1 << number;
    }
    (packed != 0).then_some(packed)
}

/// Gives each operand its strides, in the order in which the expression visits its operands.
pub struct OperandRows<'n> {
    sizes: &'n [usize],
    strides: &'n [isize],
    offsets: &'n [isize],
    /// The set of packed operands, as bits. The lowest bit is the next operand.
    packed: u64,
    packed_strides: &'n [isize],
}

/// The offset of an operand's elements, and their strides along the loops.
#[derive(Clone, Copy, Debug)]
pub struct Row<'n> {
    /// The offset of the first element from the origin of the operand's axes.
    pub offset: isize,
    /// The stride along each loop.
    pub strides: &'n [isize],
    /// If the elements should be packed before the loops run: the size of each loop, and the stride
    /// along it after packing.
    pub packed: Option<(&'n [usize], &'n [isize])>,
    /// The size of each loop, to check that the row stays within the elements.
    #[cfg(debug_assertions)]
    pub sizes: &'n [usize],
}

impl<'n> Row<'n> {
    /// A row with these strides, for a function that gets the sizes of the loops separately.
    #[inline]
    pub fn new(strides: &'n [isize]) -> Self {
        Row {
            offset: 0,
            strides,
            packed: None,
            #[cfg(debug_assertions)]
            sizes: &[],
        }
    }
}

impl Row<'_> {
    /// In builds with debug assertions, panics if the row reaches beyond the elements.
    #[cfg_attr(not(unoptimized), inline(always))]
    pub fn assert_within(&self, elements: &impl Reaches) {
        let _ = elements;
        // Without strides there is no nest, and the operand is not read.
        #[cfg(debug_assertions)]
        if !self.strides.is_empty() {
            elements.assert_reach(self.offset, self.sizes, self.strides);
        }
    }
}

impl<'n> OperandRows<'n> {
    /// No rows: for expressions that are not read.
    pub fn none() -> Self {
        OperandRows { sizes: &[], strides: &[], offsets: &[], packed: 0, packed_strides: &[] }
    }

    /// The row of the next operand.
    #[cfg_attr(not(debug_assertions), inline)]
    pub fn next_row(&mut self) -> Row<'n> {
        let Some((&offset, offsets)) = self.offsets.split_first() else {
            return Row::new(&[]);
        };
        let loops = self.sizes.len();
        let (row, strides) = self.strides.split_at(loops);
        self.offsets = offsets;
        self.strides = strides;
        let mut packed = None;
        if !self.packed_strides.is_empty() {
            let (own, others) = self.packed_strides.split_at(loops);
            packed = (self.packed & 1 == 1).then_some((self.sizes, own));
            self.packed >>= 1;
            self.packed_strides = others;
        }
        Row {
            offset,
            strides: row,
            packed,
            #[cfg(debug_assertions)]
            sizes: self.sizes,
        }
    }
}

/// Iterates over all positions of some loops, the last loop fastest.
#[derive(Debug)]
pub struct Odometer<'s> {
    sizes: &'s [usize],
    done: bool,
}

impl<'s> Odometer<'s> {
    /// Starts at the origin, if there is any position.
    #[inline]
    pub fn new(sizes: &'s [usize]) -> Self {
        Odometer { sizes, done: sizes.contains(&0) }
    }

    /// Whether there are no more positions.
    #[cfg_attr(not(debug_assertions), inline)]
    pub fn is_done(&self) -> bool {
        self.done
    }

    /// Moves to the next position. If only the last loop advances, returns that loop's number.
    #[cfg_attr(not(debug_assertions), inline)]
    pub fn advance(&mut self, at: &mut [usize]) -> Option<usize> {
        let last = self.sizes.len().wrapping_sub(1);
        for (number, (at, &size)) in at.iter_mut().zip(self.sizes).enumerate().rev() {
            *at += 1;
            if *at < size {
                return (number == last).then_some(number);
            }
            *at = 0;
        }
        self.done = true;
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_nest_is_cut_wherever_its_sizes_can_be_counted() {
        for (size, parts) in [(10, 3), (3, 8), (0, 4), (usize::MAX, 7), (isize::MAX as usize, 2)] {
            let cut = Nest::line::<UnitStride>(size, 1).split(0, parts);
            let sizes: Vec<usize> = cut.iter().map(|part| part.sizes[0]).collect();
            assert_eq!(sizes.iter().sum::<usize>(), size);
            assert_eq!(sizes.len(), parts.clamp(1, size.max(1)));
            assert!(sizes.iter().all(|part| part.abs_diff(size / sizes.len()) <= 1), "{sizes:?}");
            // Each part starts where the one before it ends.
            let ends =
                sizes.iter().scan(0, |end: &mut usize, &part| Some(core::mem::replace(end, *end + part)));
            assert!(cut.iter().zip(ends).all(|(part, start)| part.offsets[0] == start as isize));
        }
    }

    #[test]
    fn strides_of_packed_operands_may_overflow_if_they_are_empty() {
        let sizes = [2, 0, (1 << (usize::BITS - 7)) + 1, 64];
        let mut rows = Rows::new(sizes.len());
        rows.push().copy_from_slice(&[isize::MIN + 64, 128, 64, 1]);
        let nest = Nest::reduce(&sizes, &[0, 1, 2], &[3], &rows);
        assert_eq!((nest.packed.0, nest.positions()), (1, 0));
    }
}
