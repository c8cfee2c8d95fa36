//! Which memory is marked: found by the address of an element.

use crate::memory::held::Held;
use alloc::collections::BTreeMap;
use alloc::sync::{Arc, Weak};
use core::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{PoisonError, RwLock};

/// How many pieces of memory are marked.
static ACTIVE: AtomicUsize = AtomicUsize::new(0);

/// Each piece by its first address, with the address behind it.
static MEMORY: RwLock<BTreeMap<usize, (usize, Weak<dyn Held>)>> = RwLock::new(BTreeMap::new());

/// Whether any memory is marked: else nothing else is asked.
#[cfg_attr(not(unoptimized), inline(always))]
pub fn is_active() -> bool {
    ACTIVE.load(Ordering::Relaxed) != 0
}

/// Notes that memory is marked. Memory without elements has no address of its own, so it is counted, and not found.
pub(crate) fn insert(held: &Arc<dyn Held>) {
    ACTIVE.fetch_add(1, Ordering::Relaxed);
    if held.bytes() == 0 {
        return;
    }
    let start = held.start() as usize;
    let end = start + held.bytes();
    let mut memory = MEMORY.write().unwrap_or_else(PoisonError::into_inner);
    memory.insert(start, (end, Arc::downgrade(held)));
}

/// Forgets marked memory of so many bytes, once, before it is freed.
pub(crate) fn remove(start: *const u8, bytes: usize) {
    if bytes != 0 {
        MEMORY.write().unwrap_or_else(PoisonError::into_inner).remove(&(start as usize));
    }
    ACTIVE.fetch_sub(1, Ordering::Relaxed);
}

/// The marked memory in which an element lies.
pub fn find(element: *const u8) -> Option<Arc<dyn Held>> {
    let memory = MEMORY.read().unwrap_or_else(PoisonError::into_inner);
    let (_, (end, held)) = memory.range(..=element as usize).next_back()?;
    if (element as usize) < *end { held.upgrade() } else { None }
}
