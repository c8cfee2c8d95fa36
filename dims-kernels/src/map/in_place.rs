//! Formulas over several slices of equal length, element by element, in place: the step of an
//! optimizer.
//!
//! Formulas are compiled for `f32` and `f64`. For half precision they run in `f32`, a
//! [block](apply_halves) at a time.

use crate::machine::isa::{Isa, Task, dispatch};
use crate::machine::threads::{each, parts};
use crate::map::formula::{Formula, Quantity, UpdateProgram};
use crate::ops::code::DType;
use crate::scalar::{Element, Real};
use alloc::vec::Vec;
use core::any::TypeId;
use core::array::from_fn;
use num_traits::NumCast;

/// A formula as one function for `f32` and one for `f64`. They are compiled by the crate that turns
/// the formula into a `dyn Passes`, so crates that use an optimizer only call them.
pub trait Passes<const K: usize, const M: usize, const N: usize>: Sync {
    /// See [`apply`].
    fn f32(&self, scalars: [f64; K], changed: [&mut [f32]; M], read: [&[f32]; N]);
    /// See [`apply`].
    fn f64(&self, scalars: [f64; K], changed: [&mut [f64]; M], read: [&[f64]; N]);
    /// The formula as data, for parameters with elements of this type.
    fn program(&self, elements: DType) -> UpdateProgram;
}

impl<P: Formula<K, M, N>, const K: usize, const M: usize, const N: usize> Passes<K, M, N> for P {
    fn f32(&self, scalars: [f64; K], changed: [&mut [f32]; M], read: [&[f32]; N]) {
        apply(self, scalars.map(|scalar| scalar as f32), changed, read);
    }

    fn f64(&self, scalars: [f64; K], changed: [&mut [f64]; M], read: [&[f64]; N]) {
        apply(self, scalars, changed, read);
    }

    fn program(&self, elements: DType) -> UpdateProgram {
        match elements {
            #[cfg(feature = "half")]
            DType::F16 | DType::Bf16 => UpdateProgram::of_halves(self, elements),
            _ => UpdateProgram::new(self, elements),
        }
    }
}

/// Applies the formula at each position, in one pass, on as many threads as are worthwhile.
///
/// # Panics
///
/// If `M` is not 0 and the slices have different lengths.
pub fn apply<T: Real + Quantity, P: Formula<K, M, N>, const K: usize, const M: usize, const N: usize>(
    formula: &P,
    scalars: [T; K],
    mut changed: [&mut [T]; M],
    mut read: [&[T]; N],
) {
    let Some(len) = changed.first().map(|slice| slice.len()) else { return };
    let lens = changed.iter().map(|slice| slice.len()).chain(read.iter().map(|slice| slice.len()));
    assert!(lens.into_iter().all(|other| other == len), "slices of one length");
    let parts = parts(len);
    if parts <= 1 {
        return dispatch(Pass { formula, scalars, changed, read });
    }
    let most = len.div_ceil(parts);
    let mut passes = Vec::with_capacity(parts);
    let mut left = len;
    while left > 0 {
        let some = most.min(left);
        left -= some;
        let changed = changed.each_mut().map(|rest| rest.split_off_mut(..some).expect("`some` are left"));
        let read = read.each_mut().map(|rest| rest.split_off(..some).expect("`some` are left"));
        passes.push(Pass { formula, scalars, changed, read });
    }
    each(passes, dispatch);
}

/// Applies a formula to a part of the slices.
struct Pass<'s, T, P, const K: usize, const M: usize, const N: usize> {
    formula: &'s P,
    scalars: [T; K],
    changed: [&'s mut [T]; M],
    read: [&'s [T]; N],
}

impl<T: Real + Quantity, P: Formula<K, M, N>, const K: usize, const M: usize, const N: usize> Task
    for Pass<'_, T, P, K, M, N>
{
    type Out = ();
    const WIDE: bool = true;
    const WAITS: bool = true;

    #[cfg_attr(not(unoptimized), inline(always))]
    fn run<I: Isa>(self) {
        let Pass { formula, scalars, mut changed, read } = self;
        let Some(len) = changed.first().map(|slice| slice.len()) else { return };
        // Tells the compiler that the slices have the same length, so it removes bounds checks.
        let read = read.map(|slice| &slice[..len]);
        for slice in &mut changed {
            let whole = core::mem::take(slice);
            *slice = &mut whole[..len];
        }
        for at in 0..len {
            let old = from_fn(|which| changed[which][at]);
            let new = formula.apply(scalars, old, from_fn(|which| read[which][at]));
            for (slice, new) in changed.iter_mut().zip(new) {
                slice[at] = new;
            }
        }
    }
}

/// The number of independent sums, which the compiler updates with vector instructions.
const LANES: usize = 8;

/// A sum of squares, in `f64`, of elements that are added in parts.
#[derive(Default)]
pub struct SquareSum {
    lanes: [f64; LANES],
    rest: f64,
}

impl SquareSum {
    /// Adds a part of the elements. If the length of each part except the last is a multiple of 8,
    /// the total does not depend on the parts.
    pub fn add<T: Real>(&mut self, elements: &[T]) {
        let square = |a: T| {
            let a: f64 = NumCast::from(a).expect("a float fits into f64");
            a * a
        };
        let (chunks, rest) = elements.as_chunks::<LANES>();
        for chunk in chunks {
            for (sum, &a) in self.lanes.iter_mut().zip(chunk) {
                *sum += square(a);
            }
        }
        self.rest += rest.iter().map(|&a| square(a)).sum::<f64>();
    }

    /// The sum.
    pub fn total(self) -> f64 {
        self.lanes.iter().sum::<f64>() + self.rest
    }
}

/// The sum of the squares of elements, in `f64`.
pub fn squares<T: Real>(elements: &[T]) -> f64 {
    let mut sum = SquareSum::default();
    sum.add(elements);
    sum.total()
}

/// How many elements of half precision are computed in `f32` at once: the blocks of a formula fit
/// into the first-level cache.
#[cfg(feature = "half")]
const BLOCK: usize = 1024;

/// Applies the formula in `f32` to slices of half precision: `rounded`, which is the first slice
/// that changes, and those of `read`. The other slices that change are `f32`.
///
/// `changed[0]` has the elements of `rounded` before rounding. If an element of `rounded` differs
/// from the rounded element of `changed[0]`, other code has changed `rounded`, and the formula
/// continues from the element of `rounded`. If `changed[0]` is `None`, the formula always continues
/// from `rounded`.
///
/// # Panics
///
/// If the slices have different lengths. Also, unless they are empty, if `M` is 0 or an element of
/// `changed` other than the first is `None`.
#[cfg(feature = "half")]
pub fn apply_halves<T: Real<Wide = f32>, const K: usize, const M: usize, const N: usize>(
    passes: &dyn Passes<K, M, N>,
    scalars: [f64; K],
    mut rounded: &mut [T],
    mut changed: [Option<&mut [f32]>; M],
    mut read: [&[T]; N],
) {
    let len = rounded.len();
    let lens = changed.iter().flatten().map(|slice| slice.len()).chain(read.iter().map(|slice| slice.len()));
    assert!(lens.into_iter().all(|other| other == len), "slices of one length");
    let parts = parts(len);
    // All parts except the last consist of whole blocks.
    let most = len.div_ceil(parts).next_multiple_of(BLOCK);
    let mut blocks = Vec::with_capacity(parts);
    let mut left = len;
    while left > 0 {
        let some = most.min(left);
        left -= some;
        let rounded = rounded.split_off_mut(..some).expect("`some` are left");
        let changed = split_options(&mut changed, some);
        let read = read.each_mut().map(|rest| rest.split_off(..some).expect("`some` are left"));
        blocks.push(HalfBlocks { passes, scalars, rounded, changed, read });
    }
    if blocks.len() <= 1 {
        return blocks.into_iter().for_each(HalfBlocks::run);
    }
    each(blocks, HalfBlocks::run);
}

/// Splits the first `some` elements off each slice.
#[cfg(feature = "half")]
fn split_options<'s, const M: usize>(
    slices: &mut [Option<&'s mut [f32]>; M],
    some: usize,
) -> [Option<&'s mut [f32]>; M] {
    slices
        .each_mut()
        .map(|rest| rest.as_mut().map(|rest| rest.split_off_mut(..some).expect("`some` are left")))
}

/// Applies a formula to a part of slices of half precision.
#[cfg(feature = "half")]
struct HalfBlocks<'s, T, const K: usize, const M: usize, const N: usize> {
    passes: &'s dyn Passes<K, M, N>,
    scalars: [f64; K],
    rounded: &'s mut [T],
    changed: [Option<&'s mut [f32]>; M],
    read: [&'s [T]; N],
}

#[cfg(feature = "half")]
impl<T: Real<Wide = f32>, const K: usize, const M: usize, const N: usize> HalfBlocks<'_, T, K, M, N> {
    fn run(self) {
        let HalfBlocks { passes, scalars, mut rounded, mut changed, mut read } = self;
        let (mut first, mut wide) = ([0.0; BLOCK], [[0.0; BLOCK]; N]);
        while !rounded.is_empty() {
            let len = rounded.len().min(BLOCK);
            let rounded = rounded.split_off_mut(..len).expect("`len` are left");
            for (wide, read) in wide.iter_mut().zip(&mut read) {
                let read = read.split_off(..len).expect("`len` are left");
                dispatch(Convert { from: read, to: &mut wide[..len], by: T::widen });
            }
            let mut block = split_options(&mut changed, len);
            match &mut block[0] {
                Some(exact) => dispatch(Follow { rounded, exact }),
                None => {
                    dispatch(Convert { from: rounded, to: &mut first[..len], by: T::widen });
                    block[0] = Some(&mut first[..len]);
                }
            }
            let mut block = block.map(|slice| slice.expect("only the first slice can be left out"));
            let read = wide.each_ref().map(|wide| &wide[..len]);
            passes.f32(scalars, block.each_mut().map(|slice| &mut **slice), read);
            dispatch(Convert { from: block[0], to: rounded, by: T::narrow });
        }
    }
}

/// Converts the elements of one slice into those of another.
#[cfg(feature = "half")]
struct Convert<'s, A, B, F> {
    from: &'s [A],
    to: &'s mut [B],
    by: F,
}

#[cfg(feature = "half")]
impl<A: Copy, B, F: Fn(A) -> B> Task for Convert<'_, A, B, F> {
    type Out = ();

    #[cfg_attr(not(unoptimized), inline(always))]
    fn run<I: Isa>(self) {
        self.to.iter_mut().zip(self.from).for_each(|(to, &from)| *to = (self.by)(from));
    }
}

/// If an element of `exact` does not round to the element of `rounded` at the same index, replaces
/// it with that element.
#[cfg(feature = "half")]
struct Follow<'s, T> {
    rounded: &'s [T],
    exact: &'s mut [f32],
}

#[cfg(feature = "half")]
impl<T: Real<Wide = f32>> Task for Follow<'_, T> {
    type Out = ();

    #[cfg_attr(not(unoptimized), inline(always))]
    fn run<I: Isa>(self) {
        for (exact, &rounded) in self.exact.iter_mut().zip(self.rounded) {
            if T::narrow(*exact) != rounded {
                *exact = rounded.widen();
            }
        }
    }
}

/// The slice as a slice of `U`, if that is the type of its elements.
#[inline]
pub fn slice_as<T: Element, U: Element>(slice: &[T]) -> Option<&[U]> {
    let (start, len) = (slice.as_ptr().cast(), slice.len());
    // SAFETY: `T` and `U` are the same type, so this is the slice itself.
    (TypeId::of::<T>() == TypeId::of::<U>()).then(|| unsafe { core::slice::from_raw_parts(start, len) })
}

/// Like [`slice_as`], for a mutable slice.
#[inline]
pub fn slice_as_mut<T: Element, U: Element>(slice: &mut [T]) -> Option<&mut [U]> {
    let (start, len) = (slice.as_mut_ptr().cast(), slice.len());
    // SAFETY: `T` and `U` are the same type, so this is the slice itself, which stays borrowed for
    // as long as the result.
    (TypeId::of::<T>() == TypeId::of::<U>()).then(|| unsafe { core::slice::from_raw_parts_mut(start, len) })
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Exchange;

    impl Formula<0, 2, 1> for Exchange {
        const NAME: &'static str = "exchange";

        #[cfg_attr(not(unoptimized), inline(always))]
        fn apply<Q: Quantity>(&self, []: [Q; 0], [a, b]: [Q; 2], [c]: [Q; 1]) -> [Q; 2] {
            [b + c, a]
        }
    }

    #[test]
    fn a_negated_number_has_the_other_sign() {
        for value in [0.0, 1.5, f64::MIN_POSITIVE / 2.0, f64::INFINITY, f64::NAN] {
            for own in [value, -value] {
                assert_eq!(own.negated_if(true).to_bits(), (-own).to_bits());
                assert_eq!(own.negated_if(false).to_bits(), own.to_bits());
                let own = own as f32;
                assert_eq!(own.negated_if(true).to_bits(), (-own).to_bits());
                assert_eq!(own.negated_if(false).to_bits(), own.to_bits());
            }
        }
    }

    #[test]
    fn each_place_is_changed_once_on_any_number_of_threads() {
        for len in [0, 1, 7, 1000, 300_001] {
            let (mut a, mut b): (Vec<f64>, Vec<f64>) = (0..len).map(|at| (at as f64, -(at as f64))).unzip();
            let c = vec![0.5; len];
            apply(&Exchange, [], [&mut a, &mut b], [&c]);
            for at in 0..len {
                assert_eq!((a[at], b[at]), (0.5 - at as f64, at as f64));
            }
        }
    }

    #[cfg(feature = "half")]
    #[test]
    fn halves_follow_what_was_changed_and_are_rounded_at_the_end() {
        use half::f16;

        /// `a += c`, and `b` counts the steps.
        struct Add;
        impl Formula<1, 2, 1> for Add {
            const NAME: &'static str = "add";

            #[cfg_attr(not(unoptimized), inline(always))]
            fn apply<Q: Quantity>(&self, [one]: [Q; 1], [a, b]: [Q; 2], [c]: [Q; 1]) -> [Q; 2] {
                [a + c, b + one]
            }
        }

        for len in [0, 1, 1023, 1025, 300_001] {
            let mut rounded = vec![f16::ONE; len];
            let (mut exact, mut count) = (vec![1.0; len], vec![0.0; len]);
            // An eighth of the distance between 1 and the next larger `f16`.
            let c = vec![f16::from_f32(1.0 / 8192.0); len];
            for _ in 0..8 {
                apply_halves(&Add, [1.0], &mut rounded, [Some(&mut exact), Some(&mut count)], [&c]);
            }
            assert!(rounded.iter().all(|&a| a.to_f32() == 1.0 + 1.0 / 1024.0));
            assert!(
                exact.iter().all(|&a| a == 1.0 + 1.0 / 1024.0) && count.iter().all(|&count| count == 8.0)
            );
            if let Some(last) = rounded.last_mut() {
                *last = f16::from_f32(3.0);
                apply_halves(&Add, [1.0], &mut rounded, [Some(&mut exact), Some(&mut count)], [&c]);
                assert_eq!((exact[len - 1], rounded[len - 1].to_f32()), (3.0 + 1.0 / 8192.0, 3.0));
                assert!(exact[..len - 1].iter().all(|&a| a == 1.0 + 9.0 / 8192.0));
            }
            let mut alone = vec![f16::ONE; len];
            apply_halves(&Add, [1.0], &mut alone, [None, Some(&mut count)], [&c]);
            assert!(alone.iter().all(|&a| a == f16::ONE));
        }
    }

    #[test]
    #[should_panic(expected = "slices of one length")]
    fn slices_of_several_lengths_are_refused() {
        apply(&Exchange, [], [&mut [1.0_f32], &mut [2.0]], [&[]]);
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
