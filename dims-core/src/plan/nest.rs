//! Loop nests: axes of size 1 dropped, neighbours merged where every operand allows it.

use super::rows::Rows;
use crate::kernel::threads;
use smallvec::SmallVec;

/// Loops from the outermost to the innermost, with each operand's stride along each of them.
#[derive(Clone, Debug)]
pub struct Nest {
    /// How often each loop runs. There is at least one loop.
    pub sizes: SmallVec<[usize; 6]>,
    /// How many of the first loops run over elements of the result.
    pub outer: usize,
    /// Whether the innermost loop is one of the result's. (All loops between are reduced.)
    pub inner_kept: bool,
    /// For each loop, the stride of the result; 0 along reduced loops.
    pub result: SmallVec<[isize; 6]>,
    strides: SmallVec<[isize; 24]>,
    offsets: SmallVec<[isize; 6]>,
}

/// Parts of a loop nest.
pub type Parts = SmallVec<[Nest; 1]>;

/// Loops that are being merged: the size, and the axis whose strides are the loop's.
type Loops = SmallVec<[(usize, usize); 6]>;

impl Nest {
    /// Loops over `order`, in that order: for a result that is laid out so.
    #[inline]
    pub fn map(sizes: &[usize], order: &[usize], rows: &Rows) -> Self {
        let loops = merge(sizes, order.iter().copied(), rows);
        let kept = loops.len();
        Self::assemble(&loops, kept, true, sizes, order, rows)
    }

    /// Loops over `kept`, each element of which reduces the loops over `reduced`.
    ///
    /// The innermost loop is the one along which more operands have neighbours in memory.
    #[inline]
    pub fn reduce(sizes: &[usize], kept: &[usize], reduced: &[usize], rows: &Rows) -> Self {
        let outer = merge(sizes, kept.iter().copied(), rows);
        let inner = merge(sizes, reduced.iter().copied(), rows);
        // Neighbours in memory along the loop, and how many elements it has at hand; a long loop is as good as an endless one.
        let merit = |loops: &Loops| {
            loops.last().map_or(0, |&(size, axis)| {
                size.min(64) * rows.iter().filter(|row| row[axis].unsigned_abs() == 1).count()
            })
        };
        let mut loops = outer.clone();
        if merit(&inner) > merit(&outer) || outer.is_empty() {
            loops.extend(inner);
            let count = outer.len();
            Self::assemble(&loops, count, false, sizes, kept, rows)
        } else {
            let last = loops.pop().expect("there is an outer loop");
            let count = loops.len();
            loops.extend(inner);
            loops.push(last);
            Self::assemble(&loops, count, true, sizes, kept, rows)
        }
    }

    #[inline]
    fn assemble(
        loops: &Loops,
        outer: usize,
        inner_kept: bool,
        sizes: &[usize],
        kept: &[usize],
        rows: &Rows,
    ) -> Self {
        let mut loops = loops.clone();
        let mut outer = outer;
        let mut inner_kept = inner_kept;
        if loops.is_empty() {
            // A single element: one loop that runs once, along no axis.
            loops.push((1, usize::MAX));
            inner_kept = true;
            outer = 0;
        } else if inner_kept && outer == loops.len() {
            outer -= 1;
        }
        let stride = |row: &[isize], axis: usize| row.get(axis).copied().unwrap_or(0);
        let mut strides = SmallVec::new();
        for row in rows.iter() {
            strides.extend(loops.iter().map(|&(_, axis)| stride(row, axis)));
        }
        let mut result_row: SmallVec<[isize; 8]> = SmallVec::from_elem(0, sizes.len());
        let mut step = 1;
        for &axis in kept.iter().rev() {
            result_row[axis] = step;
            step = step.wrapping_mul(sizes[axis] as isize);
        }
        Nest {
            sizes: loops.iter().map(|&(size, _)| size).collect(),
            outer,
            inner_kept,
            result: loops.iter().map(|&(_, axis)| stride(&result_row, axis)).collect(),
            strides,
            offsets: SmallVec::from_slice(rows.offsets()),
        }
    }

    /// The strides of the operands, one row for each.
    #[inline]
    pub fn operands(&self) -> Operands<'_> {
        Operands { loops: self.sizes.len(), strides: &self.strides, offsets: &self.offsets }
    }

    /// The strides of each operand along the loops.
    pub fn operand_strides(&self) -> Vec<Vec<isize>> {
        self.strides.chunks(self.depth()).map(<[isize]>::to_vec).collect()
    }

    /// How many positions there are.
    #[inline]
    pub fn positions(&self) -> usize {
        self.sizes.iter().product()
    }

    /// How many positions the kept loops have.
    #[inline]
    pub fn results(&self) -> usize {
        let inner = if self.inner_kept { self.sizes[self.depth() - 1] } else { 1 };
        self.sizes[..self.outer].iter().product::<usize>() * inner
    }

    /// The nest cut along one of its loops into at most `parts` parts of about the same size.
    #[inline]
    pub fn split(self, at: usize, parts: usize) -> Parts {
        let size = self.sizes[at];
        let parts = parts.min(size);
        if parts <= 1 {
            return Parts::from_iter([self]);
        }
        let depth = self.depth();
        (0..parts)
            .map(|part| {
                let (start, end) = (part * size / parts, (part + 1) * size / parts);
                let mut nest = self.clone();
                nest.sizes[at] = end - start;
                for (row, offset) in nest.offsets.iter_mut().enumerate() {
                    *offset += self.strides[row * depth + at] * start as isize;
                }
                nest
            })
            .collect()
    }

    /// A reduction's nest cut for as many threads as its work is worth: along the outermost loop that it keeps.
    #[inline]
    pub fn for_threads(self, work: usize) -> Parts {
        let parts = threads::parts(work);
        match (self.outer, self.inner_kept) {
            (1.., _) => self.split(0, parts),
            (0, true) => {
                let last = self.depth() - 1;
                self.split(last, parts)
            }
            (0, false) => Parts::from_iter([self]),
        }
    }

    /// How many loops there are.
    #[inline]
    pub fn depth(&self) -> usize {
        self.sizes.len()
    }
}

/// Merges neighbouring axes into one loop where for every operand the outer stride is the inner stride times the inner
/// size. A merged loop has the strides of its innermost axis.
#[inline]
fn merge(sizes: &[usize], order: impl Iterator<Item = usize>, rows: &Rows) -> Loops {
    let mut loops = Loops::new();
    for axis in order {
        let size = sizes[axis];
        if size == 1 {
            continue;
        }
        if let Some((outer_size, outer_axis)) = loops.last_mut() {
            let merges = rows.iter().all(|row| row[*outer_axis] == row[axis].wrapping_mul(size as isize));
            if merges {
                *outer_size *= size;
                *outer_axis = axis;
                continue;
            }
        }
        loops.push((size, axis));
    }
    loops
}

/// Hands each operand its strides, in the order in which the expression visits its operands.
pub struct Operands<'n> {
    loops: usize,
    strides: &'n [isize],
    offsets: &'n [isize],
}

/// Where one operand lies along the loops.
#[derive(Clone, Copy, Debug)]
pub struct Row<'n> {
    /// How far from the origin of its axes the operand starts.
    pub offset: isize,
    /// Its stride along each loop.
    pub strides: &'n [isize],
}

impl<'n> Operands<'n> {
    /// No rows: for expressions that are not going to be read.
    pub fn none() -> Self {
        Operands { loops: 0, strides: &[], offsets: &[] }
    }

    /// The row of the next operand.
    #[inline]
    pub fn next_row(&mut self) -> Row<'n> {
        let Some((&offset, offsets)) = self.offsets.split_first() else {
            return Row { offset: 0, strides: &[] };
        };
        let (row, strides) = self.strides.split_at(self.loops);
        self.offsets = offsets;
        self.strides = strides;
        Row { offset, strides: row }
    }
}

/// Counts through all positions of some loops, the last one fastest.
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

    /// Whether the positions are used up.
    #[inline]
    pub fn is_done(&self) -> bool {
        self.done
    }

    /// The next position.
    #[inline]
    pub fn advance(&mut self, at: &mut [usize]) {
        for (at, &size) in at.iter_mut().zip(self.sizes).rev() {
            *at += 1;
            if *at < size {
                return;
            }
            *at = 0;
        }
        self.done = true;
    }
}
