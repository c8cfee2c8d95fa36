//! A formula over several slices of one length, element by element, in place: the step of an optimizer.

use crate::machine::isa::{Isa, Task, dispatch};
use crate::machine::threads::{each, parts};
use crate::scalar::{Element, Real};
use alloc::vec::Vec;
use core::any::TypeId;
use core::array::from_fn;

/// What becomes of the elements at one place: of `M` that change and `N` that are only read.
pub trait Formula<const M: usize, const N: usize>: Sync {
    /// The new elements. It must be `#[inline(always)]`.
    fn apply<F: Real>(&self, changed: [F; M], read: [F; N]) -> [F; M];
}

/// A formula as functions for each type of floats. They are compiled by the crate that makes a `dyn Passes` of the formula, so that crates which use an
/// optimizer only call them.
pub trait Passes<const M: usize, const N: usize>: Sync {
    /// See [`apply`].
    fn f32(&self, changed: [&mut [f32]; M], read: [&[f32]; N]);
    /// See [`apply`].
    fn f64(&self, changed: [&mut [f64]; M], read: [&[f64]; N]);
    /// See [`apply`].
    #[cfg(feature = "half")]
    fn f16(&self, changed: [&mut [half::f16]; M], read: [&[half::f16]; N]);
    /// See [`apply`].
    #[cfg(feature = "half")]
    fn bf16(&self, changed: [&mut [half::bf16]; M], read: [&[half::bf16]; N]);
}

impl<P: Formula<M, N>, const M: usize, const N: usize> Passes<M, N> for P {
    fn f32(&self, changed: [&mut [f32]; M], read: [&[f32]; N]) {
        apply(self, changed, read);
    }

    fn f64(&self, changed: [&mut [f64]; M], read: [&[f64]; N]) {
        apply(self, changed, read);
    }

    #[cfg(feature = "half")]
    fn f16(&self, changed: [&mut [half::f16]; M], read: [&[half::f16]; N]) {
        apply(self, changed, read);
    }

    #[cfg(feature = "half")]
    fn bf16(&self, changed: [&mut [half::bf16]; M], read: [&[half::bf16]; N]) {
        apply(self, changed, read);
    }
}

/// Applies the formula at each place, in one pass, on as many threads as are worthwhile. Half precisions are computed in `f32` and rounded once.
///
/// # Panics
///
/// If the slices have different lengths.
pub fn apply<T: Real, P: Formula<M, N>, const M: usize, const N: usize>(
    formula: &P,
    mut changed: [&mut [T]; M],
    mut read: [&[T]; N],
) {
    let Some(len) = changed.first().map(|slice| slice.len()) else { return };
    let lens = changed.iter().map(|slice| slice.len()).chain(read.iter().map(|slice| slice.len()));
    assert!(lens.into_iter().all(|other| other == len), "slices of one length");
    let parts = parts(len);
    if parts <= 1 {
        return dispatch(Pass { formula, changed, read });
    }
    let most = len.div_ceil(parts);
    let mut passes = Vec::with_capacity(parts);
    let mut left = len;
    while left > 0 {
        let some = most.min(left);
        left -= some;
        let changed = changed.each_mut().map(|rest| rest.split_off_mut(..some).expect("`some` are left"));
        let read = read.each_mut().map(|rest| rest.split_off(..some).expect("`some` are left"));
        passes.push(Pass { formula, changed, read });
    }
    each(passes, dispatch);
}

/// A formula over a part of the slices.
struct Pass<'s, T, P, const M: usize, const N: usize> {
    formula: &'s P,
    changed: [&'s mut [T]; M],
    read: [&'s [T]; N],
}

impl<T: Real, P: Formula<M, N>, const M: usize, const N: usize> Task for Pass<'_, T, P, M, N> {
    type Out = ();
    const WIDE: bool = true;
    const WAITS: bool = true;

    #[inline(always)]
    fn run<I: Isa>(self) {
        let Pass { formula, mut changed, read } = self;
        let Some(len) = changed.first().map(|slice| slice.len()) else { return };
        // (Slices of the same length, so that the compiler drops the tests of bounds.)
        let read = read.map(|slice| &slice[..len]);
        for slice in &mut changed {
            let whole = core::mem::take(slice);
            *slice = &mut whole[..len];
        }
        for at in 0..len {
            let old = from_fn(|which| changed[which][at].widen());
            let new = formula.apply(old, from_fn(|which| read[which][at].widen()));
            for (slice, new) in changed.iter_mut().zip(new) {
                slice[at] = T::narrow(new);
            }
        }
    }
}

/// The same elements as ones of `U`, if that is their type.
#[inline]
pub fn slice_as<T: Element, U: Element>(slice: &[T]) -> Option<&[U]> {
    let (start, len) = (slice.as_ptr().cast(), slice.len());
    // SAFETY: `T` and `U` are one type, so this is the slice itself.
    (TypeId::of::<T>() == TypeId::of::<U>()).then(|| unsafe { core::slice::from_raw_parts(start, len) })
}

/// As [`slice_as`], to change them.
#[inline]
pub fn slice_as_mut<T: Element, U: Element>(slice: &mut [T]) -> Option<&mut [U]> {
    let (start, len) = (slice.as_mut_ptr().cast(), slice.len());
    // SAFETY: `T` and `U` are one type, so this is the slice itself, which stays borrowed for as long as the result.
    (TypeId::of::<T>() == TypeId::of::<U>()).then(|| unsafe { core::slice::from_raw_parts_mut(start, len) })
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Exchange;

    impl Formula<2, 1> for Exchange {
        #[inline(always)]
        fn apply<F: Real>(&self, [a, b]: [F; 2], [c]: [F; 1]) -> [F; 2] {
            [b + c, a]
        }
    }

    #[test]
    fn each_place_is_changed_once_on_any_number_of_threads() {
        for len in [0, 1, 7, 1000, 300_001] {
            let (mut a, mut b): (Vec<f64>, Vec<f64>) = (0..len).map(|at| (at as f64, -(at as f64))).unzip();
            let c = vec![0.5; len];
            apply(&Exchange, [&mut a, &mut b], [&c]);
            for at in 0..len {
                assert_eq!((a[at], b[at]), (0.5 - at as f64, at as f64));
            }
        }
    }

    #[test]
    #[should_panic(expected = "slices of one length")]
    fn slices_of_several_lengths_are_refused() {
        apply(&Exchange, [&mut [1.0_f32], &mut [2.0]], [&[]]);
    }

    #[test]
    fn slices_are_of_their_type_alone() {
        let mut slice = [1.0_f32, 2.0];
        assert_eq!(slice_as::<f32, f32>(&slice), Some(&[1.0, 2.0][..]));
        assert_eq!(slice_as::<f32, u32>(&slice), None);
        slice_as_mut::<f32, f32>(&mut slice).unwrap()[0] = 3.0;
        assert!(slice_as_mut::<f32, f64>(&mut slice).is_none());
        assert_eq!(slice, [3.0, 2.0]);
    }
}
