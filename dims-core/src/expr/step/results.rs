//! Steps of results that consist of parts.

#[cfg(feature = "std")]
use super::node::new_node;
use super::{ExprStep, LoopOperand, Part};
#[cfg(feature = "std")]
use super::{finished, is_heard};
use crate::error::DimError;
use alloc::vec::Vec;
#[cfg(feature = "std")]
use kernels::loops::rows::Rows;
use kernels::loops::steps::told;
use kernels::memory::buffer::Buffer;
use kernels::memory::elements::Elements;
#[cfg(feature = "std")]
use kernels::program::code::DType;
use kernels::scalar::Element;
#[cfg(feature = "std")]
use kernels::trace::{NodeStep, StridedPlace, record::Writer, rules};

/// Elements that are added at positions of a result, if one of their operands is traced.
#[derive(Default)]
pub(crate) struct StepOfSum(pub(super) Option<Part>);

impl StepOfSum {
    #[track_caller]
    pub(crate) fn finish<T: Element>(self, data: Vec<T>) -> Buffer<T> {
        told(&data);
        #[cfg(feature = "std")]
        if let Some(part) = self.0 {
            let dtype = DType::of::<T>().expect("only types that programs know are recorded");
            let node = new_node(dtype, data.len(), NodeStep::Parts(vec![part]), None);
            return Buffer::traced(data, node);
        }
        data.into()
    }
}

/// The traced parts of a result. Parts are at disjoint positions.
#[derive(Default)]
pub(crate) struct StepOfPlaces(Vec<Part>);

impl StepOfPlaces {
    pub(crate) fn add(&mut self, part: Option<Part>) {
        self.0.extend(part);
    }

    /// Adds all elements of a buffer at `start`.
    pub(crate) fn add_whole<T: Element>(&mut self, data: &Buffer<T>, start: usize) {
        self.add(ExprStep::of_memory(data, &[data.len()]).part_at(start, &[1]));
    }

    /// The result. Positions outside the parts keep the elements of `data`.
    #[track_caller]
    pub(crate) fn finish<T: Element>(self, data: Vec<T>) -> Buffer<T> {
        told(&data);
        #[cfg(feature = "std")]
        if !self.0.is_empty() {
            let dtype = DType::of::<T>().expect("only types that programs know are recorded");
            let step = rules::placed(self.0, &data);
            return Buffer::traced(data, new_node(dtype, step.1, step.0, None));
        }
        data.into()
    }

    /// Like [`finish`](StepOfPlaces::finish), for a result without elements. Positions outside the
    /// parts have the elements `around`, or copies of a single one.
    #[cfg(feature = "std")]
    #[track_caller]
    pub(crate) fn finish_hollow<T: Element>(self, len: usize, around: Vec<T>) -> Result<Buffer<T>, DimError> {
        let data: Option<Vec<T>> = kernels::memory::hollow::reserved(len)?;
        let data = data.expect("programs know only real numbers and `bool`");
        let dtype = DType::of::<T>().expect("only types that programs know are recorded");
        let step = rules::placed_around(self.0, around, len);
        Ok(Buffer::traced(data, new_node(dtype, len, step, None)))
    }
}

/// The parts of a result, if one of the operands is traced.
pub(crate) struct StepOfParts(Option<Vec<Part>>);

impl StepOfParts {
    /// Starts without parts, for a result that reads this operand.
    pub(crate) fn of(operand: &impl LoopOperand) -> Self {
        #[cfg(feature = "std")]
        if is_heard() {
            let mut writer = Writer::new();
            operand.write(&mut writer);
            return StepOfParts(writer.is_traced().then(Vec::new));
        }
        let _ = operand;
        StepOfParts(None)
    }

    /// Adds elements with the strides `from` along loops of these sizes. They are stored in the
    /// result at `start` with the strides `to`.
    #[track_caller]
    pub(crate) fn add<T: Element>(
        &mut self,
        sizes: &[usize],
        (elements, from): (Elements<'_, T>, &[isize]),
        (start, to): (isize, &[isize]),
    ) -> Result<(), DimError> {
        let Some(parts) = &mut self.0 else { return Ok(()) };
        #[cfg(feature = "std")]
        if !sizes.contains(&0) {
            let mut rows = Rows::new(sizes.len());
            rows.push().copy_from_slice(from);
            let mut writer = Writer::new();
            let value = writer.elements(elements, None);
            // (The result is the sum of all parts, including constant ones.)
            let field = finished(writer.finish_any(value, sizes, &rows))?;
            let strides = sizes.iter().zip(to).map(|(&size, &stride)| if size == 1 { 0 } else { stride });
            parts.push(Part { field, place: StridedPlace::strided(start, strides) });
        }
        let _ = (parts, sizes, elements, from, start, to);
        Ok(())
    }

    #[track_caller]
    pub(crate) fn finish<T: Element>(self, data: Vec<T>) -> Buffer<T> {
        told(&data);
        #[cfg(feature = "std")]
        if let Some(parts) = self.0
            && let Some(dtype) = DType::of::<T>()
            && (dtype.is_float() || parts.iter().any(|part| part.field.is_recorded()))
        {
            let node = new_node(dtype, data.len(), NodeStep::Parts(parts), None);
            return Buffer::traced(data, node);
        }
        data.into()
    }
}
