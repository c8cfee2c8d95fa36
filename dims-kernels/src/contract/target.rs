//! The destination of a contraction.

use crate::copy::copy_onto;
use crate::error::Error;
use crate::load::nodes::Constant;
use crate::loops::axes::{Order, sort_few};
use crate::loops::nest::{Nest, NestParts};
use crate::loops::rows::Rows;
use crate::loops::steps::{Loops, PlanStep, note};
use crate::map::update::{LoweredUpdate, update};
use crate::memory::axes::{Axis, contiguous};
use crate::memory::destination::Destination;
use crate::memory::elements::{Elements, ElementsMut};
#[cfg(feature = "std")]
use crate::memory::hollow::is_hollow;
use crate::ops::Mul;
use crate::scalar::Num;
use alloc::vec::Vec;
use smallvec::SmallVec;

/// Where the result of a contraction goes: new memory, or elements that the caller provides, with a
/// stride along each of the kept axes.
pub struct Target<'a, T> {
    /// The caller's memory.
    places: Option<ElementsMut<'a, T>>,
    strides: SmallVec<[isize; 8]>,
    order: Order,
    /// The number of results, if they are contiguous.
    line: Option<usize>,
}

impl<'a, T: Num> Target<'a, T> {
    /// New memory, contiguous in the order of the loop axes `kept`.
    pub fn new(kept: &[usize], sizes: &[usize]) -> Self {
        let len = kept.iter().map(|&axis| sizes[axis]).product();
        Target { places: None, strides: contiguous(kept, sizes), order: kept.into(), line: Some(len) }
    }

    /// The caller's memory along the loop axes `kept`, with a stride along each loop axis.
    ///
    /// # Safety
    ///
    /// The strides map each position of the loops, whose sizes are always `sizes`, to a position
    /// along the axes of `places`. They map distinct positions of the kept axes to distinct
    /// elements.
    pub unsafe fn places(
        places: ElementsMut<'a, T>,
        strides: SmallVec<[isize; 8]>,
        sizes: &[usize],
        kept: &[usize],
    ) -> Self {
        let mut order = Order::from_slice(kept);
        // The sort is stable: axes with stride 0 keep their order.
        sort_few(&mut order, |&axis| core::cmp::Reverse(strides[axis].unsigned_abs()));
        let mut line = Some(1);
        for &axis in order.iter().rev() {
            line = line
                .filter(|&len| sizes[axis] == 1 || strides[axis] == len as isize)
                .and_then(|len: usize| len.checked_mul(sizes[axis]));
        }
        Target { places: Some(places), strides, order, line }
    }

    /// The stride along each loop axis.
    pub fn strides(&self) -> &[isize] {
        &self.strides
    }

    /// The kept axes, in the order of the result in memory.
    pub fn order(&self) -> &[usize] {
        &self.order
    }

    /// The result's memory, for routines that write elements contiguously in the
    /// [order](Target::order) of the axes. `None` if the elements are not contiguous: the result
    /// then needs its own memory, and [`take`](Target::take) copies it to its destination.
    pub fn line(&mut self) -> Option<Destination<'_, T>> {
        let len = self.line?;
        Some(match &mut self.places {
            None => Destination::of_step(len),
            // SAFETY: `Target::places` sets `line` only if the strides are those of `len`
            // contiguous elements.
            Some(places) => Destination::Given(unsafe { places.reborrow().line(len) }),
        })
    }

    /// Calls `write` with the address of the first result. `loops` are the loops over the results:
    /// sizes, and strides in the result.
    ///
    /// # Safety
    ///
    /// The loops reach each result along their strides. `write` writes all results, and reads no
    /// result before it is written.
    pub(super) unsafe fn write(
        &mut self,
        loops: impl Iterator<Item = (usize, isize)>,
        write: impl FnOnce(*mut T),
    ) -> Result<Vec<T>, Error> {
        match &mut self.places {
            None => {
                let len = loops.map(|(size, _)| size).product();
                assert_eq!(Some(len), self.line, "the products are the result");
                // SAFETY: the caller's promise.
                unsafe {
                    Destination::of_step(len).write(|start| {
                        write(start);
                        Ok(())
                    })
                }
            }
            Some(places) => {
                places.assert_loops(0, loops);
                write(places.as_mut_ptr());
                Ok(Vec::new())
            }
        }
    }

    /// Accepts a result that was computed elsewhere, contiguous in the order of the axes. If the
    /// target is new memory, returns `data` as it is. Otherwise copies the elements to the caller's
    /// memory.
    #[track_caller]
    pub fn take(&mut self, data: Vec<T>, sizes: &[usize]) -> Vec<T> {
        let Some(places) = &mut self.places else { return data };
        let mut rows = Rows::new(sizes.len());
        rows.push().copy_from_slice(&self.strides);
        rows.push().copy_from_slice(&contiguous(&self.order, sizes));
        let nest = Nest::map(sizes, &self.order, &rows);
        assert_eq!(nest.positions(), data.len(), "each place gets an element");
        note(|| PlanStep::Copy {
            reason: "into the caller's memory",
            loops: Loops::new::<T>(&nest, nest.positions(), 1),
        });
        let mut operands = nest.operands();
        let to = operands.next_row();
        let from = operands.next_row();
        // SAFETY: `from` has the contiguous strides of `data` along the kept axes, and the
        // assertion above compares the number of elements. `to` has the strides of the places, as
        // the caller of `places` promised.
        unsafe { copy_onto(Elements::of_slice(&data), from, places.reborrow(), to, &nest.sizes) };
        Vec::new()
    }

    /// Multiplies the elements of the result by `factor`: those of `data` if the memory is new,
    /// otherwise those in the caller's memory.
    pub fn scale(&mut self, data: &mut [T], factor: T, sizes: &[usize]) -> Result<(), Error> {
        let Some(places) = &mut self.places else {
            #[cfg(feature = "std")]
            if is_hollow() {
                return Ok(());
            }
            data.iter_mut().for_each(|value| *value = value.mul(factor));
            return Ok(());
        };
        let mut rows = Rows::new(sizes.len());
        rows.push().copy_from_slice(&self.strides);
        let nest = Nest::map(sizes, &self.order, &rows);
        let lower = |nest| {
            let row = Nest::operands(nest).next_row();
            LoweredUpdate { row, indices: (), value: Constant(factor) }
        };
        // SAFETY: the row of the nest has the strides of the places, as the caller of `places`
        // promised.
        unsafe { update(&nest, &mut NestParts::new(), places.reborrow(), lower, Mul) }
    }
}

/// Writes the strides of an array along the loops to `row`. Each axis of the array is a group of
/// consecutive loops in `order`, the last one fastest. `groups` has the number of loops of each
/// group; axes beyond its end are single loops. Returns whether the sizes match the array.
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
