//! Elements whose type determines their order in memory.

use core::marker::PhantomData;

/// Elements `E` that are contiguous in the order of the dims `L`, and have no other dims.
///
/// If all operands of an expression are packed in one order, and the result is stored in that order
/// without the dims that are reduced, rustc knows the loops except for their lengths.
#[repr(transparent)]
pub struct Packed<E, L>(pub(crate) E, PhantomData<fn() -> L>);

impl<E, L> Packed<E, L> {
    /// Wraps elements that are packed: those of a `Laid`.
    #[cfg_attr(not(unoptimized), inline(always))]
    pub(crate) fn new(elements: E) -> Self {
        Packed(elements, PhantomData)
    }

    /// Like [`new`](Packed::new), for a reference to the elements.
    #[cfg_attr(not(unoptimized), inline(always))]
    pub(crate) fn reference(elements: &E) -> &Self {
        // SAFETY: `Packed` is `repr(transparent)` over `E` (the other field has no size and an
        // alignment of 1), so a reference to one is a reference to the other, for the same
        // lifetime.
        unsafe { &*core::ptr::from_ref(elements).cast::<Self>() }
    }
}
