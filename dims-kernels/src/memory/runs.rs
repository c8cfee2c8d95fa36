//! Runs of evenly spaced rows.

#[cfg(feature = "std")]
use super::axes::is_within;
use crate::error::Error;
use alloc::vec::Vec;
#[cfg(feature = "serde")]
use serde::{Deserialize, Serialize};

/// Evenly spaced rows: `first`, `first + step`, .. or, without `first`, rows that are filled with a
/// value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize))]
pub struct RowRun {
    /// The number of rows.
    pub count: usize,
    /// The first row, if the rows are not filled.
    pub first: Option<usize>,
    /// The difference between a row and the next.
    pub step: isize,
}

impl RowRun {
    /// `count` rows from `first` on, each `step` rows after the one before.
    pub const fn new(first: usize, count: usize, step: isize) -> Self {
        RowRun { count, first: Some(first), step }
    }

    /// `count` filled rows.
    pub const fn filled(count: usize) -> Self {
        RowRun { count, first: None, step: 0 }
    }

    /// Splits the rows `row(0)`, `row(1)`, .. `row(len - 1)` into runs. Returns an error if
    /// there is no memory for `len / 2` runs.
    pub fn split(len: usize, row: &dyn Fn(usize) -> usize) -> Result<Vec<RowRun>, Error> {
        let mut all = Vec::new();
        all.try_reserve_exact(len.div_ceil(2)).map_err(|_| Error::TooLarge { elements: len })?;
        let mut last: Option<RowRun> = None;
        for row in (0..len).map(row) {
            match last.and_then(|run| run.with(row)) {
                Some(longer) => last = Some(longer),
                None => all.extend(last.replace(RowRun::new(row, 1, 1))),
            }
        }
        all.extend(last);
        Ok(all)
    }

    /// The run and this row, if it is the next one.
    fn with(self, row: usize) -> Option<RowRun> {
        let step = (row as isize).wrapping_sub(self.first? as isize);
        let is_next = self.count == 1 || step == self.step.wrapping_mul(self.count as isize);
        let step = if self.count == 1 { step } else { self.step };
        is_next.then_some(RowRun { count: self.count + 1, step, ..self })
    }

    /// The rows. `None` stands for a filled row.
    pub fn rows(self) -> impl Iterator<Item = Option<usize>> + Clone {
        (0..self.count)
            .map(move |at| Some(self.first?.wrapping_add_signed(self.step.wrapping_mul(at as isize))))
    }

    /// Whether all rows are among `size` rows, and the step is at most `size`.
    #[cfg(feature = "std")]
    pub(crate) fn is_within(self, size: usize) -> bool {
        if self.step.unsigned_abs() > size.max(1) {
            return false;
        }
        let Some(first) = self.first else { return true };
        is_within(size, first as i128, [(self.count, self.step)])
    }
}

#[cfg(all(test, feature = "std"))]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn runs_have_the_rows(rows in prop::collection::vec(0..4usize, 0..12)) {
            let runs = RowRun::split(rows.len(), &|at| rows[at]).unwrap();
            prop_assert!(runs.len() <= rows.len().div_ceil(2) && runs.iter().all(|run| run.is_within(4)));
            let found: Vec<_> = runs.into_iter().flat_map(RowRun::rows).collect();
            prop_assert_eq!(found, rows.into_iter().map(Some).collect::<Vec<_>>());
        }
    }

    #[test]
    fn rows_outside_are_found() {
        assert!(RowRun::filled(9).is_within(0) && RowRun::new(7, 0, 1).is_within(0));
        assert!(RowRun::new(3, 4, -1).is_within(4) && !RowRun::new(3, 5, -1).is_within(4));
        assert!(!RowRun::new(1, 4, 1).is_within(4) && !RowRun::new(0, 1, isize::MIN).is_within(4));
    }
}
