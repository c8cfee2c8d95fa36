//! Memory that a tensor no longer needs.

/// The memory of a tensor's elements, which the tensor owns but no longer needs.
pub struct Freed<T> {
    start: *mut T,
    len: usize,
}

impl<T> Freed<T> {
    /// The memory of these elements.
    ///
    /// # Safety
    ///
    /// The elements have the type `T`, and remain valid while the returned `Freed` is used.
    /// Meanwhile, only the routine that receives the `Freed` accesses the elements. This routine
    /// runs kernels that read an element only at the position that they are about to write, or that
    /// read none of the elements.
    #[cfg_attr(not(unoptimized), inline(always))]
    pub unsafe fn of<U>(elements: &mut [U]) -> Self {
        assert_eq!(
            (size_of::<T>(), align_of::<T>()),
            (size_of::<U>(), align_of::<U>()),
            "elements are of the same type"
        );
        Freed { start: elements.as_mut_ptr().cast(), len: elements.len() }
    }

    /// The number of elements.
    #[cfg_attr(not(unoptimized), inline(always))]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are no elements.
    #[cfg_attr(not(unoptimized), inline(always))]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// A pointer to the first element.
    #[cfg_attr(not(unoptimized), inline(always))]
    pub fn start(&self) -> *mut T {
        self.start
    }
}
