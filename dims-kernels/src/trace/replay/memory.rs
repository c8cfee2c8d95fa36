//! The memory of values while a call runs.

use super::draft::Meaning;
use crate::error::Error;
use crate::loops::steps::told;
use crate::memory::buffer::Buffer;
use crate::memory::destination::Destination;
use crate::memory::listener;
use crate::scalar::Element;
use crate::trace::Held;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::any::TypeId;
use core::slice::from_raw_parts_mut;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The values of a call, by their slots.
pub(super) type CallValues = [Option<Arc<dyn Held>>];

/// Where the memory of an operand is.
pub(super) enum OperandMemory {
    /// The value of this slot.
    Slot(usize),
    Constant(Arc<dyn Held>),
    /// A position.
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

    /// The slot that is read.
    pub(super) fn slot(&self) -> Option<usize> {
        match self {
            OperandMemory::Slot(slot) => Some(*slot),
            _ => None,
        }
    }

    /// The first element; nothing for a position.
    pub(super) fn start(&self, values: &CallValues) -> Option<*const u8> {
        match self {
            OperandMemory::None => None,
            OperandMemory::Constant(held) => Some(held.start()),
            OperandMemory::Slot(slot) => {
                Some(values[*slot].as_ref().expect("steps run behind what they read").start())
            }
        }
    }
}

/// The values of a call, and memory that it uses again.
#[derive(Default)]
pub(super) struct CallMemory {
    pub(super) values: Vec<Option<Arc<dyn Held>>>,
    /// Memory that no value has any more. A result has a cell if one of its type and length is free when it is computed.
    pub(super) cells: Vec<Option<Arc<dyn Held>>>,
    /// Whether memory is used again. It is freed where somebody listens, who is to hear of that.
    is_used_again: bool,
}

impl CallMemory {
    /// Frees the value of a slot, whose memory a cell may have.
    pub(super) fn free(&mut self, slot: usize, cell: Option<usize>) {
        let value = self.values[slot].take();
        if let Some(cell) = cell.filter(|_| self.is_used_again) {
            self.cells[cell] = value;
        }
    }
}

/// The memories of calls that have ended: one for each of those that ran at the same time.
#[derive(Default)]
pub(super) struct CallMemories(Mutex<Vec<CallMemory>>);

impl CallMemories {
    /// Memory for a call of so many values and cells.
    pub(super) fn take(&self, values: usize, cells: usize) -> CallMemory {
        let is_used_again = !listener::is_listening();
        let kept = if is_used_again { self.kept().pop() } else { None };
        let mut memory = CallMemory { is_used_again, ..kept.unwrap_or_default() };
        memory.values.resize(values, None);
        memory.cells.resize(cells, None);
        memory
    }

    /// Keeps the memory of a call for another one.
    pub(super) fn keep(&self, mut memory: CallMemory) {
        memory.values.clear();
        if memory.is_used_again {
            self.kept().push(memory);
        }
    }

    /// (What is locked is a list, which is whole at any time.)
    fn kept(&self) -> MutexGuard<'_, Vec<CallMemory>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The memory, if it has so many elements of a type, and nobody else has it.
pub(super) fn free_memory(cell: Option<Arc<dyn Held>>, element: TypeId, len: usize) -> Option<Arc<dyn Held>> {
    let mut held = cell.filter(|held| (held.element(), held.len()) == (element, len))?;
    Arc::get_mut(&mut held)?.start_mut()?;
    Some(held)
}

/// Where free memory begins.
pub(super) fn start_of_free(held: &mut Arc<dyn Held>) -> *mut u8 {
    Arc::get_mut(held).and_then(|own| own.start_mut()).expect("nobody else has free memory")
}

/// The elements that `write` computes, in memory that is free, if there is some of their type and number.
pub(super) fn written<T: Element>(
    cell: Option<Arc<dyn Held>>,
    len: usize,
    write: impl FnOnce(Destination<'_, T>) -> Result<Vec<T>, Error>,
) -> Result<Arc<dyn Held>, Error> {
    let Some(mut held) = free_memory(cell, TypeId::of::<T>(), len) else {
        let data = write(Destination::New(len))?;
        told(&data);
        return Ok(Buffer::from(data).held());
    };
    // SAFETY: the memory has `len` elements of this type, and is borrowed exclusively.
    let places = unsafe { from_raw_parts_mut(start_of_free(&mut held).cast::<T>(), len) };
    write(Destination::Given(places))?;
    Ok(held)
}
