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
    if crate::expr::record::is_active()
        && kernels::trace::registry::find(elements.as_ptr().cast()).is_some()
    {
        return Err(crate::expr::record::lost(operation));
    }
    let _ = (elements, operation);
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
