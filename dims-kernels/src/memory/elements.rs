//! Borrowed elements, as plans and kernels get them: a pointer to the origin, which is the element
//! with index 0 along every axis.
//!
//! A plan gets the sizes and strides of each operand's axes. From these it derives a row for each
//! operand: one stride for each of the plan's loops. A kernel steps through the operand with these
//! strides. The invariant of all plans is that a row reaches only elements that the axes reach:
//! sizes are checked when operands are combined, and afterwards loops are only merged, split and
//! reordered. Functions that read or write elements along a row, or along other sizes and strides,
//! are `unsafe`: the caller promises the invariant. It is checked if debug assertions are enabled.

use crate::memory::axes::{Axis, is_within};
use core::any::TypeId;
use core::marker::PhantomData;
use core::mem::MaybeUninit;

/// The range of elements that can be reached from the origin: the least and the greatest offset.
#[cfg(debug_assertions)]
#[derive(Clone, Copy, Debug, PartialEq)]
struct Reach {
    least: i128,
    most: i128,
}

#[cfg(debug_assertions)]
impl Reach {
    /// The range that axes reach; `None` if one of them is empty.
    fn of(axes: impl Iterator<Item = (usize, isize)>) -> Option<Self> {
        let mut reach = Reach { least: 0, most: 0 };
        for (size, stride) in axes {
            let far = (size.checked_sub(1)? as i128).saturating_mul(stride as i128);
            reach.least = reach.least.saturating_add(far.min(0));
            reach.most = reach.most.saturating_add(far.max(0));
        }
        Some(reach)
    }

    fn of_axes(named: &[Axis], positional: &[Axis]) -> Option<Self> {
        Reach::of(named.iter().chain(positional).map(Axis::parts))
    }

    fn of_loops(sizes: &[usize], strides: &[isize]) -> Option<Self> {
        Reach::of(sizes.iter().copied().zip(strides.iter().copied()))
    }

    /// Whether loops that start at `offset` stay within the range `own`.
    fn covers(own: Option<Self>, offset: isize, loops: Option<Self>) -> bool {
        let Some(loops) = loops else { return true };
        own.is_some_and(|own| {
            own.least <= loops.least + offset as i128 && loops.most + offset as i128 <= own.most
        })
    }
}

/// Elements along axes, checked in builds with debug assertions.
pub trait Reaches {
    /// In builds with debug assertions, panics if loops that start at `offset` leave the range of
    /// the axes.
    fn assert_reach(&self, offset: isize, sizes: &[usize], strides: &[isize]);
}

/// The range of elements without their type, for checks in builds with debug assertions.
#[derive(Clone, Copy)]
pub(crate) struct Reached {
    #[cfg(debug_assertions)]
    reach: Option<Reach>,
}

impl Reached {
    /// The range with a further axis.
    #[cfg(feature = "std")]
    pub(crate) fn along(self, size: usize, stride: isize) -> Self {
        let _ = (size, stride);
        Reached {
            #[cfg(debug_assertions)]
            reach: self.reach.zip(Reach::of(core::iter::once((size, stride)))).map(|(own, other)| Reach {
                least: own.least.saturating_add(other.least),
                most: own.most.saturating_add(other.most),
            }),
        }
    }
}

impl Reaches for Reached {
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn assert_reach(&self, offset: isize, sizes: &[usize], strides: &[isize]) {
        let _ = (offset, sizes, strides);
        #[cfg(debug_assertions)]
        {
            let loops = Reach::of_loops(sizes, strides);
            assert!(
                Reach::covers(self.reach, offset, loops),
                "loops stay within what the axes reach: {:?}",
                self.reach
            );
        }
    }
}

macro_rules! elements {
    ($($(#[$doc:meta])* $name:ident, $pointer:ty, $borrow:ty;)*) => {$(
        $(#[$doc])*
        pub struct $name<'a, T> {
            start: $pointer,
            #[cfg(debug_assertions)]
            reach: Option<Reach>,
            memory: PhantomData<$borrow>,
        }

        impl<'a, T> $name<'a, T> {
            /// Elements along axes.
            ///
            /// # Safety
            ///
            /// If no axis is empty, then for every position of the axes, `start` offset by the
            /// strides is a valid element for `'a`, which may be accessed as the type of the
            /// pointer allows.
            #[cfg_attr(not(unoptimized), inline(always))]
            pub unsafe fn new(start: $pointer, named: &[Axis], positional: &[Axis]) -> Self {
                let _ = (named, positional);
                $name {
                    start,
                    #[cfg(debug_assertions)]
                    reach: Reach::of_axes(named, positional),
                    memory: PhantomData,
                }
            }

            /// The same elements with the origin moved by `offset`. The new origin may be out of
            /// range; it must not be read then.
            #[cfg_attr(not(unoptimized), inline(always))]
            pub fn moved(self, offset: isize) -> Self {
                $name {
                    start: self.start.wrapping_offset(offset),
                    #[cfg(debug_assertions)]
                    reach: self.reach.map(|Reach { least, most }| Reach {
                        least: least - offset as i128,
                        most: most - offset as i128,
                    }),
                    memory: PhantomData,
                }
            }

            #[cfg_attr(not(unoptimized), inline(always))]
            pub(crate) fn reached(&self) -> Reached {
                Reached {
                    #[cfg(debug_assertions)]
                    reach: self.reach,
                }
            }

            /// In builds with debug assertions, panics if the given axes leave the range of these
            /// elements, unless that range is empty.
            #[cfg_attr(not(unoptimized), inline(always))]
            pub fn assert_axes(&self, named: &[Axis], positional: &[Axis]) {
                let _ = (named, positional);
                // Operations that look up elements by index accept an array with an empty axis:
                // then every index is out of range, which is an error when it is read.
                #[cfg(debug_assertions)]
                if self.reach.is_some() {
                    let loops = Reach::of_axes(named, positional);
                    assert!(Reach::covers(self.reach, 0, loops), "axes stay within others: {:?}", self.reach);
                }
            }

            /// In builds with debug assertions, panics if loops that start at `offset`, given as
            /// sizes and strides, leave the range of these elements.
            #[cfg_attr(not(unoptimized), inline(always))]
            pub fn assert_loops(&self, offset: isize, loops: impl Iterator<Item = (usize, isize)>) {
                let _ = (offset, &loops);
                #[cfg(debug_assertions)]
                assert!(Reach::covers(self.reach, offset, Reach::of(loops)), "loops stay within what the axes reach: {:?}", self.reach);
            }
        }

        impl<T> Reaches for $name<'_, T> {
            #[cfg_attr(not(unoptimized), inline(always))]
            fn assert_reach(&self, offset: isize, sizes: &[usize], strides: &[isize]) {
                let _ = (offset, sizes, strides);
                #[cfg(debug_assertions)]
                self.reached().assert_reach(offset, sizes, strides);
            }
        }
    )*};
}

elements! {
    /// A pointer to the origin of elements that are borrowed for `'a`. The holder knows the axes of
    /// the elements.
    Elements, *const T, &'a [T];
    /// A pointer to the origin of elements that are borrowed exclusively for `'a`. The holder knows
    /// the axes of the elements.
    ElementsMut, *mut T, &'a mut [T];
}

impl<T> Clone for Elements<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<T> Copy for Elements<'_, T> {}

// SAFETY: this is a shared borrow of elements.
unsafe impl<T: Sync> Send for Elements<'_, T> {}
// SAFETY: a shared reference only allows copying this shared borrow of elements.
unsafe impl<T: Sync> Sync for Elements<'_, T> {}

impl<T> core::fmt::Debug for Elements<'_, T> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        self.start.fmt(f)
    }
}

impl<'a, T> Elements<'a, T> {
    /// All elements of a slice, in order.
    #[cfg_attr(not(unoptimized), inline(always))]
    pub fn of_slice(slice: &'a [T]) -> Self {
        // SAFETY: adjacent elements of a slice are one apart.
        unsafe { Elements::new(slice.as_ptr(), &[Axis::new(slice.len(), 1)], &[]) }
    }

    /// Elements from `start`, within the range `reached`.
    ///
    /// # Safety
    ///
    /// The start and the range belong to elements of this type that are borrowed for `'a`.
    #[inline]
    #[cfg(feature = "std")]
    pub(crate) unsafe fn reaching(start: *const T, reached: Reached) -> Self {
        let _ = reached;
        Elements {
            start,
            #[cfg(debug_assertions)]
            reach: reached.reach,
            memory: PhantomData,
        }
    }

    /// A pointer to the origin.
    #[cfg_attr(not(unoptimized), inline(always))]
    pub fn as_ptr(self) -> *const T {
        self.start
    }

    /// The same elements as `W`, if that is their type.
    pub fn same<W: 'static>(self) -> Option<Elements<'a, W>>
    where
        T: 'static,
    {
        (TypeId::of::<T>() == TypeId::of::<W>()).then(|| Elements {
            start: self.start.cast(),
            #[cfg(debug_assertions)]
            reach: self.reach,
            memory: PhantomData,
        })
    }

    /// The element at `offset` from the origin.
    ///
    /// # Safety
    ///
    /// The axes reach the element.
    #[cfg_attr(not(unoptimized), inline(always))]
    pub unsafe fn nth(self, offset: isize) -> T
    where
        T: Copy,
    {
        self.assert_reach(offset, &[1], &[1]);
        // SAFETY: the axes reach the element, so it is valid.
        unsafe { *self.start.wrapping_offset(offset) }
    }

    /// `len` contiguous elements, starting at `offset`.
    ///
    /// # Safety
    ///
    /// The axes reach all of them.
    #[cfg_attr(not(unoptimized), inline(always))]
    pub unsafe fn line(self, offset: isize, len: usize) -> &'a [T] {
        self.assert_reach(offset, &[len], &[1]);
        if len == 0 {
            return &[];
        }
        // SAFETY: the axes reach the elements, so they are valid while the memory is borrowed.
        unsafe { core::slice::from_raw_parts(self.start.wrapping_offset(offset), len) }
    }
}

impl<'a, T> ElementsMut<'a, T> {
    /// Elements along loops.
    ///
    /// # Safety
    ///
    /// For every position of the loops, `start` offset by the strides is a valid element for `'a`,
    /// and nothing else accesses it.
    #[inline]
    pub unsafe fn along(start: *mut T, sizes: &[usize], strides: &[isize]) -> Self {
        let _ = (sizes, strides);
        ElementsMut {
            start,
            #[cfg(debug_assertions)]
            reach: Reach::of_loops(sizes, strides),
            memory: PhantomData,
        }
    }

    /// A pointer to the origin.
    #[cfg_attr(not(unoptimized), inline(always))]
    pub fn as_mut_ptr(&mut self) -> *mut T {
        self.start
    }

    /// The same elements for a shorter lifetime.
    #[cfg_attr(not(unoptimized), inline(always))]
    pub fn reborrow(&mut self) -> ElementsMut<'_, T> {
        ElementsMut {
            start: self.start,
            #[cfg(debug_assertions)]
            reach: self.reach,
            memory: PhantomData,
        }
    }

    /// The first `len` elements, which are contiguous.
    ///
    /// # Safety
    ///
    /// The axes reach all of them.
    #[cfg_attr(not(unoptimized), inline(always))]
    pub unsafe fn line(self, len: usize) -> &'a mut [T] {
        self.assert_reach(0, &[len], &[1]);
        if len == 0 {
            return &mut [];
        }
        // SAFETY: the axes reach the elements, which are borrowed exclusively.
        unsafe { core::slice::from_raw_parts_mut(self.start, len) }
    }
}

/// Adjacent slots of an output. They are written and never read, so they may be uninitialized.
pub struct OutputSlots<'a, T> {
    all: &'a mut [MaybeUninit<T>],
    /// The number of slots written so far, if it is counted.
    given: Option<&'a mut usize>,
}

impl<'a, T: Copy> From<&'a mut [T]> for OutputSlots<'a, T> {
    #[cfg_attr(not(unoptimized), inline(always))]
    fn from(all: &'a mut [T]) -> Self {
        // SAFETY: `MaybeUninit<T>` has the layout of `T`, and no slot is ever made uninitialized.
        let all = unsafe { &mut *(core::ptr::from_mut(all) as *mut [MaybeUninit<T>]) };
        OutputSlots { all, given: None }
    }
}

impl<'a, T: Copy> OutputSlots<'a, T> {
    /// Slots in new memory. Counts in `given` how many have been written.
    #[cfg_attr(not(unoptimized), inline(always))]
    pub fn counted(all: &'a mut [MaybeUninit<T>], given: &'a mut usize) -> Self {
        OutputSlots { all, given: Some(given) }
    }

    #[cfg_attr(not(unoptimized), inline(always))]
    fn count(&mut self, more: usize) {
        if let Some(given) = &mut self.given {
            **given += more;
        }
    }

    /// The same slots for a shorter lifetime.
    #[cfg_attr(not(unoptimized), inline(always))]
    pub fn reborrow(&mut self) -> OutputSlots<'_, T> {
        OutputSlots { all: self.all, given: self.given.as_deref_mut() }
    }

    /// The slots from `first` on.
    ///
    /// # Panics
    ///
    /// If there are fewer than `first` slots.
    #[cfg_attr(not(unoptimized), inline(always))]
    pub fn starting_at(self, first: usize) -> Self {
        OutputSlots { all: &mut self.all[first..], given: self.given }
    }

    /// Writes values to the slots from `first` on.
    ///
    /// # Panics
    ///
    /// If there are not enough slots.
    #[cfg_attr(not(unoptimized), inline(always))]
    pub fn put(&mut self, first: usize, values: &[T]) {
        // SAFETY: `MaybeUninit<T>` has the layout of `T`, and initialized values are valid for it.
        let slots = unsafe { &*(core::ptr::from_ref(values) as *const [MaybeUninit<T>]) };
        self.all[first..][..values.len()].copy_from_slice(slots);
        self.count(values.len());
    }

    /// A pointer to the origin of loops over slots, `offset` slots after the first. The caller must
    /// write each position.
    ///
    /// # Panics
    ///
    /// If the loops leave the slots.
    #[inline]
    pub fn reached(mut self, offset: usize, sizes: &[usize], strides: &[isize]) -> *mut MaybeUninit<T> {
        let loops = sizes.iter().copied().zip(strides.iter().copied());
        assert!(is_within(self.all.len(), offset as i128, loops), "the loops stay within the memory");
        self.count(sizes.iter().product());
        self.all.as_mut_ptr().wrapping_add(offset)
    }
}

#[cfg(all(test, debug_assertions))]
mod tests {
    use super::*;

    #[test]
    fn loops_that_leave_the_elements_are_noticed() {
        let data = [0, 1, 2, 3, 4, 5];
        // SAFETY: the axes reach the six elements of `data`: two columns, each from its last
        // element to its first.
        let elements = unsafe { Elements::new(&data[4], &[Axis::new(3, -2), Axis::new(2, 1)], &[]) };
        elements.assert_reach(0, &[2, 3], &[1, -2]);
        elements.assert_reach(1, &[3], &[-2]);
        elements.assert_reach(0, &[0, 9], &[9, 9]);
        elements.moved(-4).assert_reach(0, &[6], &[1]);
        for (offset, size, stride) in [(2, 1, 0), (0, 4, -2), (1, 2, 1), (0, usize::MAX, 1)] {
            let refused = std::panic::catch_unwind(|| elements.assert_reach(offset, &[size], &[stride]));
            assert!(refused.is_err(), "{offset} {size} {stride}");
        }
    }
}
