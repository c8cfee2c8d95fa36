//! Reads and writes elements of sharded values at computed indices, by comparing each index with
//! all positions. A lookup would gather the value on each device.

use super::Lower;
use super::text::Value;
use super::view::{Loop, strides};
use crate::error::XlaError;
use typed_dims_kernels::program::code::DType;
use typed_dims_kernels::trace::saved::{SavedField, SavedPlace, SavedTable};

impl Lower<'_> {
    /// Compares indices with all positions of the axis that they select from. Returns the results
    /// of the comparisons, and the loop of the axis. `None` if there are more comparisons than
    /// elements in the shape, or if the place does not select from one whole axis by a single
    /// computed index.
    fn is_chosen(
        &mut self,
        field: &SavedField,
        place: &SavedPlace,
        loops: &[usize],
        shape: &[usize],
    ) -> Result<Option<(Value, Loop)>, XlaError> {
        let Some(lookup) = &place.table else { return Ok(None) };
        let SavedTable::Computed { indices, order } = self.table_source(lookup.number).clone() else {
            return Ok(None);
        };
        let [index] = &indices[..] else { return Ok(None) };
        let steps = strides(shape);
        let axis =
            (0..shape.len()).find(|&axis| shape[axis] == index.size && steps[axis] as isize == index.stride);
        let Some(axis) = axis else { return Ok(None) };
        let mut sizes: Vec<usize> = loops.iter().map(|&own| field.sizes[own]).collect();
        sizes.push(index.size);
        let is_apart = !(place.offset as usize / steps[axis]).is_multiple_of(index.size);
        if is_apart || sizes.iter().product::<usize>() > shape.iter().product() {
            return Ok(None);
        }
        let found = self.checked_index((lookup.number, 0), index, &order)?;
        let found = self.body.reshape(&found, &[found.len()]);
        let own: Vec<Loop> =
            loops.iter().map(|&own| Loop { size: field.sizes[own], stride: lookup.strides[own] }).collect();
        let found = self.body.view(&found, lookup.start, &own);
        let axes: Vec<usize> = (0..loops.len()).collect();
        let found = self.body.broadcast(&found, &sizes, &axes);
        let at = self.body.iota(DType::I64, &sizes, loops.len());
        let is_chosen = self.body.compare("EQ", &found, &at);
        Ok(Some((is_chosen, Loop { size: index.size, stride: index.stride })))
    }

    /// The elements of a value at computed indices. `None` as for [`is_chosen`](Self::is_chosen).
    pub(super) fn chosen(
        &mut self,
        field: &SavedField,
        place: &SavedPlace,
        loops: &[usize],
        value: &Value,
    ) -> Result<Option<Value>, XlaError> {
        let Some((is_chosen, along)) = self.is_chosen(field, place, loops, &value.shape)? else {
            return Ok(None);
        };
        let mut own: Vec<Loop> =
            loops.iter().map(|&own| Loop { size: field.sizes[own], stride: place.strides[own] }).collect();
        own.push(along);
        let elements = self.body.view(value, place.offset, &own);
        let zeros = self.body.zeros(elements.dtype, &elements.shape);
        let elements = self.body.select(&is_chosen, &elements, &zeros);
        let by = if elements.dtype == DType::Bool { "or" } else { "add" };
        let zero = self.body.zeros(elements.dtype, &[]);
        Ok(Some(self.body.reduce(&elements, &zero, &[loops.len()], by)))
    }

    /// Puts elements along loops into zeros of a shape, at computed indices. `None` as for
    /// [`is_chosen`](Self::is_chosen), or if the place has stride 0 along a loop.
    pub(super) fn put_chosen(
        &mut self,
        elements: &Value,
        field: &SavedField,
        place: &SavedPlace,
        loops: &[usize],
        shape: &[usize],
    ) -> Result<Option<Value>, XlaError> {
        if loops.iter().any(|&own| place.strides[own] == 0) {
            return Ok(None);
        }
        let Some((is_chosen, along)) = self.is_chosen(field, place, loops, shape)? else {
            return Ok(None);
        };
        let axes: Vec<usize> = (0..loops.len()).collect();
        let elements = self.body.broadcast(elements, &is_chosen.shape, &axes);
        let zeros = self.body.zeros(elements.dtype, &elements.shape);
        let elements = self.body.select(&is_chosen, &elements, &zeros);
        let mut own: Vec<Loop> =
            loops.iter().map(|&own| Loop { size: field.sizes[own], stride: place.strides[own] }).collect();
        own.push(along);
        Ok(Some(self.body.placed(&elements, place.offset, &own, shape)))
    }
}
