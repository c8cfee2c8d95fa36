//! Elements in memory that lie one after the other, for code of this crate that has compared their axes.
//!
//! Nothing outside of this crate can call these functions. Each caller says why the axes reach the elements.

use kernels::memory::elements::{Elements, ElementsMut};

/// The element `offset` behind the one at the origin, which the axes must reach.
#[inline(always)]
pub(crate) fn nth<T: Copy>(elements: Elements<'_, T>, offset: isize) -> T {
    // SAFETY: expressions call this for positions of a line that all operands have, as the caller of `Expr::nth` has checked.
    unsafe { elements.nth(offset) }
}

/// The `len` elements from `offset` on, which the axes must reach.
#[inline(always)]
pub(crate) fn line<T>(elements: Elements<'_, T>, offset: isize, len: usize) -> &[T] {
    // SAFETY: callers have seen that the sizes and strides of the axes are those of so many neighbours.
    unsafe { elements.line(offset, len) }
}

/// The first `len` elements, which the axes must reach.
#[inline(always)]
pub(crate) fn line_mut<T>(elements: ElementsMut<'_, T>, len: usize) -> &mut [T] {
    // SAFETY: callers have seen that the sizes and strides of the axes are those of so many neighbours.
    unsafe { elements.line(len) }
}
