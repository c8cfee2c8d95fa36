//! The destination of a sum: elements that exist already.

use crate::copy::copy_onto;
use crate::error::Error;
use crate::load::nodes::Constant;
use crate::loops::nest::{Nest, Parts};
use crate::loops::rows::Rows;
use crate::loops::steps::{Loops, Step, record};
use crate::map::update::{LoweredUpdate, update};
use crate::memory::axes::Axis;
use crate::memory::elements::{Elements, ElementsMut};
use crate::ops::Mul;
use crate::scalar::Num;
use smallvec::SmallVec;

/// A list of loop axes.
pub type Order = SmallVec<[usize; 8]>;

/// Where a result goes: to elements that are there, with a stride along each of the axes that are kept.
pub struct Target<'a, T> {
    places: ElementsMut<'a, T>,
    /// The stride along each loop axis.
    strides: SmallVec<[isize; 8]>,
    /// The axes that are kept, in the order in which the places lie.
    order: Order,
    /// How many places there are, if they lie one behind the other.
    line: Option<usize>,
}

impl<'a, T: Num> Target<'a, T> {
    /// Places along the loop axes `kept`, with a stride along each loop axis.
    ///
    /// # Safety
    ///
    /// Each position of the loops, whose sizes are `sizes` wherever the target is used, is along the strides one of the axes of `places`; different positions
    /// of the axes that are kept are different places.
    pub unsafe fn new(
        places: ElementsMut<'a, T>,
        strides: SmallVec<[isize; 8]>,
        sizes: &[usize],
        kept: &[usize],
    ) -> Self {
        let mut order = Order::from_slice(kept);
        // (Stable: axes along which nothing moves keep their order.)
        order.sort_by_key(|&axis| core::cmp::Reverse(strides[axis].unsigned_abs()));
        let mut line = Some(1);
        for &axis in order.iter().rev() {
            line = line
                .filter(|&len| sizes[axis] == 1 || strides[axis] == len as isize)
                .and_then(|len: usize| len.checked_mul(sizes[axis]));
        }
        Target { places, strides, order, line }
    }

    /// The stride along each loop axis.
    pub fn strides(&self) -> &[isize] {
        &self.strides
    }

    /// The axes that are kept, in the order in which the places lie.
    pub fn order(&self) -> &[usize] {
        &self.order
    }

    /// All places, if they lie one behind the other.
    pub fn line(&mut self) -> Option<&mut [T]> {
        // SAFETY: `new` has seen that the strides are those of so many neighbours.
        Some(unsafe { self.places.reborrow().line(self.line?) })
    }

    /// The places, for what knows the strides.
    pub fn places(&mut self) -> ElementsMut<'_, T> {
        self.places.reborrow()
    }

    /// Loops over the places and, along `row`, another operand.
    fn nest(&self, sizes: &[usize], row: Option<&[isize]>) -> Nest {
        let mut rows = Rows::new(sizes.len());
        rows.push().copy_from_slice(&self.strides);
        if let Some(row) = row {
            rows.push().copy_from_slice(row);
        }
        Nest::map(sizes, &self.order, &rows)
    }

    /// Puts a result there that was computed elsewhere, contiguous in the order of the places.
    #[track_caller]
    pub fn put(&mut self, data: &[T], sizes: &[usize]) {
        let mut row: SmallVec<[isize; 8]> = SmallVec::from_elem(0, sizes.len());
        let mut step = 1;
        for &axis in self.order.iter().rev() {
            row[axis] = step;
            step *= sizes[axis] as isize;
        }
        let nest = self.nest(sizes, Some(&row));
        assert_eq!(nest.positions(), data.len(), "each place gets an element");
        record(|| Step::Copy {
            reason: "into places that are there already",
            loops: Loops::new::<T>(&nest, nest.positions(), 1),
        });
        let mut operands = nest.operands();
        let to = operands.next_row();
        let from = operands.next_row();
        // SAFETY: the row of `data` counts its elements along the axes that are kept, and the assertion above compares their number; the other
        // row has the strides of the places, as the caller of `new` promised.
        unsafe { copy_onto(Elements::of_slice(data), from, self.places(), to, &nest.sizes) };
    }

    /// Multiplies the elements.
    pub fn scale(&mut self, factor: T, sizes: &[usize]) -> Result<(), Error> {
        let nest = self.nest(sizes, None);
        let lower = |nest| {
            let row = Nest::operands(nest).next_row();
            LoweredUpdate { row, indices: (), value: Constant(factor) }
        };
        // SAFETY: the row of the nest has the strides of the places, as `new` was promised.
        unsafe { update(&nest, &mut Parts::new(), self.places(), lower, Mul) }
    }
}

/// The strides along the loops of an array whose axes are groups of them, in this order, the last one of each the fastest; axes
/// behind the groups are single loops. Returns whether the sizes are those of the array.
pub fn spread(axes: &[Axis], groups: &[usize], order: &[usize], loops: &[usize], row: &mut [isize]) -> bool {
    let mut next = 0;
    for (number, &Axis { size, stride }) in axes.iter().enumerate() {
        let start = next;
        next += groups.get(number).copied().unwrap_or(1);
        let mut step = stride;
        let mut volume: usize = 1;
        for &at in order[start..next].iter().rev() {
            row[at] = step;
            step = step.wrapping_mul(loops[at] as isize);
            volume = volume.saturating_mul(loops[at]);
        }
        if volume != size {
            return false;
        }
    }
    true
}
