//! New memory for results. With the feature `std`, large intermediate results give theirs back to a pool.

use crate::error::DimError;
use alloc::vec::Vec;
use core::mem::take;
use core::ops::{Deref, DerefMut};

#[cfg(feature = "std")]
pub use super::pool::{empty_pool, pool_bytes, pool_limit, set_pool_limit};

/// Results of at least this many bytes ask for huge pages.
#[cfg(all(feature = "std", target_os = "linux"))]
const LARGE: usize = 4 << 20;

/// Memory for `len` elements, or an error instead of an abort.
#[inline]
pub(crate) fn reserve<T>(len: usize) -> Result<Vec<T>, DimError> {
    #[cfg(feature = "std")]
    if let Some(memory) = super::pool::recycled(len) {
        return Ok(memory);
    }
    let mut out = Vec::new();
    out.try_reserve_exact(len).map_err(|_| DimError::TooLarge { dims: format!("{len} elements") })?;
    #[cfg(all(feature = "std", target_os = "linux"))]
    if len.saturating_mul(size_of::<T>()) >= LARGE {
        advise(&mut out);
    }
    Ok(out)
}

/// Asks for huge pages in the part of the memory that consists of whole ones.
#[cfg(all(feature = "std", target_os = "linux"))]
#[cold]
fn advise<T>(memory: &mut Vec<T>) {
    const HUGE: usize = 2 << 20;
    let spare = memory.spare_capacity_mut();
    let start = spare.as_mut_ptr().cast::<u8>();
    let skipped = start.align_offset(HUGE);
    let bytes = size_of_val(spare).saturating_sub(skipped) / HUGE * HUGE;
    if bytes > 0 {
        // SAFETY: the range is page-aligned and lies within memory that `memory` owns; the advice changes how it is mapped, not
        // what it holds. Where it is not followed nothing is lost, so its result does not matter.
        unsafe { libc::madvise(start.add(skipped).cast(), bytes, libc::MADV_HUGEPAGE) };
    }
}

/// Elements whose memory goes to the pool in the end, where there is one.
#[derive(Clone)]
pub(crate) struct Buffer<T>(Vec<T>);

impl<T> Buffer<T> {
    /// The elements, for good.
    #[inline]
    pub(crate) fn into_vec(mut self) -> Vec<T> {
        take(&mut self.0)
    }
}

impl<T> From<Vec<T>> for Buffer<T> {
    #[inline]
    fn from(data: Vec<T>) -> Self {
        Buffer(data)
    }
}

impl<T> Deref for Buffer<T> {
    type Target = Vec<T>;

    #[inline(always)]
    fn deref(&self) -> &Vec<T> {
        &self.0
    }
}

impl<T> DerefMut for Buffer<T> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut Vec<T> {
        &mut self.0
    }
}

#[cfg(feature = "std")]
impl<T> Drop for Buffer<T> {
    #[inline]
    fn drop(&mut self) {
        super::pool::recycle(&mut self.0);
    }
}
