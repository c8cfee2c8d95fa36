//! Places: which element of an operand each position of the loops reads or writes.

use crate::memory::axes::{contiguous, is_within};
use crate::trace::{PerLoop, TableSource};
use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;

/// The index of the element at each position of some loops: `offset + sum of position * stride`,
/// plus an offset from a table if there is one.
#[derive(Default)]
pub struct StridedPlace {
    /// The index of the element at the origin of the loops, without the offset from the table.
    pub offset: isize,
    /// The stride along each loop.
    pub strides: PerLoop<isize>,
    /// The table of the offsets to add.
    pub table: Option<Box<Table>>,
}

/// Offsets along some loops.
#[derive(Clone)]
pub struct Table {
    pub(super) offsets: Arc<Vec<isize>>,
    /// The index of the offset at the origin of the loops.
    pub(super) start: isize,
    /// The least and the greatest offset.
    pub(super) bounds: (isize, isize),
    /// The stride in the table along each loop.
    pub(super) strides: PerLoop<isize>,
    /// The source of the offsets, if each run of the recorded program computes them again.
    pub(super) source: Option<Arc<TableSource>>,
}

impl Table {
    /// Offsets that are contiguous in an order of some of the loops, and constant along the others.
    ///
    /// # Panics
    ///
    /// If the number of offsets is not the number of positions along the loops in `order`.
    pub fn new(offsets: Vec<isize>, sizes: &[usize], order: &[usize]) -> Self {
        assert_eq!(
            offsets.len(),
            order.iter().map(|&axis| sizes[axis]).product::<usize>(),
            "one offset for each position"
        );
        let least = offsets.iter().copied().min().unwrap_or(0);
        let greatest = offsets.iter().copied().max().unwrap_or(0);
        Table::within(offsets, (least, greatest), sizes, order)
    }

    /// Like [`new`](Self::new), if the least and the greatest offset are known.
    pub(super) fn within(
        offsets: Vec<isize>,
        bounds: (isize, isize),
        sizes: &[usize],
        order: &[usize],
    ) -> Self {
        let strides = StridedPlace::contiguous(sizes, order).strides;
        Table { offsets: Arc::new(offsets), start: 0, bounds, strides, source: None }
    }

    /// The least and the greatest offset. For offsets that each run computes, the bounds of all
    /// possible offsets.
    fn reach(&self) -> (isize, isize) {
        let Some(source) = &self.source else { return self.bounds };
        source.indices.iter().fold((0, 0), |(least, greatest), own| {
            let far = own.stride.saturating_mul(own.size.saturating_sub(1) as isize);
            (least.saturating_add(far.min(0)), greatest.saturating_add(far.max(0)))
        })
    }

    /// The stride in the table along each loop.
    pub fn strides(&self) -> &[isize] {
        &self.strides
    }

    /// The offset at a position of the table, counted from the origin of the loops.
    pub(super) fn at(&self, position: isize) -> isize {
        self.offsets[(self.start + position) as usize]
    }
}

impl Clone for StridedPlace {
    /// Copies the strides as a slice, because recording and gradients copy many places, and
    /// `SmallVec::clone` copies one element at a time.
    fn clone(&self) -> Self {
        StridedPlace {
            offset: self.offset,
            strides: PerLoop::from_slice(&self.strides),
            table: self.table.clone(),
        }
    }
}

impl StridedPlace {
    /// Elements at these strides.
    pub fn strided(offset: isize, strides: impl IntoIterator<Item = isize>) -> Self {
        StridedPlace { offset, strides: strides.into_iter().collect(), table: None }
    }

    /// Elements that are contiguous in an order of some of the loops, and constant along the
    /// others.
    pub fn contiguous(sizes: &[usize], order: &[usize]) -> Self {
        StridedPlace::strided(0, contiguous(order, sizes))
    }

    /// Whether two places are the same, with offsets from the same table.
    pub(super) fn is_same(&self, other: &StridedPlace) -> bool {
        let tables = match (&self.table, &other.table) {
            (None, None) => true,
            (Some(a), Some(b)) => {
                Arc::ptr_eq(&a.offsets, &b.offsets) && a.start == b.start && a.strides == b.strides
            }
            _ => false,
        };
        tables && self.offset == other.offset && self.strides == other.strides
    }

    /// Panics unless all positions of the loops are among `len` elements.
    pub(super) fn assert_within(&self, sizes: &[usize], len: usize) {
        assert_eq!(sizes.len(), self.strides.len(), "one stride for each loop");
        if sizes.contains(&0) {
            return;
        }
        let (mut least, mut most) = (self.offset as i128, self.offset as i128);
        let mut reach = |size: usize, stride: isize| {
            let far = (size as i128 - 1) * stride as i128;
            least += far.min(0);
            most += far.max(0);
        };
        sizes.iter().zip(&self.strides).for_each(|(&size, &stride)| reach(size, stride));
        if let Some(table) = &self.table {
            let own = sizes.iter().copied().zip(table.strides.iter().copied());
            assert!(
                is_within(table.offsets.len(), table.start as i128, own),
                "the loops stay within the table"
            );
            least += table.bounds.0 as i128;
            most += table.bounds.1 as i128;
        }
        assert!(
            least >= 0 && most < len as i128,
            "the loops stay within the elements: {least} to {most} of {len}"
        );
    }

    /// The index of the element at a position of the loops.
    pub(super) fn position(&self, at: &[usize]) -> usize {
        let along = |strides: &[isize]| {
            strides.iter().zip(at).map(|(&stride, &at)| stride * at as isize).sum::<isize>()
        };
        let table = self.table.as_ref().map_or(0, |table| table.at(along(&table.strides)));
        (self.offset + along(&self.strides) + table) as usize
    }

    /// The index of each element's line, for lines of `len` elements, if the loops only move by
    /// whole lines. An offset from the table may move an element within its line, but not out of
    /// it.
    pub(super) fn of_lines(&self, sizes: &[usize], len: usize) -> Option<StridedPlace> {
        let len = isize::try_from(len).ok()?;
        let (line, at) = (self.offset.div_euclid(len), self.offset.rem_euclid(len));
        let (least, greatest) = self.table.as_ref().map_or((0, 0), |table| table.reach());
        let is_whole = (0..sizes.len()).all(|axis| sizes[axis] == 1 || self.strides[axis] % len == 0);
        let strides = self.strides.iter().map(|stride| stride / len);
        (is_whole && at + least >= 0 && at + greatest < len).then(|| StridedPlace::strided(line, strides))
    }

    /// Whether the indices of the elements may differ along a loop.
    pub fn varies(&self, axis: usize) -> bool {
        self.strides[axis] != 0 || self.table.as_ref().is_some_and(|table| table.strides[axis] != 0)
    }
}
