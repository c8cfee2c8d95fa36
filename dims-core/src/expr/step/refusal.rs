//! Errors for operations that a gradient or a recorded function cannot follow, such as those that
//! read elements as plain numbers, and the checks that find such operations.

use super::LoopOperand;
#[cfg(feature = "std")]
use super::{WrittenExpr, is_heard};
use crate::error::DimError;
#[cfg(feature = "std")]
use crate::error::{Origin, OriginSuffix, list_names, no_derivative, no_own_derivative};
use crate::expr::Expr;
use crate::expr::index::IndexExprs;
#[cfg(feature = "std")]
use alloc::sync::Arc;
use alloc::vec::Vec;
#[cfg(feature = "std")]
use core::panic::Location;
use kernels::memory::buffer::Buffer;
use kernels::memory::elements::Elements;
use kernels::scalar::Element;
#[cfg(feature = "std")]
use kernels::trace::{
    Node, names_of_variables,
    record::{Unrecorded, Writer},
    registry,
};

/// Takes the elements out of a buffer. It is an error if they are [traced](super).
#[inline]
#[track_caller]
pub(crate) fn taken<T: Element>(buffer: Buffer<T>, operation: &'static str) -> Result<Vec<T>, DimError> {
    #[cfg(feature = "std")]
    if is_heard() && buffer.is_traced() {
        return Err(taken_out(buffer.node(), operation));
    }
    let _ = operation;
    Ok(buffer.into_vec())
}

/// Returns an error if these elements are [traced](super).
#[cfg_attr(not(unoptimized), inline(always))]
#[track_caller]
pub(crate) fn check_taken<T>(elements: &[T], operation: &'static str) -> Result<(), DimError> {
    #[cfg(feature = "std")]
    if is_heard() && !elements.is_empty() {
        return check_memory(elements.as_ptr().cast(), operation);
    }
    let _ = (elements, operation);
    Ok(())
}

/// [`check_taken`] for elements along axes.
#[inline]
#[track_caller]
pub(crate) fn check_elements_taken<T>(
    elements: Elements<'_, T>,
    operation: &'static str,
) -> Result<(), DimError> {
    #[cfg(feature = "std")]
    if is_heard() {
        return check_memory(elements.as_ptr().cast(), operation);
    }
    let _ = (elements, operation);
    Ok(())
}

/// [`check_taken`] for all elements that an operand reads.
#[track_caller]
pub(crate) fn check_operand_taken(
    operand: &impl LoopOperand,
    operation: &'static str,
) -> Result<(), DimError> {
    #[cfg(feature = "std")]
    if is_heard() {
        let mut writer = Writer::new();
        operand.write(&mut writer);
        if writer.is_recorded() {
            return Err(unrecorded(operation));
        }
        if writer.is_traced() {
            return Err(no_derivative(operation, &writer.names_of_variables()));
        }
    }
    let _ = (operand, operation);
    Ok(())
}

#[cfg(feature = "std")]
#[cold]
#[inline(never)]
#[track_caller]
fn check_memory(start: *const u8, operation: &'static str) -> Result<(), DimError> {
    match registry::find(start).filter(|held| held.is_traced()) {
        Some(held) => Err(taken_out(held.node(), operation)),
        None => Ok(()),
    }
}

/// The error for an operation that would take out [traced](super) elements.
#[cfg(feature = "std")]
#[cold]
#[inline(never)]
#[track_caller]
fn taken_out(node: Option<&Arc<Node>>, operation: &'static str) -> DimError {
    if node.is_some_and(|node| node.is_recorded()) {
        return unrecorded(operation);
    }
    let parameters = list_names(&names_of_variables(node));
    DimError::NoDerivative { operation, origin: place_outside(), parameters }
}

/// Converts the error of a writer.
#[cfg(feature = "std")]
#[track_caller]
pub(crate) fn finished<F>(field: Result<F, Unrecorded>) -> Result<F, DimError> {
    match field {
        Ok(field) => Ok(field),
        Err(Unrecorded::Failed(error)) => Err(error.into()),
        Err(Unrecorded::Opaque(operation, names)) => Err(match operation {
            "map" => {
                let remedy = "write a `ScalarOp` with a derivative, for `x.apply(op)`";
                no_own_derivative(operation, remedy, &names)
            }
            "zip_map" => {
                let remedy = "write a `ScalarOp` with a derivative, for `x.apply_with(y, op)`";
                no_own_derivative(operation, remedy, &names)
            }
            _ => no_derivative(operation, &names),
        }),
        Err(Unrecorded::Own(operation, names)) => {
            let remedy = "give it a derivative, with `fn derivative` in its `impl ScalarOp`";
            Err(no_own_derivative(operation, remedy, &names))
        }
        Err(Unrecorded::Unrepeatable(operation, is_own)) => Err(unrecordable(
            operation,
            match operation {
                _ if is_own => "give it a derivative, with `fn derivative` in its `impl ScalarOp`",
                "map" => {
                    "a program cannot call a closure; write a `ScalarOp` with a derivative, for `x.apply(op)`"
                }
                "zip_map" => {
                    "a program cannot call a closure; write a `ScalarOp` with a derivative, for `x.apply_with(y, op)`"
                }
                _ => "programs do not support it; use it outside of the recorded function",
            },
        )),
    }
}

#[cfg(feature = "std")]
#[cold]
#[track_caller]
pub(super) fn refused(own: &WrittenExpr, operation: &'static str) -> DimError {
    if own.field.is_recorded() {
        return unrecorded(operation);
    }
    no_derivative(operation, &names_of_variables(own.field.nodes()))
}

/// Returns an error if an operand depends on inputs of a recorded function: `operation` would read
/// elements that differ from call to call.
#[track_caller]
pub(crate) fn check_unrecorded<E: Expr + ?Sized>(
    operand: &E,
    operation: &'static str,
) -> Result<(), DimError> {
    check_unrecorded_as(operand, operation, READS)
}

/// [`check_unrecorded`] with another reason, for [`unrecordable`].
#[track_caller]
pub(crate) fn check_unrecorded_as<E: Expr + ?Sized>(
    operand: &E,
    operation: &'static str,
    why: &'static str,
) -> Result<(), DimError> {
    #[cfg(feature = "std")]
    if reads_recorded(operand) {
        return Err(unrecordable(operation, why));
    }
    let _ = (operand, operation, why);
    Ok(())
}

/// Whether an operand depends on inputs of a recorded function.
pub(crate) fn reads_recorded<E: Expr + ?Sized>(operand: &E) -> bool {
    #[cfg(feature = "std")]
    if is_heard() {
        let mut writer = Writer::new();
        expr_written(operand, &mut writer);
        return writer.is_recorded();
    }
    let _ = operand;
    false
}

/// Whether elements in memory depend on inputs of a recorded function.
#[inline]
pub(crate) fn is_recorded<T>(buffer: &Buffer<T>) -> bool {
    #[cfg(feature = "std")]
    return buffer.node().is_some_and(|node| node.is_recorded());
    #[cfg(not(feature = "std"))]
    {
        let _ = buffer;
        false
    }
}

/// [`check_unrecorded`] for computed indices that select where to write.
#[track_caller]
pub(crate) fn check_indices_unrecorded(
    indices: &impl IndexExprs,
    operation: &'static str,
) -> Result<(), DimError> {
    #[cfg(feature = "std")]
    if is_heard() {
        let mut writer = Writer::new();
        let elements = writer.constant(0.0_f32);
        indices.write(&mut writer, elements);
        if writer.is_recorded() {
            return Err(unrecordable(operation, WRITES));
        }
    }
    let _ = (indices, operation);
    Ok(())
}

/// [`check_unrecorded`] for elements in memory.
#[track_caller]
pub(crate) fn check_buffer_unrecorded<T: Element>(
    buffer: &Buffer<T>,
    operation: &'static str,
) -> Result<(), DimError> {
    #[cfg(feature = "std")]
    if is_recorded(buffer) {
        return Err(unrecorded(operation));
    }
    let _ = (buffer, operation);
    Ok(())
}

#[cfg(feature = "std")]
fn expr_written<'w, E: Expr + ?Sized>(operand: &'w E, writer: &mut Writer<'w>) {
    operand.write(writer);
}

/// The error for an operation that reads elements while a function is recorded.
#[cfg(feature = "std")]
#[cold]
#[track_caller]
pub(crate) fn unrecorded(operation: &'static str) -> DimError {
    unrecordable(operation, READS)
}

/// Why a program cannot read elements as plain values.
const READS: &str = "it reads elements as plain values, which differ from call to call; call it outside of the recorded function";

/// The error for an operation that cannot be recorded. `why` says why not, and what to write
/// instead.
#[cfg(feature = "std")]
#[cold]
#[track_caller]
pub(crate) fn unrecordable(operation: &'static str, why: &'static str) -> DimError {
    let at = OriginSuffix(place_outside());
    DimError::Shape { what: format!("`{operation}` cannot be recorded{at}: {why}") }
}

/// The source location of the caller. `None` if it is inside this library or the standard library.
#[cfg(feature = "std")]
#[track_caller]
fn place_outside() -> Origin {
    const OWN: &str = file!();
    let sources = &OWN[..OWN.len() - "expr/step/refusal.rs".len()];
    let is_outside =
        |place: &&Location<'_>| !place.file().starts_with(sources) && !place.file().starts_with("/rustc/");
    Some(Location::caller()).filter(is_outside)
}

/// Why a program cannot assign to a part of a tensor.
#[cfg(feature = "std")]
pub(super) const WRITES: &str =
    "it writes to a part of a tensor; put the tensor together with `concat` or `select`";
