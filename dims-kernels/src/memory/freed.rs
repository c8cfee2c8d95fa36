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
    #[inline(always)]
    pub fn of<U>(elements: &mut [U]) -> Self {
        assert_eq!(
            (size_of::<T>(), align_of::<T>()),
            (size_of::<U>(), align_of::<U>()),
            "elements are of the same type"
        );
        Freed { start: elements.as_mut_ptr().cast(), len: elements.len() }
    }

    /// How many places there are.
    #[inline(always)]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are none.
    #[inline(always)]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The first place.
    #[inline(always)]
    pub fn start(&self) -> *mut T {
        self.start
    }
}
