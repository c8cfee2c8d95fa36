//! With which strides each operand lies along the loop axes.

use smallvec::SmallVec;

/// One row of strides for each operand of an expression, in the order in which the expression visits them.
pub struct Rows {
    axes: usize,
    strides: SmallVec<[isize; 24]>,
    offsets: SmallVec<[isize; 6]>,
}

impl Rows {
    /// No operands yet, for this many loop axes.
    #[inline]
    pub fn new(axes: usize) -> Self {
        Rows { axes, strides: SmallVec::new(), offsets: SmallVec::new() }
    }

    /// A row of zeros for the next operand: it does not vary along any axis yet.
    #[inline]
    pub fn push(&mut self) -> &mut [isize] {
        let start = self.strides.len();
        self.offsets.push(0);
        self.strides.resize(start + self.axes, 0);
        &mut self.strides[start..]
    }

    /// A row for the next operand, whose element at the origin of the loops lies `offset` away.
    pub fn push_at(&mut self, offset: isize) -> &mut [isize] {
        self.push();
        *self.offsets.last_mut().expect("a row was just pushed") = offset;
        let start = self.strides.len() - self.axes;
        &mut self.strides[start..]
    }

    /// How far from the origin of its axes each operand starts.
    #[inline]
    pub fn offsets(&self) -> &[isize] {
        &self.offsets
    }

    /// How many loop axes each row has.
    #[inline]
    pub fn axes(&self) -> usize {
        self.axes
    }

    /// The rows.
    #[inline]
    pub fn iter(&self) -> impl Iterator<Item = &[isize]> + Clone {
        (0..self.offsets.len()).map(|row| &self.strides[row * self.axes..(row + 1) * self.axes])
    }

    /// Whether any operand varies along the axis.
    pub fn varies(&self, axis: usize) -> bool {
        self.iter().any(|row| row[axis] != 0)
    }
}
