//! With which strides each operand lies along the loop axes.

use smallvec::SmallVec;

/// One row of strides for each operand of an expression, in the order in which the expression visits them.
pub struct Rows {
    axes: usize,
    strides: SmallVec<[isize; 24]>,
}

impl Rows {
    /// No operands yet, for this many loop axes.
    #[inline]
    pub fn new(axes: usize) -> Self {
        Rows { axes, strides: SmallVec::new() }
    }

    /// A row of zeros for the next operand: it does not vary along any axis yet.
    #[inline]
    pub fn push(&mut self) -> &mut [isize] {
        let start = self.strides.len();
        self.strides.resize(start + self.axes, 0);
        &mut self.strides[start..]
    }

    /// How many loop axes each row has.
    #[inline]
    pub fn axes(&self) -> usize {
        self.axes
    }

    /// The rows.
    #[inline]
    pub fn iter(&self) -> impl Iterator<Item = &[isize]> + Clone {
        // An expression without axes has rows without strides, which need no visit.
        self.strides.chunks_exact(self.axes.max(1))
    }

    /// Whether any operand varies along the axis.
    pub fn varies(&self, axis: usize) -> bool {
        self.iter().any(|row| row[axis] != 0)
    }
}
