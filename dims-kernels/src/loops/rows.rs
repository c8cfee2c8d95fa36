//! The strides of each operand along the loop axes.

use crate::loops::axes::sort_few;
use core::mem::ManuallyDrop;
use smallvec::SmallVec;

const INLINE_STRIDES: usize = 16;
const INLINE_ROWS: usize = 6;

/// One row of strides for each operand of an expression, in the order in which the expression
/// visits them.
pub struct Rows {
    axes: usize,
    len: usize,
    /// At least `axes * len` strides; the rest are 0.
    strides: ManuallyDrop<SmallVec<[isize; INLINE_STRIDES]>>,
    /// At least one offset per row.
    offsets: ManuallyDrop<SmallVec<[isize; INLINE_ROWS]>>,
}

/// Drops the fields in a function that is compiled in this crate, as for
/// [`Nest`](crate::loops::nest::Nest).
impl Drop for Rows {
    fn drop(&mut self) {
        // SAFETY: rows are dropped once, and their fields are dropped only here.
        unsafe {
            ManuallyDrop::drop(&mut self.strides);
            ManuallyDrop::drop(&mut self.offsets);
        }
    }
}

impl Rows {
    /// No operands, for this many loop axes.
    #[cfg_attr(not(debug_assertions), inline)]
    pub fn new(axes: usize) -> Self {
        Rows {
            axes,
            len: 0,
            strides: ManuallyDrop::new(SmallVec::from_buf([0; INLINE_STRIDES])),
            offsets: ManuallyDrop::new(SmallVec::from_buf([0; INLINE_ROWS])),
        }
    }

    /// Adds a row of zeros for the next operand, and returns it so that the caller can set the
    /// strides.
    #[cfg_attr(not(debug_assertions), inline)]
    pub fn push(&mut self) -> &mut [isize] {
        let start = self.len * self.axes;
        let end = start + self.axes;
        self.len += 1;
        if end > self.strides.len() || self.len > self.offsets.len() {
            self.grow(end);
        }
        &mut self.strides[start..end]
    }

    #[cold]
    fn grow(&mut self, end: usize) {
        self.strides.resize(2 * end, 0);
        self.offsets.resize(2 * self.len, 0);
    }

    /// Like [`push`](Rows::push), for an operand whose element at the origin of the loops has this
    /// offset.
    pub fn push_at(&mut self, offset: isize) -> &mut [isize] {
        self.push();
        self.offsets[self.len - 1] = offset;
        let start = (self.len - 1) * self.axes;
        &mut self.strides[start..start + self.axes]
    }

    /// The strides of an operand.
    #[cfg_attr(not(debug_assertions), inline)]
    pub fn row(&self, row: usize) -> &[isize] {
        &self.strides[..self.len * self.axes][row * self.axes..(row + 1) * self.axes]
    }

    /// The strides of an operand, mutable.
    #[cfg_attr(not(debug_assertions), inline)]
    pub fn row_mut(&mut self, row: usize) -> &mut [isize] {
        &mut self.strides[..self.len * self.axes][row * self.axes..(row + 1) * self.axes]
    }

    /// The offset of each operand's first element from the origin of its axes.
    #[cfg_attr(not(debug_assertions), inline)]
    pub fn offsets(&self) -> &[isize] {
        &self.offsets[..self.len]
    }

    /// The number of loop axes in each row.
    #[cfg_attr(not(debug_assertions), inline)]
    pub fn axes(&self) -> usize {
        self.axes
    }

    /// The rows.
    #[inline]
    pub fn iter(&self) -> impl Iterator<Item = &[isize]> + Clone {
        (0..self.len).map(|row| self.row(row))
    }

    /// Orders loop axes by the memory layout of the first operand that varies along all of them,
    /// the outermost first. Axes of size 1 may be anywhere. `None` if there is no such operand.
    pub fn in_memory_order(&self, axes: &[usize], sizes: &[usize]) -> Option<SmallVec<[usize; 8]>> {
        let row = self.iter().find(|row| axes.iter().all(|&axis| sizes[axis] == 1 || row[axis] != 0))?;
        let mut order: SmallVec<[usize; 8]> = SmallVec::from_slice(axes);
        sort_few(&mut order, |&axis| core::cmp::Reverse(row[axis].unsigned_abs()));
        Some(order)
    }

    /// Whether any operand varies along the axis.
    pub fn varies(&self, axis: usize) -> bool {
        self.iter().any(|row| row[axis] != 0)
    }
}
