//! Adds elements at positions of a result: `fold`.

#[cfg(feature = "std")]
use super::Pulled;
use super::{StepKind, StepOperands, StepResults};
use crate::error::Error;
use crate::load::strided::Strided;
use crate::loops::axes::{Order, Sizes, sort_few};
use crate::loops::nest::{Nest, NestParts};
use crate::loops::rows::Rows;
use crate::machine::isa::Isa;
use crate::map::update::{LoweredUpdate, is_apart, update};
use crate::memory::allocate::reserve;
use crate::memory::axes::{is_within, row_major};
use crate::memory::elements::{Elements, ElementsMut};
use crate::ops::{BinaryOp, Operation};
use crate::scalar::Num;
#[cfg(feature = "std")]
use crate::trace::{Field, Node, Part, StridedPlace};
#[cfg(feature = "std")]
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::any::Any;
use core::cmp::Reverse;
use core::marker::PhantomData;
use smallvec::SmallVec;

/// A result of zeros with elements added: for each operand `x`,
/// `out[start + sum of position * stride] += x[position]`. `f16` and `bf16` are added in `f32`, and
/// each sum is rounded once.
#[derive(Clone, Debug)]
pub struct AddAtPlaces<T> {
    /// The name in plans.
    pub name: &'static str,
    /// The number of elements of the result.
    pub len: usize,
    /// The destinations of each operand's elements.
    pub operands: SmallVec<[OperandPlaces; 1]>,
    /// The type of the elements.
    pub element: PhantomData<T>,
}

/// The destinations of an operand's elements. The operand is contiguous along the loops, the last
/// one fastest.
#[derive(Clone, Debug)]
pub struct OperandPlaces {
    /// The destination of the first element.
    pub start: usize,
    /// The sizes of the loops.
    pub sizes: Sizes,
    /// The distance between the destinations of consecutive elements along each loop.
    pub strides: SmallVec<[isize; 8]>,
}

impl<T: Num> StepKind for AddAtPlaces<T> {
    fn name(&self) -> &'static str {
        self.name
    }

    fn lines(&self) -> [usize; 2] {
        let lines = self.operands.iter().map(OperandPlaces::lines).min().unwrap_or(1);
        [lines, self.len / lines.max(1)]
    }

    fn parallel(&self) -> usize {
        let apart = self.operands.iter().filter(|own| own.lines() > 1);
        let count =
            |own: &OperandPlaces| own.sizes.iter().fold(1, |count: usize, &size| count.saturating_mul(size));
        apart.map(count).max().unwrap_or(0)
    }

    fn run(&self, operands: &mut StepOperands<'_, '_>, _: usize) -> Result<StepResults, Error> {
        let mut sums = reserve(self.len)?;
        sums.resize(self.len, T::Acc::ZERO);
        for (number, places) in self.operands.iter().enumerate() {
            places.add::<T>(operands.of(number), &mut sums)?;
        }
        Ok(StepResults::one(rounded::<T>(sums)?))
    }

    #[cfg(feature = "std")]
    fn pull(&self, step: &Pulled<'_>) -> Result<Vec<(Arc<Node>, Part)>, Error> {
        let parts = self.operands.iter().zip(step.operands);
        step.sum(&parts.filter_map(|(places, operand)| places.part(operand)).collect::<Vec<_>>())
    }
}

impl OperandPlaces {
    /// The loops without those of size 1, by descending absolute stride. Among loops whose elements
    /// share destinations, the longest is innermost.
    fn order(&self) -> Order {
        let Self { sizes, strides, .. } = self;
        let mut order: Order = (0..sizes.len()).filter(|&axis| sizes[axis] != 1).collect();
        sort_few(&mut order, |&axis| Reverse(strides[axis].unsigned_abs()));
        let (mut end, mut reach) = (order.len(), 0_usize);
        for at in (0..order.len()).rev() {
            let (size, stride) = (sizes[order[at]], strides[order[at]].unsigned_abs());
            // The inner loops fit between consecutive positions of this loop, so no destinations
            // are shared along it.
            if stride > reach {
                sort_few(&mut order[at + 1..end], |&axis| sizes[axis]);
                end = at + 1;
            }
            reach = reach.saturating_add(stride.saturating_mul(size.saturating_sub(1)));
        }
        sort_few(&mut order[..end], |&axis| sizes[axis]);
        order
    }

    /// The number of parts of the operand with disjoint destinations.
    fn lines(&self) -> usize {
        let order = self.order();
        let sizes: Sizes = order.iter().map(|&axis| self.sizes[axis]).collect();
        let strides: SmallVec<[isize; 8]> = order.iter().map(|&axis| self.strides[axis]).collect();
        let apart = (0..order.len()).take_while(|&at| is_apart(&sizes[at..], &strides[at..]));
        apart.map(|at| sizes[at]).product()
    }

    /// Adds the operand to the sums.
    ///
    /// # Panics
    ///
    /// If a destination is outside the sums, or if the operand does not have one element for each
    /// position of the loops.
    fn add<T: Num>(&self, data: &[T], sums: &mut [T::Acc]) -> Result<(), Error> {
        let Self { start, sizes, strides } = self;
        let positions = sizes.iter().try_fold(1usize, |count, &size| count.checked_mul(size));
        assert_eq!(positions, Some(data.len()), "the loops go over the operand");
        if data.is_empty() {
            return Ok(());
        }
        let axes = sizes.iter().copied().zip(strides.iter().copied());
        assert!(is_within(sums.len(), *start as i128, axes), "each place is one of the result");
        let mut rows = Rows::new(sizes.len());
        rows.push().copy_from_slice(strides);
        rows.push().copy_from_slice(&row_major(sizes));
        let nest = Nest::map(sizes, &self.order(), &rows);
        let first = sums.as_mut_ptr().wrapping_add(*start);
        // SAFETY: all positions along the loops lie within the sums, as asserted above. The sums
        // are borrowed exclusively.
        let place = unsafe { ElementsMut::along(first, sizes, strides) };
        let elements = Elements::of_slice(data);
        let lower = |nest| {
            let mut operands = Nest::operands(nest);
            let row = operands.next_row();
            // SAFETY: the operand has an element for each position of the loops, as asserted above.
            // The operand's row has the strides along the loops, and belongs to the nest that runs.
            let value: Strided<'_, T, ()> = unsafe { Strided::new(elements, operands.next_row(), ()) };
            LoweredUpdate { row, indices: (), value }
        };
        // SAFETY: the row of the place is the first of the nest, whose loops are those of the
        // place.
        unsafe { update(&nest, &mut NestParts::new(), place, lower, AddWidened) }
    }

    /// The operand's elements at their destinations, as a part of a sum.
    #[cfg(feature = "std")]
    fn part(&self, operand: &Field) -> Option<Part> {
        let Self { start, sizes, strides } = self;
        if sizes.contains(&0) {
            return None;
        }
        let field = Field::held(sizes, operand.memory()?, StridedPlace::strided(0, row_major(sizes)));
        Some(Part { field, place: StridedPlace::strided(*start as isize, strides.iter().copied()) })
    }
}

#[derive(Clone, Copy)]
struct AddWidened;

impl Operation for AddWidened {}

impl<T: Num> BinaryOp<T::Acc, T> for AddWidened {
    type Out = T::Acc;
    const NAME: &'static str = "add";

    #[cfg_attr(not(unoptimized), inline(always))]
    fn apply<I: Isa>(&self, sum: T::Acc, element: T) -> T::Acc {
        sum.add(element.widen())
    }
}

/// Rounds sums to elements. Reuses the memory if the types are the same.
fn rounded<T: Num>(mut sums: Vec<T::Acc>) -> Result<Vec<T>, Error> {
    let any: &mut dyn Any = &mut sums;
    if let Some(sums) = any.downcast_mut::<Vec<T>>() {
        return Ok(core::mem::take(sums));
    }
    let mut out = reserve(sums.len())?;
    out.extend(sums.into_iter().map(T::narrow));
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::buffer::Buffer;
    use crate::step::execute;
    use core::fmt::Debug;
    use proptest::prelude::*;

    /// The result for operands with the elements `number(1)`, `number(2)` and so on.
    fn run<T: Num>(len: usize, places: &[OperandPlaces], number: fn(usize) -> T) -> Vec<T> {
        let operands = places.iter().cloned().collect();
        let kind = AddAtPlaces::<T> { name: "sum", len, operands, element: PhantomData };
        let mut data: Vec<Buffer<T>> = places
            .iter()
            .map(|own| Buffer::from((1..=own.sizes.iter().product()).map(number).collect::<Vec<_>>()))
            .collect();
        let mut data: Vec<&mut dyn crate::step::AnyBuffer> = data.iter_mut().map(|own| own as _).collect();
        execute(&kind, &mut data).expect("there is memory").next::<T>().into_vec()
    }

    /// The sums for the elements 1, 2 and so on, by a loop over elements.
    fn expected(len: usize, places: &[OperandPlaces]) -> Vec<i64> {
        let mut sums = vec![0; len];
        for OperandPlaces { start, sizes, strides } in places {
            for number in 0..sizes.iter().product::<usize>() {
                let (mut rest, mut place) = (number, *start as isize);
                for (&size, &stride) in sizes.iter().zip(strides).rev() {
                    place += (rest % size) as isize * stride;
                    rest /= size;
                }
                sums[place as usize] += number as i64 + 1;
            }
        }
        sums
    }

    fn check<T: Num + Debug>(len: usize, places: &[OperandPlaces], number: fn(usize) -> T, of: fn(i64) -> T) {
        let wanted: Vec<T> = expected(len, places).into_iter().map(of).collect();
        assert_eq!(run(len, places, number), wanted, "{places:?}");
    }

    fn operand() -> impl Strategy<Value = OperandPlaces> {
        let axis = (prop_oneof![1 => Just(0), 2 => Just(1), 9 => 2..6usize], -7..8isize);
        prop::collection::vec(axis, 0..4).prop_map(|axes| {
            let back = axes.iter().map(|&(size, stride)| (size.max(1) - 1) * (-stride).max(0) as usize).sum();
            let (sizes, strides) = axes.into_iter().unzip();
            OperandPlaces { start: back, sizes, strides }
        })
    }

    proptest! {
        #[test]
        fn places_are_summed_up(operands in prop::collection::vec(operand(), 0..3), behind in 0..3usize) {
            let reach = |own: &OperandPlaces| {
                let axes = own.sizes.iter().zip(&own.strides);
                own.start + axes.map(|(&size, &stride)| (size.max(1) - 1) * stride.max(0) as usize).sum::<usize>()
            };
            let len = operands.iter().map(reach).max().unwrap_or(0) + 1 + behind;
            check(len, &operands, |number| number as i32, |sum| sum as i32);
            check(len, &operands, |number| number as f64, |sum| sum as f64);
        }
    }

    #[test]
    fn loops_that_meet_run_the_longest_innermost() {
        let windows = |sizes: [usize; 3], strides: [isize; 3]| OperandPlaces {
            start: 0,
            sizes: sizes.into_iter().collect(),
            strides: strides.into_iter().collect(),
        };
        let own = windows([4, 100, 3], [300, 2, 1]);
        assert_eq!((&own.order()[..], own.lines()), (&[0, 2, 1][..], 4));
        // These windows do not overlap.
        let own = windows([4, 100, 3], [300, 3, 1]);
        assert_eq!((&own.order()[..], own.lines()), (&[0, 1, 2][..], 1200));
    }

    #[test]
    fn not_a_number_is_in_the_sums_that_meet_it() {
        let windows = OperandPlaces {
            start: 0,
            sizes: Sizes::from_slice(&[3, 2]),
            strides: SmallVec::from_slice(&[1, 1]),
        };
        let sums = run(4, &[windows], |at| if at == 3 { f32::NAN } else { at as f32 });
        assert_eq!(sums.iter().map(|sum| sum.is_nan()).collect::<Vec<_>>(), [false, true, false, false]);
    }

    #[test]
    fn long_sums_are_those_of_one_thread() {
        let sizes = Sizes::from_slice(&[8, 3, 5000]);
        let own = OperandPlaces { start: 1, sizes, strides: SmallVec::from_slice(&[10_004, 2, 2]) };
        let len = 8 * 10_004;
        assert_eq!(run(len, core::slice::from_ref(&own), |at| at as i64), expected(len, &[own]));
    }

    #[cfg(feature = "half")]
    #[test]
    fn half_precisions_round_once() {
        use half::f16;
        // 2048 + 1 is not an `f16`: with additions in `f16`, each 1 would be lost.
        let own =
            OperandPlaces { start: 0, sizes: Sizes::from_slice(&[3]), strides: SmallVec::from_slice(&[0]) };
        let number = |at| f16::from_f32(if at == 1 { 2048.0 } else { 1.0 });
        assert_eq!(run(1, &[own], number), [f16::from_f32(2050.0)]);
    }
}
