//! The squared norm of a [`Direction`] over several slices, without storing its numbers.

use crate::machine::isa::{Isa, Task, dispatch};
use crate::map::formula::{Direction, Quantity, UpdateProgram};
use crate::map::in_place::SquareSum;
use crate::ops::code::DType;
use crate::scalar::Real;
use core::array::from_fn;

/// The squared norm of a [`Direction`] as one function for `f32` and one for `f64`, compiled by the
/// crate that turns the direction into a `dyn DirectionSquares`.
pub trait DirectionSquares<const K: usize, const M: usize, const N: usize>: Sync {
    /// The sum of the squares, in `f64`.
    fn f32(&self, scalars: [f64; K], state: [&[f32]; M], read: [&[f32]; N]) -> f64;
    /// The sum of the squares.
    fn f64(&self, scalars: [f64; K], state: [&[f64]; M], read: [&[f64]; N]) -> f64;
    /// The direction as data, for parameters with elements of this type.
    fn program(&self, elements: DType) -> UpdateProgram;
}

impl<D: Direction<K, M, N>, const K: usize, const M: usize, const N: usize> DirectionSquares<K, M, N> for D {
    fn f32(&self, scalars: [f64; K], state: [&[f32]; M], read: [&[f32]; N]) -> f64 {
        squares(self, scalars.map(|scalar| scalar as f32), state, read)
    }

    fn f64(&self, scalars: [f64; K], state: [&[f64]; M], read: [&[f64]; N]) -> f64 {
        squares(self, scalars, state, read)
    }

    fn program(&self, elements: DType) -> UpdateProgram {
        UpdateProgram::of_direction(self, elements)
    }
}

/// How many numbers are computed at once.
const BLOCK: usize = 1024;

/// The sum of the squares of all numbers, with the same bits as `in_place::squares` of the stored
/// numbers.
fn squares<T: Real + Quantity, D: Direction<K, M, N>, const K: usize, const M: usize, const N: usize>(
    direction: &D,
    scalars: [T; K],
    state: [&[T]; M],
    read: [&[T]; N],
) -> f64 {
    let Some(len) = state.first().map(|slice| slice.len()) else { return 0.0 };
    let lens = state.iter().chain(&read).map(|slice| slice.len());
    assert!(lens.into_iter().all(|other| other == len), "slices of one length");
    let (mut sum, mut block) = (SquareSum::default(), [T::ZERO; BLOCK]);
    for start in (0..len).step_by(BLOCK) {
        let places = start..len.min(start + BLOCK);
        let out = &mut block[..places.len()];
        let state = state.map(|slice| &slice[places.clone()]);
        let read = read.map(|slice| &slice[places.clone()]);
        dispatch(Block { direction, scalars, state, read, out: &mut *out });
        sum.add(out);
    }
    sum.total()
}

/// The numbers of a block.
struct Block<'s, T, D, const K: usize, const M: usize, const N: usize> {
    direction: &'s D,
    scalars: [T; K],
    state: [&'s [T]; M],
    read: [&'s [T]; N],
    out: &'s mut [T],
}

impl<T: Real + Quantity, D: Direction<K, M, N>, const K: usize, const M: usize, const N: usize> Task
    for Block<'_, T, D, K, M, N>
{
    type Out = ();
    const WIDE: bool = true;

    #[cfg_attr(not(unoptimized), inline(always))]
    fn run<I: Isa>(self) {
        let Block { direction, scalars, state, read, out } = self;
        let len = out.len();
        // Tells the compiler that the slices have the same length, so it removes bounds checks.
        let (state, read) = (state.map(|slice| &slice[..len]), read.map(|slice| &slice[..len]));
        for (at, out) in out.iter_mut().enumerate() {
            *out = direction.at(scalars, from_fn(|which| state[which][at]), from_fn(|which| read[which][at]));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::map::in_place;
    use alloc::vec::Vec;

    struct Difference;

    impl Direction<1, 1, 1> for Difference {
        const NAME: &'static str = "difference";

        #[cfg_attr(not(unoptimized), inline(always))]
        fn at<Q: Quantity>(&self, [factor]: [Q; 1], [a]: [Q; 1], [b]: [Q; 1]) -> Q {
            factor * a - b
        }
    }

    #[test]
    fn the_sum_has_the_bits_of_one_over_memory() {
        for len in [0, 1, 7, 8, 9, 1023, 1024, 1025, 5000] {
            let a: Vec<f32> = (0..len).map(|at| (at as f32 * 0.37).sin()).collect();
            let b: Vec<f32> = (0..len).map(|at| (at as f32 * 0.11).cos()).collect();
            let all: Vec<f32> = a.iter().zip(&b).map(|(a, b)| 0.3 * a - b).collect();
            let found = Difference.f32([f64::from(0.3_f32)], [&a], [&b]);
            assert_eq!(found.to_bits(), in_place::squares(&all).to_bits(), "{len} elements");
        }
    }
}
