//! A line: contiguous elements in memory, and the slots for their results.

use crate::load::prefetch::PrefetchStream;
use crate::reduce::fold::{LANES, LaneVector, VECTOR, flat, lanes};
use crate::scalar::{Num, Real};
use core::marker::PhantomData;
use core::mem::MaybeUninit;

/// Contiguous elements, and as many slots for results, which can be the elements themselves.
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
    /// For `'l`, `from` is valid for reads and `to` for writes of this many elements. Nothing else
    /// writes to `from` or accesses `to`. The pointers are equal, or the elements and the slots do
    /// not overlap.
    #[cfg_attr(not(unoptimized), inline(always))]
    pub unsafe fn new(from: *const T, to: *mut T, len: usize) -> Self {
        Line { from, to, len, memory: PhantomData }
    }

    /// A line whose results replace its elements.
    #[cfg_attr(not(unoptimized), inline(always))]
    pub fn in_place(elements: &'l mut [T]) -> Self {
        let to = elements.as_mut_ptr();
        Line { from: to, to, len: elements.len(), memory: PhantomData }
    }

    /// The elements, or the results if they have replaced the elements.
    #[cfg_attr(not(unoptimized), inline(always))]
    pub fn elements(&self) -> &[T] {
        // SAFETY: by the contract of `new`.
        unsafe { core::slice::from_raw_parts(self.from, self.len) }
    }

    /// Writes `f` of each element, and returns the results.
    #[cfg_attr(not(unoptimized), inline(always))]
    pub fn map(&mut self, f: impl Fn(T) -> T) -> &mut [T] {
        // SAFETY: by the contract of `new`.
        let places = unsafe { core::slice::from_raw_parts_mut(self.to.cast::<MaybeUninit<T>>(), self.len) };
        if core::ptr::eq(self.from, self.to) {
            for place in &mut *places {
                // SAFETY: the slot holds an element.
                place.write(f(unsafe { place.assume_init() }));
            }
        } else {
            for (place, &value) in places.iter_mut().zip(self.elements()) {
                place.write(f(value));
            }
        }
        // SAFETY: by the contract of `new`; all slots were just written.
        unsafe { core::slice::from_raw_parts_mut(self.to, self.len) }
    }

    /// Like [`map`](Line::map), but also passes the elements of `first` and `second` to `f`, and
    /// does not return the results.
    ///
    /// # Panics
    ///
    /// If `first` or `second` has a different length than the line.
    #[cfg_attr(not(unoptimized), inline(always))]
    pub fn map_with(&mut self, first: &[T], second: &[T], f: impl Fn(T, T, T) -> T) {
        assert!(
            first.len() == self.len && second.len() == self.len,
            "the lengths of the buffers and the line differ"
        );
        // SAFETY: by the contract of `new`.
        let places = unsafe { core::slice::from_raw_parts_mut(self.to.cast::<MaybeUninit<T>>(), self.len) };
        if core::ptr::eq(self.from, self.to) {
            for (place, (&first, &second)) in places.iter_mut().zip(first.iter().zip(second)) {
                // SAFETY: the slot holds an element.
                place.write(f(unsafe { place.assume_init() }, first, second));
            }
        } else {
            let others = first.iter().zip(second);
            for ((place, &value), (&first, &second)) in places.iter_mut().zip(self.elements()).zip(others) {
                place.write(f(value, first, second));
            }
        }
    }

    /// Like [`map`](Line::map), but `f` also updates a sum, and may be expensive. There is a sum
    /// for each of [`LANES`] parts of the line. Returns the results and the sums.
    #[cfg_attr(not(unoptimized), inline(always))]
    pub fn map_and_sum<A: Copy>(&mut self, zero: A, f: impl Fn(T, &mut A) -> T) -> (&mut [T], [A; LANES]) {
        let mut sums = lanes(zero);
        let whole = self.len - self.len % LANES;
        for at in (0..whole).step_by(LANES) {
            for (vector, sums) in sums.iter_mut().enumerate() {
                let at = at + vector * VECTOR;
                // Elements are read before their results are written, so the compiler need not know
                // whether they overlap.
                // SAFETY: by the contract of `new`: these elements are within the line.
                let mut some = unsafe { self.from.add(at).cast::<LaneVector<T>>().read() };
                for (value, sum) in some.iter_mut().zip(sums) {
                    *value = f(*value, sum);
                }
                // SAFETY: by the contract of `new`: these are slots of the line.
                unsafe { self.to.add(at).cast::<LaneVector<T>>().write(some) };
            }
        }
        let mut sums = flat(sums);
        for (at, sum) in (whole..self.len).zip(&mut sums) {
            // SAFETY: by the contract of `new`: the element and its slot are within the line.
            unsafe { self.to.add(at).write(f(*self.from.add(at), sum)) };
        }
        // SAFETY: by the contract of `new`; all slots were just written.
        (unsafe { core::slice::from_raw_parts_mut(self.to, self.len) }, sums)
    }

    /// Processes three lines in one pass, each as long as this one:
    ///
    /// * applies `share`, which also updates a sum, to each of `elements`, and writes the results
    ///   to `shares`;
    /// * folds `next` with `step`, starting from `T::LOWEST`;
    /// * applies `last` to each element of `before`, and writes the results to this line's slots.
    ///
    /// Returns a sum and a result of the fold for each of [`LANES`] parts of the lines.
    ///
    /// # Panics
    ///
    /// If the lines have different lengths, or are shorter than [`LANES`].
    #[cfg_attr(not(unoptimized), inline(always))]
    pub fn overlapped(
        &mut self,
        (elements, shares, share): (&[T], &mut [T], impl Fn(T, &mut T::Wide) -> T),
        (next, step): (&[T], impl Fn(T, T) -> T),
        (before, last): (&[T], impl Fn(T) -> T),
    ) -> ([T::Wide; LANES], [T; LANES])
    where
        T: Real,
    {
        let len = self.len;
        assert!(len >= LANES, "a line of all lanes");
        assert!([elements.len(), shares.len(), next.len(), before.len()] == [len; 4], "equal lengths");
        let (elements, shares) = (elements.as_ptr(), shares.as_mut_ptr());
        let (next, before) = (next.as_ptr(), before.as_ptr());
        let (mut sums, mut found) = (lanes(T::Wide::ZERO), lanes(T::LOWEST));
        let whole = len - len % LANES;
        let (read, written) = (PrefetchStream::from(next), PrefetchStream::from(self.to.cast_const()));
        // SAFETY: all slices have as many elements as the line. By the contract of `new`, the slots
        // of the line are valid for writes.
        unsafe {
            let write = |at: usize| {
                let results = before.add(at).cast::<LaneVector<T>>().read().map(&last);
                self.to.add(at).cast::<LaneVector<T>>().write(results);
            };
            for at in (0..whole).step_by(LANES) {
                read.prefetch_at_distance(at, LANES);
                written.prefetch_at_distance(at, LANES);
                for (vector, (sums, found)) in sums.iter_mut().zip(&mut found).enumerate() {
                    let at = at + vector * VECTOR;
                    let mut values = elements.add(at).cast::<LaneVector<T>>().read();
                    for (value, sum) in values.iter_mut().zip(sums) {
                        *value = share(*value, sum);
                    }
                    shares.add(at).cast::<LaneVector<T>>().write(values);
                    let values = next.add(at).cast::<LaneVector<T>>().read();
                    for (found, value) in found.iter_mut().zip(values) {
                        *found = step(*found, value);
                    }
                    write(at);
                }
            }
            let (mut sums, mut found) = (flat(sums), flat(found));
            for (at, (sum, found)) in (whole..len).zip(sums.iter_mut().zip(&mut found)) {
                shares.add(at).write(share(*elements.add(at), sum));
                *found = step(*found, *next.add(at));
            }
            for at in whole..len {
                self.to.add(at).write(last(*before.add(at)));
            }
            (sums, found)
        }
    }

    /// Writes `f` of each element of `values`, which are elsewhere in memory.
    ///
    /// # Panics
    ///
    /// If `values` has a different length than the line.
    #[cfg_attr(not(unoptimized), inline(always))]
    pub fn write(self, values: &[T], f: impl Fn(T) -> T) {
        assert_eq!(values.len(), self.len, "the numbers of values and elements differ");
        // SAFETY: by the contract of `new`.
        let places = unsafe { core::slice::from_raw_parts_mut(self.to.cast::<MaybeUninit<T>>(), self.len) };
        for (place, &value) in places.iter_mut().zip(values) {
            place.write(f(value));
        }
    }
}
