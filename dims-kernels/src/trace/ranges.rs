//! The positions that a function reads or needs along axes, noted while it is recorded for any
//! sizes of some dims. Steps know only the lengths of their operands, so these positions are
//! checked separately for other sizes.

use crate::memory::registry::is_active;
use alloc::string::String;
use alloc::vec::Vec;
use core::cell::RefCell;
use core::ops::Range;
#[cfg(feature = "serde")]
use serde::{Deserialize, Serialize};

std::thread_local! {
    /// The ranges noted so far. `None` unless they are noted.
    static NOTED: RefCell<Option<Vec<ReadRange>>> = const { RefCell::new(None) };
}

/// A range of positions that a function reads along an axis, or needs there.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize))]
pub struct ReadRange {
    /// For messages: the axis or, if the positions are not read, what needs them.
    pub axis: String,
    /// Why the range is noted.
    pub reason: RangeReason,
    /// The first position.
    pub start: isize,
    /// The number of positions.
    pub len: isize,
    /// The size of the axis.
    pub size: isize,
}

/// Why a range of positions is noted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize))]
pub enum RangeReason {
    /// The positions are read.
    Read,
    /// The axis must be large enough for the positions.
    Needed,
    /// Something is known only for an axis of this size.
    OneSize,
}

impl ReadRange {
    /// Whether all positions are within the axis.
    pub fn is_within(&self) -> bool {
        self.start >= 0 && self.len >= 0 && self.end() <= self.size as i128
    }

    /// The position after the last one.
    pub fn end(&self) -> i128 {
        self.start as i128 + self.len as i128
    }
}

/// Notes that a function reads a range of positions along an axis of this size.
#[inline]
pub fn note_range(range: Range<usize>, size: usize, axis: &dyn Fn() -> String) {
    if is_active() {
        add_range(range, size, axis, RangeReason::Read);
    }
}

/// Notes that something of `size` elements needs to have at least `least`.
#[inline]
pub fn note_least(least: usize, size: usize, what: &dyn Fn() -> String) {
    if is_active() {
        add_range(0..least, size, what, RangeReason::Needed);
    }
}

/// Notes that something, such as a mask, is known only for an axis of this size.
#[inline]
pub fn note_one_size(size: usize, what: &dyn Fn() -> String) {
    if is_active() {
        add_range(0..size, size, what, RangeReason::OneSize);
    }
}

#[inline(never)]
fn add_range(range: Range<usize>, size: usize, axis: &dyn Fn() -> String, reason: RangeReason) {
    NOTED.with_borrow_mut(|noted| {
        if let Some(noted) = noted {
            let [start, len, size] = [range.start, range.len(), size].map(|own| own as isize);
            noted.push(ReadRange { axis: axis(), reason, start, len, size });
        }
    });
}

/// Whether ranges are noted.
pub(super) fn are_noted() -> bool {
    is_active() && NOTED.with_borrow(Option::is_some)
}

/// Calls a function, and also returns the ranges that it noted.
pub fn with_ranges<X>(f: impl FnOnce() -> X) -> (X, Vec<ReadRange>) {
    /// Restores the ranges noted so far for an outer call of `with_ranges` when dropped.
    struct Outer(Option<Vec<ReadRange>>);
    impl Drop for Outer {
        fn drop(&mut self) {
            NOTED.set(self.0.take());
        }
    }
    let _outer = Outer(NOTED.replace(Some(Vec::new())));
    let result = f();
    (result, NOTED.take().unwrap_or_default())
}
