//! The registry of marked memory: finds it by the address of an element.

use crate::memory::held::Held;
use alloc::collections::BTreeMap;
use alloc::sync::{Arc, Weak};
use core::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{PoisonError, RwLock};

/// The number of marked allocations.
static ACTIVE: AtomicUsize = AtomicUsize::new(0);

/// Maps the start of each marked allocation to its end and its owner.
static MEMORY: RwLock<BTreeMap<usize, (usize, Weak<dyn Held>)>> = RwLock::new(BTreeMap::new());

/// Whether any memory is marked. If not, no other lookup is needed.
#[cfg_attr(not(unoptimized), inline(always))]
pub fn is_active() -> bool {
    ACTIVE.load(Ordering::Relaxed) != 0
}

/// Registers marked memory. Memory without elements has no unique address: it is counted, but
/// `find` does not return it.
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

/// Unregisters marked memory of this size. Call it once, before the memory is freed.
pub(crate) fn remove(start: *const u8, bytes: usize) {
    if bytes != 0 {
        MEMORY.write().unwrap_or_else(PoisonError::into_inner).remove(&(start as usize));
    }
    ACTIVE.fetch_sub(1, Ordering::Relaxed);
}

/// The marked memory that contains an element.
pub fn find(element: *const u8) -> Option<Arc<dyn Held>> {
    let memory = MEMORY.read().unwrap_or_else(PoisonError::into_inner);
    let (_, (end, held)) = memory.range(..=element as usize).next_back()?;
    if (element as usize) < *end { held.upgrade() } else { None }
}
