//! Patterns of traced tensors, as steps of a recorded program.

use super::args::ValueList;
use super::input::Values;
use super::rank::ResultOf;
use crate::error::DimError;
use crate::expr::record::{Traced, untraced};
use crate::set::Dims;
use kernels::loops::rows::Rows;
use kernels::memory::buffer::Buffer;
use kernels::memory::elements::Elements;
use kernels::scalar::Element;

/// The product of the operands along the loops of a pattern, if one of them is traced. `U` is the type of the results.
#[inline]
#[track_caller]
pub fn traced<T: Element, U: Element>(
    sizes: &[usize],
    rows: &Rows,
    values: &impl ValueList<T>,
) -> Result<Traced, DimError> {
    #[cfg(feature = "std")]
    if crate::expr::record::is_active() {
        return crate::expr::record::traced_by::<U>(sizes, rows, |writer| values.write(None, writer));
    }
    let _ = (sizes, rows, values);
    Ok(None)
}

/// The elements of one operand along its dims and own axes, if it is traced.
#[inline]
#[track_caller]
pub fn traced_alone<V: Values>(sizes: &[usize], rows: &Rows, values: &V) -> Result<Traced, DimError> {
    #[cfg(feature = "std")]
    if crate::expr::record::is_active() {
        return crate::expr::record::traced_by::<V::Elem>(sizes, rows, |writer| values.write(writer));
    }
    let _ = (sizes, rows, values);
    Ok(None)
}

/// The error of elements in memory that are traced, where only arrays are put together, which cannot be.
#[inline]
#[track_caller]
pub fn constant<T>(elements: Elements<'_, T>, operation: &'static str) -> Result<(), DimError> {
    #[cfg(feature = "std")]
    crate::expr::record::untraced_memory(elements.as_ptr().cast(), operation)?;
    let _ = (elements, operation);
    Ok(())
}

/// Fails if an operand is traced: the operation has no derivative.
#[track_caller]
pub fn refuse<T: Element>(values: &impl ValueList<T>, operation: &'static str) -> Result<(), DimError> {
    #[cfg(feature = "std")]
    if crate::expr::record::is_active() {
        let mut writer = kernels::trace::record::Writer::new();
        values.write(None, &mut writer);
        if writer.is_traced() {
            return Err(crate::expr::record::lost(operation, writer.names_of_variables()));
        }
    }
    let _ = (values, operation);
    Ok(())
}

/// Whether an operand is traced.
pub fn is_traced<T: Element>(values: &impl ValueList<T>) -> bool {
    #[cfg(feature = "std")]
    if crate::expr::record::is_active() {
        let mut writer = kernels::trace::record::Writer::new();
        values.write(None, &mut writer);
        return writer.is_traced();
    }
    let _ = values;
    false
}

/// The result of a pattern. Only a tensor can be traced.
#[inline]
#[track_caller]
pub fn result<T: Element, S: Dims, N: ResultOf<T, S>>(
    data: Buffer<T>,
    sizes: &[usize],
    operation: &'static str,
) -> Result<N::Out, DimError> {
    if S::KEYS.as_slice().is_empty() {
        return Ok(N::build(untraced(data, operation)?, sizes));
    }
    N::build_recorded(data, sizes)
}

pub use joining::Joining;

#[cfg(feature = "std")]
mod joining {
    use super::*;
    use crate::expr::record::{finished, node};
    use alloc::vec::Vec;
    use kernels::loops::steps::told;
    use kernels::program::code::DType;
    use kernels::trace::record::Writer;
    use kernels::trace::{NodeStep, Part, StridedPlace};

    /// The parts of a result that is put together of elements in memory, if some of these are traced.
    pub struct Joining(Option<Vec<Part>>);

    impl Joining {
        /// No parts yet; `traced` says whether they are taken down.
        pub fn new(traced: bool) -> Self {
            Joining(traced.then(Vec::new))
        }

        /// Elements with these strides along loops of these sizes, which lie in the result at `start` with the strides `to`.
        #[track_caller]
        pub fn add<T: Element>(
            &mut self,
            sizes: &[usize],
            (elements, from): (Elements<'_, T>, &[isize]),
            (start, to): (isize, &[isize]),
        ) -> Result<(), DimError> {
            let Some(parts) = &mut self.0 else { return Ok(()) };
            if sizes.contains(&0) {
                return Ok(());
            }
            let mut rows = Rows::new(sizes.len());
            rows.push().copy_from_slice(from);
            let mut writer = Writer::new();
            let value = writer.elements(elements, None);
            // (The sum of all parts is the result: those that are constant belong to it.)
            let Some(field) = finished(writer.finish_any(value, sizes, &rows).map(Some))? else {
                return Ok(());
            };
            let strides = sizes.iter().zip(to).map(|(&size, &stride)| if size == 1 { 0 } else { stride });
            parts.push(Part { field: *field, place: StridedPlace::strided(start, strides) });
            Ok(())
        }

        /// The result.
        #[track_caller]
        pub fn finish<T: Element>(self, data: Vec<T>) -> Buffer<T> {
            told(&data);
            match self.0 {
                Some(parts) if DType::of::<T>().is_some_and(DType::is_float) => {
                    node(data, NodeStep::Parts(parts))
                }
                _ => data.into(),
            }
        }
    }
}

#[cfg(not(feature = "std"))]
mod joining {
    use super::*;
    use alloc::vec::Vec;

    pub struct Joining;

    impl Joining {
        pub fn new(_: bool) -> Self {
            Joining
        }

        #[inline(always)]
        pub fn add<T: Element>(
            &mut self,
            _: &[usize],
            _: (Elements<'_, T>, &[isize]),
            _: (isize, &[isize]),
        ) -> Result<(), DimError> {
            Ok(())
        }

        #[inline(always)]
        pub fn finish<T: Element>(self, data: Vec<T>) -> Buffer<T> {
            data.into()
        }
    }
}
