//! Memory of a tensor that is no longer needed.

/// The memory of all elements of a tensor that no longer needs them.
///
/// The tensor still owns the memory, and gives it up in exchange for this value.
pub struct Freed<T> {
    start: *mut T,
    len: usize,
}

impl<T> Freed<T> {
    /// These elements.
    ///
    /// # Safety
    ///
    /// The elements are of the type `T`, and remain valid for as long as the value is used. Nothing else accesses them meanwhile, but for the routine that gets the value: it
    /// runs kernels that read each element at the position at which it is written, or that read none of them.
    #[cfg_attr(not(unoptimized), inline(always))]
    pub unsafe fn of<U>(elements: &mut [U]) -> Self {
        assert_eq!(
            (size_of::<T>(), align_of::<T>()),
            (size_of::<U>(), align_of::<U>()),
            "elements are of the same type"
        );
        Freed { start: elements.as_mut_ptr().cast(), len: elements.len() }
    }

    /// How many places there are.
    #[cfg_attr(not(unoptimized), inline(always))]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are none.
    #[cfg_attr(not(unoptimized), inline(always))]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The first place.
    #[cfg_attr(not(unoptimized), inline(always))]
    pub fn start(&self) -> *mut T {
        self.start
    }
}
