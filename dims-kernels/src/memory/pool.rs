//! A pool of memory that is no longer needed.
//!
//! The operating system maps fresh memory page by page when it is first touched, which can take
//! longer than the computation that writes it. So large tensors that are dropped return their
//! memory to a pool, from which later results of about the same size take it.

use alloc::vec::Vec;
use core::alloc::Layout;
use core::mem::{ManuallyDrop, needs_drop, take};
use core::ptr::NonNull;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Blocks of fewer bytes do not go into the pool: the allocator reuses them itself.
const LEAST: usize = 256 << 10;

/// The default limit of the pool, in bytes.
const LIMIT: usize = 64 << 20;

/// Memory from the global allocator that nothing uses.
struct FreeBlock {
    start: NonNull<u8>,
    layout: Layout,
}

// SAFETY: a block owns its memory.
unsafe impl Send for FreeBlock {}

impl Drop for FreeBlock {
    fn drop(&mut self) {
        // SAFETY: the memory was allocated with this layout, and nothing else owns it.
        unsafe { alloc::alloc::dealloc(self.start.as_ptr(), self.layout) };
    }
}

/// New blocks are added at the end.
struct Pool {
    blocks: Vec<FreeBlock>,
    limit: usize,
}

static POOL: Mutex<Pool> = Mutex::new(Pool { blocks: Vec::new(), limit: LIMIT });

fn pool() -> MutexGuard<'static, Pool> {
    POOL.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Pool {
    fn bytes(&self) -> usize {
        self.blocks.iter().map(|block| block.layout.size()).sum()
    }

    /// Removes the first blocks, mostly the oldest ones, until the others are within the limit.
    fn shrink(&mut self) -> Vec<FreeBlock> {
        let mut excess = self.bytes().saturating_sub(self.limit);
        let count = self.blocks.iter().take_while(|block| {
            let too_many = excess > 0;
            excess = excess.saturating_sub(block.layout.size());
            too_many
        });
        let count = count.count();
        self.blocks.drain(..count).collect()
    }
}

/// Memory from the pool for `len` elements, and not many more; `None` if there is no such block.
#[inline]
pub fn recycled<T>(len: usize) -> Option<Vec<T>> {
    if len.saturating_mul(size_of::<T>()) < LEAST { None } else { taken(len) }
}

#[cold]
fn taken<T>(len: usize) -> Option<Vec<T>> {
    let block = ManuallyDrop::new(fitting(Layout::array::<T>(len).ok()?, size_of::<T>())?);
    // SAFETY: the block owns memory from the global allocator, with the alignment of `T` and as
    // many bytes as this capacity has.
    Some(unsafe { Vec::from_raw_parts(block.start.cast().as_ptr(), 0, block.layout.size() / size_of::<T>()) })
}

/// A block for this layout, and not much larger, whose size is a multiple of `element` bytes.
fn fitting(wanted: Layout, element: usize) -> Option<FreeBlock> {
    let mut pool = pool();
    let at = pool.blocks.iter().rposition(|FreeBlock { layout, .. }| {
        layout.align() == wanted.align()
            && layout.size().is_multiple_of(element)
            && layout.size() >= wanted.size()
            && layout.size() - wanted.size() <= wanted.size() / 8
    })?;
    Some(pool.blocks.swap_remove(at))
}

/// Puts memory into the pool if it is large and its elements need no drop, and otherwise frees it.
#[inline]
pub fn recycle<T>(memory: Vec<T>) {
    if memory.capacity().saturating_mul(size_of::<T>()) >= LEAST && !needs_drop::<T>() {
        put(memory);
    }
}

#[cold]
fn put<T>(memory: Vec<T>) {
    let mut memory = ManuallyDrop::new(memory);
    let Ok(layout) = Layout::array::<T>(memory.capacity()) else { unreachable!("the memory was allocated") };
    let Some(start) = NonNull::new(memory.as_mut_ptr().cast()) else {
        unreachable!("the memory was allocated")
    };
    keep(FreeBlock { start, layout });
}

fn keep(block: FreeBlock) {
    let mut pool = pool();
    pool.blocks.push(block);
    // The excess is freed after the pool is unlocked.
    let _excess = (pool.shrink(), drop(pool));
}

/// The limit of the pool, in bytes; 64 MiB by default.
pub fn pool_limit() -> usize {
    pool().limit
}

/// Sets the limit of the pool, in bytes. Excess memory is freed; 0 turns the pool off.
///
/// Large tensors (256 KiB and more) that are dropped return their memory to a pool instead of
/// freeing it, and results of about the same size reuse it, because touching fresh memory is slow.
/// All threads share the pool.
///
/// ```
/// use typed_dims_kernels::memory::pool as memory;
///
/// memory::set_pool_limit(16 << 20);
/// assert!(memory::pool_bytes() <= 16 << 20);
/// ```
pub fn set_pool_limit(bytes: usize) {
    let mut pool = pool();
    pool.limit = bytes;
    let _excess = (pool.shrink(), drop(pool));
}

/// The size of the pool, in bytes.
pub fn pool_bytes() -> usize {
    pool().bytes()
}

/// Frees all memory of the pool. Later results fill it again.
pub fn empty_pool() {
    let blocks = take(&mut pool().blocks);
    drop(blocks);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::allocate::reserve;
    use crate::memory::buffer::Buffer;

    #[test]
    fn memory_is_taken_from_the_pool_by_results_of_its_size_and_alignment() {
        let len = LEAST;
        let mut first = reserve::<f32>(len).expect("memory");
        first.resize(len, 1.0);
        let place = first.as_ptr();
        drop(Buffer::from(first));
        assert!(pool_bytes() >= 4 * len);
        let (bytes, short) =
            (reserve::<u8>(4 * len).expect("memory"), reserve::<f32>(len / 4).expect("memory"));
        assert!(bytes.as_ptr() != place.cast() && short.as_ptr() != place);
        let second = reserve::<i32>(len - 1).expect("memory");
        assert_eq!(second.as_ptr(), place.cast());
        assert!(second.is_empty() && second.capacity() == len);

        set_pool_limit(0);
        drop(Buffer::from(second));
        assert_eq!(pool_bytes(), 0);
        set_pool_limit(LIMIT);
        drop(Buffer::from(vec![0u64; len]));
        assert_eq!(pool_bytes(), 8 * len);
        empty_pool();
        assert_eq!(pool_bytes(), 0);
    }
}
