//! Which memory is traced: found by the address of an element.

use crate::trace::Held;
use alloc::collections::BTreeMap;
use alloc::sync::{Arc, Weak};
use core::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{PoisonError, RwLock};

/// How many pieces of memory are traced.
static ACTIVE: AtomicUsize = AtomicUsize::new(0);

/// Each piece by its first address, with the address behind it.
static MEMORY: RwLock<BTreeMap<usize, (usize, Weak<dyn Held>)>> = RwLock::new(BTreeMap::new());

/// Whether anything is traced: else nothing else is asked.
#[inline(always)]
pub fn is_active() -> bool {
    ACTIVE.load(Ordering::Relaxed) != 0
}

/// Notes that memory is traced. (Memory without elements has no address of its own, and no gradient.)
pub(crate) fn insert(held: &Arc<dyn Held>) {
    let Some(dtype) = held.dtype() else { return };
    if held.is_empty() {
        return;
    }
    let start = held.start() as usize;
    let end = start + held.len() * dtype.bytes();
    let mut memory = MEMORY.write().unwrap_or_else(PoisonError::into_inner);
    if memory.insert(start, (end, Arc::downgrade(held))).is_none() {
        ACTIVE.fetch_add(1, Ordering::Relaxed);
    }
}

/// Forgets it, before the memory is freed.
pub(crate) fn remove(start: *const u8) {
    let mut memory = MEMORY.write().unwrap_or_else(PoisonError::into_inner);
    if memory.remove(&(start as usize)).is_some() {
        ACTIVE.fetch_sub(1, Ordering::Relaxed);
    }
}

/// The traced memory in which an element lies.
pub fn find(element: *const u8) -> Option<Arc<dyn Held>> {
    let memory = MEMORY.read().unwrap_or_else(PoisonError::into_inner);
    let (_, (end, held)) = memory.range(..=element as usize).next_back()?;
    if (element as usize) < *end { held.upgrade() } else { None }
}
