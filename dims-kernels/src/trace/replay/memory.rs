//! The memory of values while a call runs.

use super::draft::Meaning;
use crate::error::Error;
use crate::loops::modes::{ResultMemory, told_all};
use crate::memory::buffer::Buffer;
use crate::memory::destination::Destination;
use crate::memory::listener;
use crate::ops::code::DType;
use crate::scalar::Element;
use crate::trace::Held;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::any::TypeId;
use core::iter::once_with;
use core::slice::{from_raw_parts, from_raw_parts_mut};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The values of a call, by their slots.
pub(super) type CallValues = [Option<Arc<dyn Held>>];

/// The memory that an operand reads.
pub(super) enum OperandMemory {
    /// The value of this slot.
    Slot(usize),
    Constant(Arc<dyn Held>),
    /// No memory: the operand is a position.
    None,
}

impl OperandMemory {
    pub(super) fn new(meaning: Option<Meaning>, slot: &dyn Fn(u64) -> usize) -> Self {
        match meaning {
            None => OperandMemory::None,
            Some(Meaning::Value(number)) => OperandMemory::Slot(slot(number)),
            Some(Meaning::Constant(held)) => OperandMemory::Constant(held),
        }
    }

    pub(super) fn slot(&self) -> Option<usize> {
        match self {
            OperandMemory::Slot(slot) => Some(*slot),
            _ => None,
        }
    }

    /// The first element; `None` for a position.
    pub(super) fn start(&self, values: &CallValues) -> Option<*const u8> {
        match self {
            OperandMemory::None => None,
            OperandMemory::Constant(held) => Some(held.start()),
            OperandMemory::Slot(slot) => {
                Some(values[*slot].as_ref().expect("a step runs after the steps that it reads").start())
            }
        }
    }
}

/// The values of a call, and memory that it can reuse.
#[derive(Default)]
pub(super) struct CallMemory {
    pub(super) values: Vec<Option<Arc<dyn Held>>>,
    /// The cells: memory that a later result of the same type and length overwrites. It is the
    /// memory of a value that is not read again, or memory from the caller for an output.
    pub(super) cells: Vec<Option<Arc<dyn Held>>>,
    /// Whether memory is reused. If a listener is set, memory is freed instead, so that the
    /// listener is notified.
    is_used_again: bool,
}

impl CallMemory {
    /// Removes the value of a slot. Its memory moves to `cell`, if there is one and memory is
    /// reused.
    pub(super) fn free(&mut self, slot: usize, cell: Option<usize>) {
        let value = self.values[slot].take();
        if let Some(cell) = cell.filter(|_| self.is_used_again) {
            self.cells[cell] = value;
        }
    }
}

impl CallMemory {
    /// Takes the value of a slot, so that a result can overwrite it. `None` unless memory is
    /// reused, the value has `len` elements of this type, and nothing else holds its memory.
    pub(super) fn take_unshared(&mut self, slot: usize, dtype: DType, len: usize) -> Option<Arc<dyn Held>> {
        if !self.is_used_again {
            return None;
        }
        let value = self.values[slot].as_mut()?;
        let is_free = (value.element(), value.len()) == (dtype.element(), len)
            && Arc::get_mut(value).and_then(|own| own.start_mut()).is_some();
        if is_free { self.values[slot].take() } else { None }
    }
}

/// The memory of calls that have ended, which later calls reuse. Calls that run at the same time
/// use different entries.
#[derive(Default)]
pub(super) struct CallMemories(Mutex<Vec<CallMemory>>);

impl CallMemories {
    /// Memory for a call with these numbers of values and cells.
    pub(super) fn take(&self, values: usize, cells: usize) -> CallMemory {
        let is_used_again = !listener::is_listening();
        let kept = if is_used_again { self.kept().pop() } else { None };
        let mut memory = CallMemory { is_used_again, ..kept.unwrap_or_default() };
        memory.values.resize(values, None);
        memory.cells.resize(cells, None);
        memory
    }

    /// Keeps the cells of a call for later calls, if memory is reused.
    pub(super) fn keep(&self, mut memory: CallMemory) {
        memory.values.clear();
        if memory.is_used_again {
            self.kept().push(memory);
        }
    }

    /// Locks the list. A panic never leaves it half changed, so poisoning is ignored.
    fn kept(&self) -> MutexGuard<'_, Vec<CallMemory>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The memory of a cell, if it has `len` elements of this type and nothing else holds it.
pub(super) fn free_memory(cell: Option<Arc<dyn Held>>, element: TypeId, len: usize) -> Option<Arc<dyn Held>> {
    let mut held = cell.filter(|held| (held.element(), held.len()) == (element, len))?;
    Arc::get_mut(&mut held)?.start_mut()?;
    Some(held)
}

/// The start of [free memory](free_memory).
pub(super) fn start_of_free(held: &mut Arc<dyn Held>) -> *mut u8 {
    Arc::get_mut(held).and_then(|own| own.start_mut()).expect("nothing else holds free memory")
}

/// The elements that `write` computes, in the memory that [`filled`] chooses. Reports them as the
/// result of the pending step.
pub(super) fn written<T: Element>(
    cell: Option<Arc<dyn Held>>,
    len: usize,
    write: impl FnOnce(Destination<'_, T>) -> Result<Vec<T>, Error>,
) -> Result<Arc<dyn Held>, Error> {
    let (held, is_given) = filled(cell, len, write)?;
    told_all(once_with(|| result_of::<T>(&held, is_given)));
    Ok(held)
}

/// The elements that `write` computes, in the cell's memory if it is [free](free_memory), otherwise
/// in new memory. Also returns whether they are in the cell's memory. While something listens, a
/// cell has only memory from the caller, because other memory is not reused.
pub(super) fn filled<T: Element>(
    cell: Option<Arc<dyn Held>>,
    len: usize,
    write: impl FnOnce(Destination<'_, T>) -> Result<Vec<T>, Error>,
) -> Result<(Arc<dyn Held>, bool), Error> {
    let Some(mut held) = free_memory(cell, TypeId::of::<T>(), len) else {
        let data = write(Destination::New(len))?;
        return Ok((Buffer::from(data).held(), false));
    };
    // SAFETY: the memory has `len` elements of this type, and is borrowed exclusively.
    let places = unsafe { from_raw_parts_mut(start_of_free(&mut held).cast::<T>(), len) };
    write(Destination::Given(places))?;
    Ok((held, true))
}

/// The memory of a value, to report it as the result of a step. `is_given` says whether it is
/// memory from the caller. Panics if the elements are not of type `T`.
pub(super) fn result_of<T: Element>(held: &Arc<dyn Held>, is_given: bool) -> ResultMemory<'_> {
    assert_eq!(held.element(), TypeId::of::<T>(), "the value has elements of another type");
    // SAFETY: the memory has these elements, which do not change while it is borrowed.
    let data = unsafe { from_raw_parts(held.start().cast::<T>(), held.len()) };
    ResultMemory::of(data).with_given(is_given)
}
