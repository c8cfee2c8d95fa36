//! Elements whose type says in which order they lie.

use core::marker::PhantomData;

/// Elements `E` in memory that lie contiguously in the order of the dims `L`, which are all that they have.
///
/// Where all operands of an expression are such, in one order, and this is the order in which the result will lie or its lines be reduced,
/// its loops are known to rustc but for their lengths.
#[repr(transparent)]
pub struct Packed<E, L>(pub(crate) E, PhantomData<fn() -> L>);

impl<E, L> Packed<E, L> {
    /// Elements that lie so. (They are those of a `Laid`.)
    #[cfg_attr(not(unoptimized), inline(always))]
    pub(crate) fn new(elements: E) -> Self {
        Packed(elements, PhantomData)
    }

    /// The same, of elements that stay where they are.
    #[cfg_attr(not(unoptimized), inline(always))]
    pub(crate) fn reference(elements: &E) -> &Self {
        // SAFETY: `Packed` is `repr(transparent)` over `E` (the other field has no size and an alignment of 1), so a reference to one is a
        // reference to the other, for the same lifetime.
        unsafe { &*core::ptr::from_ref(elements).cast::<Self>() }
    }
}
