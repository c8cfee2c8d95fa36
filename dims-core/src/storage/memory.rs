//! New memory for results.

use crate::error::DimError;

/// Results of at least this many bytes ask for huge pages: touching fresh memory in pages of 4 KiB costs more than most
/// kernels that write it.
#[cfg(target_os = "linux")]
const LARGE: usize = 4 << 20;

/// Memory for `len` elements, or an error instead of an abort.
#[inline]
pub fn reserve<T>(len: usize) -> Result<Vec<T>, DimError> {
    let mut out = Vec::new();
    out.try_reserve_exact(len).map_err(|_| DimError::TooLarge { dims: format!("{len} elements") })?;
    #[cfg(target_os = "linux")]
    if len.saturating_mul(size_of::<T>()) >= LARGE {
        advise(&mut out);
    }
    Ok(out)
}

/// Asks for huge pages in the part of the memory that consists of whole ones.
#[cfg(target_os = "linux")]
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
