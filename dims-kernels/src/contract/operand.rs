//! The factors of a contraction.

use crate::error::Error;
use crate::loops::axes::{AxisSet, are_distinct, each};
use crate::loops::nest::Nest;
use crate::loops::rows::Rows;
use crate::loops::steps::{Loops, PlanStep, note, told};
use crate::machine::threads;
use crate::map::elementwise::collect_memory;
use crate::memory::axes::{contiguous, is_within};
use crate::memory::buffer::Buffer;
use crate::memory::destination::Destination;
use crate::memory::elements::Elements;
use crate::reduce::Reducer;
use crate::reduce::input::ReduceInput;
use crate::reduce::reducers::Sum;
use crate::scalar::Num;
use alloc::vec::Vec;
use core::mem::MaybeUninit;
use smallvec::SmallVec;

/// One factor (an operand) of a contraction: memory, and a stride along each loop axis.
pub struct ContractionFactor<'a, T> {
    memory: FactorMemory<'a, T>,
    strides: SmallVec<[isize; 8]>,
}

/// The factors of a contraction.
pub type ContractionFactors<'a, T> = SmallVec<[ContractionFactor<'a, T>; 4]>;

enum FactorMemory<'a, T> {
    Borrowed(Elements<'a, T>),
    Owned(Buffer<T>),
}

impl<'a, T: Num> ContractionFactor<'a, T> {
    /// Borrowed elements, with strides along the loop axes.
    ///
    /// # Safety
    ///
    /// When the operand is contracted, `strides` map each position of the loops to a position along
    /// the axes of `elements`.
    #[inline]
    pub unsafe fn borrowed(elements: Elements<'a, T>, strides: SmallVec<[isize; 8]>) -> Self {
        ContractionFactor { memory: FactorMemory::Borrowed(elements), strides }
    }

    /// Elements laid out contiguously along `order`.
    ///
    /// # Panics
    ///
    /// If the number of elements is not the number of positions.
    pub fn owned(data: Vec<T>, order: &[usize], sizes: &[usize]) -> Self {
        let positions: usize = order.iter().map(|&axis| sizes[axis]).product();
        assert_eq!(data.len(), positions, "one element for each position");
        let strides = contiguous(order, sizes);
        ContractionFactor { memory: FactorMemory::Owned(data.into()), strides }
    }

    /// An operand without elements, with `axes` loop axes.
    pub fn empty(axes: usize) -> Self {
        ContractionFactor {
            memory: FactorMemory::Owned(Vec::new().into()),
            strides: SmallVec::from_elem(0, axes),
        }
    }

    /// The same elements over other loop axes: `strides` maps the strides along the old axes to
    /// those along the new axes.
    ///
    /// # Safety
    ///
    /// As for [`borrowed`](ContractionFactor::borrowed), for the new strides.
    pub unsafe fn over(self, strides: impl FnOnce(&[isize]) -> SmallVec<[isize; 8]>) -> Self {
        ContractionFactor { strides: strides(&self.strides), ..self }
    }

    /// The elements.
    #[inline]
    pub fn elements(&self) -> Elements<'_, T> {
        match &self.memory {
            FactorMemory::Borrowed(elements) => *elements,
            FactorMemory::Owned(data) => Elements::of_slice(data),
        }
    }

    /// The stride along each loop axis.
    pub fn strides(&self) -> &[isize] {
        &self.strides
    }

    /// The operand with elements of another type.
    #[track_caller]
    pub fn converted<W: Num>(
        self,
        sizes: &[usize],
        convert: impl Fn(T) -> W,
    ) -> Result<ContractionFactor<'a, W>, Error> {
        let elements = match self.memory {
            FactorMemory::Owned(data) => {
                let data = converted(data.into_vec(), convert)?.into();
                return Ok(ContractionFactor { memory: FactorMemory::Owned(data), strides: self.strides });
            }
            FactorMemory::Borrowed(elements) => elements,
        };
        if let Some(elements) = elements.same::<W>() {
            // SAFETY: the elements and the strides belong to this operand.
            return Ok(unsafe { ContractionFactor::borrowed(elements, self.strides) });
        }
        let order: SmallVec<[usize; 8]> = each(self.axes(sizes)).collect();
        let data = converted(self.packed(&order, sizes)?, convert)?;
        Ok(ContractionFactor::owned(data, &order, sizes))
    }

    /// Panics if the loops reach beyond the elements that the operand owns. For borrowed elements,
    /// the caller of `borrowed` promises that they do not.
    pub(super) fn assert_within(&self, sizes: &[usize]) {
        if let FactorMemory::Owned(data) = &self.memory {
            assert_eq!(sizes.len(), self.strides.len(), "one stride for each loop");
            let loops = sizes.iter().copied().zip(self.strides.iter().copied());
            assert!(is_within(data.len(), 0, loops), "the loops stay within the elements");
        }
    }

    /// The axes along which the operand varies.
    #[inline]
    pub(super) fn axes(&self, sizes: &[usize]) -> AxisSet {
        axes_of(&self.strides, sizes)
    }

    pub(super) fn row(&self, rows: &mut Rows) {
        rows.push().copy_from_slice(&self.strides);
    }

    /// Whether distinct positions are known to have distinct memory.
    pub(super) fn is_injective(&self, axes: AxisSet, sizes: &[usize]) -> bool {
        are_distinct(each(axes).map(|axis| (self.strides[axis], sizes[axis])))
    }

    /// Multiplies each element by a constant.
    #[track_caller]
    pub(super) fn multiply(&mut self, by: T, sizes: &[usize]) -> Result<(), Error> {
        let order: SmallVec<[usize; 8]> = each(self.axes(sizes)).collect();
        let data = converted(self.packed(&order, sizes)?, |value: T| value.mul(by))?;
        *self = ContractionFactor::owned(data, &order, sizes);
        Ok(())
    }

    /// The same elements in new memory, contiguous along `order`.
    #[track_caller]
    pub(super) fn packed(&self, order: &[usize], sizes: &[usize]) -> Result<Vec<T>, Error> {
        let mut rows = Rows::new(sizes.len());
        self.row(&mut rows);
        let nest = Nest::map(sizes, order, &rows);
        let len = order.iter().map(|&axis| sizes[axis]).product();
        // SAFETY: the strides map each position of the loops to an element, as the caller of
        // `borrowed` promised.
        unsafe { collect_memory(self.elements(), &nest, Destination::of_step(len), "operand of a product") }
    }

    /// The sums over the axes `reduced`, contiguous along `order`, the other axes.
    #[track_caller]
    pub(super) fn summed(
        &self,
        order: &[usize],
        reduced: &[usize],
        sizes: &[usize],
    ) -> Result<ContractionFactor<'a, T>, Error> {
        let mut rows = Rows::new(sizes.len());
        self.row(&mut rows);
        let nest = Nest::reduce(sizes, order, reduced, &rows);
        let len = order.iter().map(|&axis| sizes[axis]).product();
        note(|| PlanStep::Reduce {
            reduction: "sum",
            expression: "tensor".into(),
            loops: Loops::new::<T>(&nest, len, threads::parts(nest.positions())),
            count: reduced.iter().map(|&axis| sizes[axis]).product(),
        });
        let (elements, work) = (self.elements(), nest.positions());
        // SAFETY: the nest's row has the strides of this operand. They map each position to an
        // element, as the caller of `borrowed` promised.
        let memory = unsafe { ReduceInput::new(elements, &nest, work, 0) };
        let data = Sum::ONCE.reduce_memory(memory, Destination::of_step(len))?;
        told(&data);
        Ok(ContractionFactor::owned(data, order, sizes))
    }
}

/// The axes along which an operand with these strides varies.
pub(super) fn axes_of(strides: &[isize], sizes: &[usize]) -> AxisSet {
    let mut axes = 0;
    for (axis, (&stride, &size)) in strides.iter().zip(sizes).enumerate() {
        axes |= AxisSet::from(stride != 0 && size != 1) << axis;
    }
    axes
}

/// The elements converted to another type, or an error if they do not fit into memory.
pub(super) fn converted<T, W: Copy + 'static>(
    data: Vec<T>,
    convert: impl Fn(T) -> W,
) -> Result<Vec<W>, Error> {
    let to = Destination::of_step(data.len());
    let fill = |places: &mut [MaybeUninit<W>]| {
        for (place, value) in places.iter_mut().zip(data) {
            place.write(convert(value));
        }
        Ok(())
    };
    // SAFETY: there is an element for each slot, so all are written.
    unsafe { to.fill(fill) }
}
