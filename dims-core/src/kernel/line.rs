//! A line that is worked on: neighbours in memory, and where what is made of them goes.

use super::norm::LANES;
use core::marker::PhantomData;
use core::mem::MaybeUninit;

/// Elements that are neighbours, and as many places for results, which can be the elements' own.
pub struct Line<'l, T> {
    from: *const T,
    to: *mut T,
    len: usize,
    memory: PhantomData<&'l mut [T]>,
}

impl<'l, T: Copy> Line<'l, T> {
    /// A line of `len` elements.
    ///
    /// # Safety
    ///
    /// For `'l`, `from` is valid for reads and `to` for writes of so many elements, and nothing else writes to the former or accesses the
    /// latter. Both are the same place, or do not overlap.
    #[inline(always)]
    pub unsafe fn new(from: *const T, to: *mut T, len: usize) -> Self {
        Line { from, to, len, memory: PhantomData }
    }

    /// A line whose results go where its elements were.
    #[inline(always)]
    pub fn in_place(elements: &'l mut [T]) -> Self {
        let to = elements.as_mut_ptr();
        Line { from: to, to, len: elements.len(), memory: PhantomData }
    }

    /// The elements; the results, if they have been written in their place.
    #[inline(always)]
    pub fn elements(&self) -> &[T] {
        // SAFETY: by the contract of `new`.
        unsafe { core::slice::from_raw_parts(self.from, self.len) }
    }

    /// Writes what `f` makes of each element, and returns the results.
    #[inline(always)]
    pub fn map(&mut self, f: impl Fn(T) -> T) -> &mut [T] {
        // SAFETY: by the contract of `new`.
        let places = unsafe { core::slice::from_raw_parts_mut(self.to.cast::<MaybeUninit<T>>(), self.len) };
        if core::ptr::eq(self.from, self.to) {
            for place in &mut *places {
                // SAFETY: the place is that of an element.
                place.write(f(unsafe { place.assume_init() }));
            }
        } else {
            for (place, &value) in places.iter_mut().zip(self.elements()) {
                place.write(f(value));
            }
        }
        // SAFETY: by the contract of `new`; all were just written.
        unsafe { core::slice::from_raw_parts_mut(self.to, self.len) }
    }

    /// As [`map`](Line::map), with two more numbers for each element.
    ///
    /// # Panics
    ///
    /// If there are not as many of them as elements.
    #[inline(always)]
    pub fn map_with(&mut self, first: &[T], second: &[T], f: impl Fn(T, T, T) -> T) {
        assert!(first.len() == self.len && second.len() == self.len, "as many numbers as elements");
        // SAFETY: by the contract of `new`.
        let places = unsafe { core::slice::from_raw_parts_mut(self.to.cast::<MaybeUninit<T>>(), self.len) };
        let others = first.iter().zip(second);
        if core::ptr::eq(self.from, self.to) {
            for (place, (&first, &second)) in places.iter_mut().zip(others) {
                // SAFETY: the place is that of an element.
                place.write(f(unsafe { place.assume_init() }, first, second));
            }
        } else {
            for ((place, &value), (&first, &second)) in places.iter_mut().zip(self.elements()).zip(others) {
                place.write(f(value, first, second));
            }
        }
    }

    /// As [`map`](Line::map), for what takes long. The number that `f` is handed with an element is less than [`LANES`], and goes around: for as
    /// many sums on the way.
    #[inline(always)]
    pub fn map_in_lanes(&mut self, mut f: impl FnMut(usize, T) -> T) -> &mut [T] {
        let whole = self.len - self.len % LANES;
        for at in (0..whole).step_by(LANES) {
            // Elements are read before their results are written, so that the compiler need not know whether their places are the same.
            // SAFETY: by the contract of `new`: these elements lie within the line.
            unsafe {
                let mut some = self.from.add(at).cast::<[T; LANES]>().read();
                for (lane, value) in some.iter_mut().enumerate() {
                    *value = f(lane, *value);
                }
                self.to.add(at).cast::<[T; LANES]>().write(some);
            }
        }
        for at in whole..self.len {
            // SAFETY: as above.
            unsafe { self.to.add(at).write(f(at - whole, *self.from.add(at))) };
        }
        // SAFETY: by the contract of `new`; all were just written.
        unsafe { core::slice::from_raw_parts_mut(self.to, self.len) }
    }
}
