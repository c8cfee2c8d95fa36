//! The totals of a reduction whose innermost loop is kept.

use crate::machine::isa::Isa;
use crate::reduce::Reducer;
use alloc::vec::Vec;

/// Rows of totals that are combined like the carries of a binary counter, so rounding errors grow
/// with the logarithm of the number of rows. Level `i` holds the total of `2^i` rows if bit `i` of
/// that number is set.
pub struct Levels<A> {
    width: usize,
    count: usize,
    rows: Vec<A>,
}

impl<A: Copy> Levels<A> {
    #[cfg_attr(not(unoptimized), inline(always))]
    pub fn new(width: usize) -> Self {
        Levels { width, count: 0, rows: Vec::new() }
    }

    /// Moves a row of totals into the levels, and resets the row to the start value.
    #[cfg_attr(not(unoptimized), inline(always))]
    pub fn push<I: Isa, T, R: Reducer<T, Acc = A>>(&mut self, row: &mut [A], reducer: R) {
        self.count += 1;
        let level = self.count.trailing_zeros() as usize;
        for lower in self.rows.chunks_exact(self.width).take(level) {
            for (total, &part) in row.iter_mut().zip(lower) {
                *total = reducer.join::<I>(part, *total);
            }
        }
        let place = level * self.width;
        if place == self.rows.len() {
            self.rows.resize(place + self.width, reducer.start());
        }
        self.rows[place..place + self.width].copy_from_slice(row);
        row.fill(reducer.start());
    }

    /// Joins the totals of all levels to the last row.
    #[cfg_attr(not(unoptimized), inline(always))]
    pub fn finish<I: Isa, T, R: Reducer<T, Acc = A>>(&self, last: &mut [A], reducer: R) {
        for (level, row) in self.rows.chunks_exact(self.width).enumerate() {
            if self.count >> level & 1 == 1 {
                for (total, &part) in last.iter_mut().zip(row) {
                    *total = reducer.join::<I>(part, *total);
                }
            }
        }
    }
}
