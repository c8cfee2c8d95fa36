//! Fixed-size blocks of axes, for sets of dims and for ranks.
//!
//! The axes of a set with an unknown rest (`Rest<B>`) are those of the named dims followed by those
//! of `B`: [`Cons`] puts one block after another.

pub use kernels::memory::axes::Axis;

/// The one axis of a dim. Macros write this name, because rustc would check an array length as a
/// separate expression.
pub type OneAxis = [Axis; 1];

/// A fixed number of axes that can be seen as a slice.
///
/// # Safety
///
/// The type must consist of exactly [`AxisBlock::LEN`] values of [`Axis`], one after the other,
/// with no other bytes, and have the alignment of [`Axis`].
pub unsafe trait AxisBlock: Copy + Send + Sync + 'static {
    /// The number of axes.
    const LEN: usize;

    /// A block of `LEN` copies of `axis`.
    fn filled(axis: Axis) -> Self;

    /// The axes in order.
    #[cfg_attr(not(unoptimized), inline(always))]
    fn as_slice(&self) -> &[Axis] {
        // A pointer rather than `from_raw_parts`, which checks it in each unoptimized call.
        // SAFETY: an implementor consists of exactly `LEN` axes without padding and is aligned like
        // them, so `self` is valid for reading them, and the slice borrows `self`.
        unsafe { &*core::ptr::slice_from_raw_parts((self as *const Self).cast(), Self::LEN) }
    }

    /// The axes in order, mutable.
    #[cfg_attr(not(unoptimized), inline(always))]
    fn as_mut_slice(&mut self) -> &mut [Axis] {
        // SAFETY: an implementor consists of exactly `LEN` axes without padding and is aligned like
        // them, so `self` is valid for reading and writing them. The borrow of `self` is exclusive,
        // and any axes make a valid block.
        unsafe { &mut *core::ptr::slice_from_raw_parts_mut((self as *mut Self).cast(), Self::LEN) }
    }
}

// SAFETY: an array of `N` axes is `N` axes, with the alignment of one.
unsafe impl<const N: usize> AxisBlock for [Axis; N] {
    const LEN: usize = N;

    #[cfg_attr(not(unoptimized), inline(always))]
    fn filled(axis: Axis) -> Self {
        [axis; N]
    }
}

/// Two blocks, one after the other.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct Cons<H, T>(H, T);

// SAFETY: both blocks have the alignment of `Axis`, and their sizes are multiples of it. So
// `repr(C)` puts `T` directly after `H`, without padding, and the pair has the same alignment.
unsafe impl<H: AxisBlock, T: AxisBlock> AxisBlock for Cons<H, T> {
    const LEN: usize = H::LEN + T::LEN;

    #[cfg_attr(not(unoptimized), inline(always))]
    fn filled(axis: Axis) -> Self {
        Cons(H::filled(axis), T::filled(axis))
    }
}

/// The axes of contiguous elements. `order` lists the axes from the outermost to the innermost;
/// `sizes` has their sizes in that order.
///
/// # Panics
///
/// If there is not one size for each axis, a size is `usize::MAX`, the sizes do not multiply to
/// `len`, or `order` does not name each axis once.
pub(crate) fn in_order<X: AxisBlock>(len: usize, order: &[usize], sizes: &[usize]) -> X {
    let mut axes = X::filled(Axis::new(usize::MAX, 0));
    assert!(order.len() == X::LEN && sizes.len() == X::LEN, "one size for each axis");
    let mut step: usize = 1;
    for (&at, &size) in order.iter().zip(sizes).rev() {
        let axis = &mut axes.as_mut_slice()[at];
        assert!(axis.size == usize::MAX && size != usize::MAX, "each axis once");
        *axis = Axis::new(size, step as isize);
        step = step.saturating_mul(size);
    }
    assert_eq!(step, len, "the sizes are the shape of the data");
    axes
}

/// Stands for a new axis in the list that [`permuted`] takes.
pub(crate) const ABSENT: usize = usize::MAX;

/// The same axes in another order: the axis `at` is `axes[from[at]]`. Where `from[at]` is
/// [`ABSENT`], it is a broadcast axis of size `sizes(at)`.
///
/// # Panics
///
/// If `from` does not name each axis once.
#[inline]
pub(crate) fn permuted<X: AxisBlock>(axes: &[Axis], from: &[usize], sizes: impl Fn(usize) -> usize) -> X {
    let mut out = X::filled(Axis::default());
    let mut taken: u64 = 0;
    for (at, axis) in out.as_mut_slice().iter_mut().enumerate() {
        *axis = match from[at] {
            ABSENT => Axis::new(sizes(at), 0),
            from => {
                assert!(taken >> from & 1 == 0, "each axis once");
                taken |= 1 << from;
                axes[from]
            }
        };
    }
    assert_eq!(taken.count_ones() as usize, axes.len(), "each axis is taken");
    out
}
