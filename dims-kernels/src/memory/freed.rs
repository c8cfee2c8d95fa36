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

    /// The places, which are `len`.
    ///
    /// # Panics
    ///
    /// If they are not.
    #[inline(always)]
    pub fn places(&self, len: usize) -> *mut T {
        assert_eq!(self.len, len, "a place for each element");
        self.start
    }

    /// The first place.
    #[inline(always)]
    pub fn start(&self) -> *mut T {
        self.start
    }
}
