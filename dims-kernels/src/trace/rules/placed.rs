//! Results that consist of parts at disjoint places, among other elements.

use super::{NodeParts, pull_backs};
use crate::error::Error;
use crate::loops::nest::Odometer;
use crate::loops::steps::{Loops, PlanStep};
use crate::memory::allocate::repeated;
use crate::memory::buffer::Buffer;
use crate::ops::code::{DType, match_dtype};
use crate::program::interpreter::ProgramOutput;
use crate::scalar::Element;
use crate::trace::compute::mapped;
use crate::trace::{Field, Held, NodeStep, Part, Rule, StridedPlace, pull_parts};
use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::any::Any;

/// The step of a result with the elements `data`, and the number of elements. Some of the elements
/// are those of the parts' fields, at disjoint places.
///
/// For gradients, the step is the sum of the parts. If a part is recorded to run again, the step
/// also keeps the other elements.
pub fn placed<T: Element>(parts: Vec<Part>, data: &[T]) -> (NodeStep, usize) {
    if !parts.iter().any(|part| part.field.is_recorded()) {
        return (NodeStep::Parts(parts), data.len());
    }
    (placed_around(parts, data.to_vec(), data.len()), data.len())
}

/// The step of a recorded result of `len` elements: the elements `around`, or copies of `around` if
/// it is a single element, overwritten by `parts`.
pub fn placed_around<T: Element>(parts: Vec<Part>, around: Vec<T>, len: usize) -> NodeStep {
    let dtype = DType::of::<T>().expect("only types that programs know are recorded");
    NodeStep::Rule(Box::new(Placed { parts, around: Buffer::from(around).held(), len, dtype }))
}

/// Elements, some of which are computed by parts.
pub(in crate::trace) struct Placed {
    pub(in crate::trace) parts: Vec<Part>,
    /// All elements, or a single one if the elements around the parts are equal.
    pub(in crate::trace) around: Arc<dyn Held>,
    /// The number of elements of the result.
    pub(in crate::trace) len: usize,
    pub(in crate::trace) dtype: DType,
}

impl Rule for Placed {
    fn name(&self) -> &'static str {
        "parts of a result"
    }

    fn as_any(&self) -> Option<&dyn Any> {
        Some(self)
    }

    fn operands(&self) -> Vec<&Field> {
        self.parts.iter().map(|part| &part.field).collect()
    }

    fn operands_mut(&mut self) -> Vec<&mut Field> {
        self.parts.iter_mut().map(|part| &mut part.field).collect()
    }

    fn is_repeatable(&self) -> bool {
        true
    }

    fn run(&self, operands: Vec<Field>) -> Option<Result<Arc<dyn Held>, Error>> {
        Some((pull_backs().repeat_placed)(self, operands))
    }

    fn plan(&self, _: &[Field], len: usize, bytes: usize) -> Option<PlanStep> {
        let loops = Loops { sizes: vec![len], operands: Vec::new(), bytes, threads: 1, typed: false };
        Some(PlanStep::Copy { reason: self.name(), loops })
    }

    fn pull(&self, _: &Arc<dyn Held>, cotangent: Arc<dyn Held>, recorded: bool) -> Result<NodeParts, Error> {
        pull_parts(&self.parts, &cotangent, recorded, &|_| true)
    }
}

impl Placed {
    /// The elements, overwritten by parts with other fields.
    pub(super) fn repeat(&self, operands: Vec<Field>) -> Result<Arc<dyn Held>, Error> {
        match_dtype!(self.dtype, T => self.written::<T>(&operands))
    }

    fn written<T: ProgramOutput>(&self, operands: &[Field]) -> Result<Arc<dyn Held>, Error> {
        let around = Buffer::<T>::of_held(&self.around).expect("the elements are of this type");
        let mut data = match around[..] {
            [single] => repeated(single, self.len)?,
            _ => around.to_vec(),
        };
        for (field, Part { place, .. }) in operands.iter().zip(&self.parts) {
            write(&mut data, field, place)?;
        }
        Ok(Buffer::from(data).held())
    }
}

/// Writes the elements of a field to a place.
fn write<T: ProgramOutput>(data: &mut [T], field: &Field, place: &StridedPlace) -> Result<(), Error> {
    if field.sizes.contains(&0) {
        return Ok(());
    }
    place.assert_within(&field.sizes, data.len());
    let order: Vec<usize> = (0..field.sizes.len()).collect();
    let values = mapped::<T>(field, &order)?;
    let mut at = vec![0; order.len()];
    let (&last, outer) = field.sizes.split_last().unwrap_or((&1, &[]));
    let along = |place: &StridedPlace| place.strides.last().copied().unwrap_or(0);
    let table = place.table.as_ref().and_then(|table| table.strides().last().copied()).unwrap_or(0);
    let mut odometer = Odometer::new(outer);
    for row in values.chunks_exact(last) {
        if table == 0 {
            // `assert_within` has checked that all positions are elements.
            let start = place.position(&at);
            match along(place) {
                1 => data[start..][..last].copy_from_slice(row),
                step => row.iter().enumerate().for_each(|(x, &value)| {
                    data[(start as isize + x as isize * step) as usize] = value;
                }),
            }
        } else {
            for (x, &value) in row.iter().enumerate() {
                *at.last_mut().expect("there is a loop") = x;
                data[place.position(&at)] = value;
            }
            *at.last_mut().expect("there is a loop") = 0;
        }
        odometer.advance(&mut at[..outer.len()]);
    }
    Ok(())
}
