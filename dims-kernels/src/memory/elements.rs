//! Elements that are borrowed, as plans and kernels get them: where they begin.
//!
//! A plan gets the sizes and strides of each operand's axes, and makes one row of strides along its loops of them. A kernel reads the operand
//! along that row. The invariant of all plans is that the row reaches only elements that the axes reach: sizes are checked when operands
//! meet, and from there on loops are only merged, split and put in order. What combines elements with a row, or with sizes and strides of another kind, is
//! an `unsafe` function, whose caller promises that; builds with debug assertions check it at each row.

use crate::memory::axes::{Axis, is_within};
use core::any::TypeId;
use core::marker::PhantomData;
use core::mem::MaybeUninit;

/// What can be reached from the element at the origin, in elements: how far back, and how far on.
#[cfg(debug_assertions)]
#[derive(Clone, Copy, Debug, PartialEq)]
struct Reach {
    least: i128,
    most: i128,
}

#[cfg(debug_assertions)]
impl Reach {
    /// What axes reach; nothing if one is empty.
    fn of(axes: impl Iterator<Item = (usize, isize)>) -> Option<Self> {
        let mut reach = Reach { least: 0, most: 0 };
        for (size, stride) in axes {
            let far = (size.checked_sub(1)? as i128).saturating_mul(stride as i128);
            reach.least = reach.least.saturating_add(far.min(0));
            reach.most = reach.most.saturating_add(far.max(0));
        }
        Some(reach)
    }

    /// The same, compiled here.
    fn of_axes(named: &[Axis], positional: &[Axis]) -> Option<Self> {
        Reach::of(named.iter().chain(positional).map(Axis::parts))
    }

    /// The same of loops, compiled here.
    fn of_loops(sizes: &[usize], strides: &[isize]) -> Option<Self> {
        Reach::of(sizes.iter().copied().zip(strides.iter().copied()))
    }

    /// Whether loops from `offset` on stay within.
    fn covers(own: Option<Self>, offset: isize, loops: Option<Self>) -> bool {
        let Some(loops) = loops else { return true };
        own.is_some_and(|own| {
            own.least <= loops.least + offset as i128 && loops.most + offset as i128 <= own.most
        })
    }
}

/// Elements along axes, whose reach is checked in builds with debug assertions.
pub trait Reaches {
    /// Panics, in builds with debug assertions, if loops from `offset` on leave the axes.
    fn assert_reach(&self, offset: isize, sizes: &[usize], strides: &[isize]);
}

/// What elements reach, without their type, for checks in builds with debug assertions.
#[derive(Clone, Copy)]
pub(crate) struct Reached {
    #[cfg(debug_assertions)]
    reach: Option<Reach>,
}

impl Reached {
    /// The reach with a further axis.
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
            /// If no axis is empty, then for every position of the axes `start` offset by the strides is a valid element for `'a`, which may be
            /// accessed as the type says.
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

            /// The same elements from another one on, which is `offset` away. (Where that is none of them, no axes reach it, and none is read: what reads
            /// is `unsafe`.)
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

            /// What the axes reach.
            #[cfg_attr(not(unoptimized), inline(always))]
            pub(crate) fn reached(&self) -> Reached {
                Reached {
                    #[cfg(debug_assertions)]
                    reach: self.reach,
                }
            }

            /// Panics, in builds with debug assertions, if other axes leave what these reach.
            #[cfg_attr(not(unoptimized), inline(always))]
            pub fn assert_axes(&self, named: &[Axis], positional: &[Axis]) {
                let _ = (named, positional);
                // (Of what has an empty axis an index may select, which then fails as it is read.)
                #[cfg(debug_assertions)]
                if self.reach.is_some() {
                    let loops = Reach::of_axes(named, positional);
                    assert!(Reach::covers(self.reach, 0, loops), "axes stay within others: {:?}", self.reach);
                }
            }

            /// The same, for loops that are each a size and a stride.
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
    /// Elements that are borrowed for `'a`, along axes that the holder knows: the one at the origin.
    Elements, *const T, &'a [T];
    /// Elements that are borrowed exclusively for `'a`, along axes that the holder knows: the one at the origin.
    ElementsMut, *mut T, &'a mut [T];
}

impl<T> Clone for Elements<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<T> Copy for Elements<'_, T> {}

// SAFETY: these are shared borrows of elements.
unsafe impl<T: Sync> Send for Elements<'_, T> {}
// SAFETY: all that a shared one allows is to copy it, and it is a shared borrow of elements.
unsafe impl<T: Sync> Sync for Elements<'_, T> {}

impl<T> core::fmt::Debug for Elements<'_, T> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        self.start.fmt(f)
    }
}

impl<'a, T> Elements<'a, T> {
    /// All elements of a slice, one after the other.
    #[cfg_attr(not(unoptimized), inline(always))]
    pub fn of_slice(slice: &'a [T]) -> Self {
        // SAFETY: neighbours in a slice lie one apart.
        unsafe { Elements::new(slice.as_ptr(), &[Axis::new(slice.len(), 1)], &[]) }
    }

    /// Elements from a start, as far as `reached` permits.
    ///
    /// # Safety
    ///
    /// The start and the reach are those of elements of this type that are borrowed for `'a`.
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

    /// The element at the origin.
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

    /// The element that lies `offset` behind the one at the origin.
    ///
    /// # Safety
    ///
    /// The axes reach it.
    #[cfg_attr(not(unoptimized), inline(always))]
    pub unsafe fn nth(self, offset: isize) -> T
    where
        T: Copy,
    {
        self.assert_reach(offset, &[1], &[1]);
        // SAFETY: an element that the axes reach is valid.
        unsafe { *self.start.wrapping_offset(offset) }
    }

    /// `len` of the elements that lie one after the other, from `offset` on.
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
        // SAFETY: the axes reach the elements, so they are valid for the borrow of the memory.
        unsafe { core::slice::from_raw_parts(self.start.wrapping_offset(offset), len) }
    }
}

impl<'a, T> ElementsMut<'a, T> {
    /// Elements along loops.
    ///
    /// # Safety
    ///
    /// For every position of the loops `start` offset by the strides is a valid element for `'a`, and nothing else accesses it.
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

    /// The element at the origin.
    #[cfg_attr(not(unoptimized), inline(always))]
    pub fn as_mut_ptr(&mut self) -> *mut T {
        self.start
    }

    /// The same elements, for a while.
    #[cfg_attr(not(unoptimized), inline(always))]
    pub fn reborrow(&mut self) -> ElementsMut<'_, T> {
        ElementsMut {
            start: self.start,
            #[cfg(debug_assertions)]
            reach: self.reach,
            memory: PhantomData,
        }
    }

    /// The first `len` elements, which lie one after the other.
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

/// Neighbouring slots of an output, which are written and never read: they may be uninitialised.
pub struct OutputSlots<'a, T> {
    all: &'a mut [MaybeUninit<T>],
    /// How many slots have been written, if someone counts.
    given: Option<&'a mut usize>,
}

impl<'a, T: Copy> From<&'a mut [T]> for OutputSlots<'a, T> {
    #[cfg_attr(not(unoptimized), inline(always))]
    fn from(all: &'a mut [T]) -> Self {
        // SAFETY: `MaybeUninit` is laid out as what it holds, and nothing takes a value away from these.
        let all = unsafe { &mut *(core::ptr::from_mut(all) as *mut [MaybeUninit<T>]) };
        OutputSlots { all, given: None }
    }
}

impl<'a, T: Copy> OutputSlots<'a, T> {
    /// Slots in new memory; counts in `given` how many are written.
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

    /// The same slots, for a while.
    #[cfg_attr(not(unoptimized), inline(always))]
    pub fn reborrow(&mut self) -> OutputSlots<'_, T> {
        OutputSlots { all: self.all, given: self.given.as_deref_mut() }
    }

    /// The slots from `first` on.
    ///
    /// # Panics
    ///
    /// If there are fewer.
    #[cfg_attr(not(unoptimized), inline(always))]
    pub fn behind(self, first: usize) -> Self {
        OutputSlots { all: &mut self.all[first..], given: self.given }
    }

    /// Writes values to the slots from `first` on.
    ///
    /// # Panics
    ///
    /// If there are fewer slots.
    #[cfg_attr(not(unoptimized), inline(always))]
    pub fn put(&mut self, first: usize, values: &[T]) {
        self.count(values.len());
        // SAFETY: `MaybeUninit` is laid out as what it holds, and a value is one that there may be.
        let values = unsafe { &*(core::ptr::from_ref(values) as *const [MaybeUninit<T>]) };
        self.all[first..][..values.len()].copy_from_slice(values);
    }

    /// The origin of loops whose positions are slots: `offset` elements behind the first slot. The caller writes each position.
    ///
    /// # Panics
    ///
    /// If they reach others.
    #[inline]
    pub fn reached(mut self, offset: usize, sizes: &[usize], strides: &[isize]) -> *mut MaybeUninit<T> {
        let loops = sizes.iter().copied().zip(strides.iter().copied());
        assert!(is_within(self.all.len(), offset as i128, loops), "every place lies in the memory");
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
        // SAFETY: two columns of three, from the last element of the first on.
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
