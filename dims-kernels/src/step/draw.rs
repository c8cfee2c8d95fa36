//! Random draws as steps with the seed as an operand.

#[cfg(feature = "std")]
use super::Pulled;
use super::{StepKind, StepOperands, StepResults};
use crate::error::Error;
use crate::memory::allocate::reserve;
use crate::memory::destination::Destination;
use crate::random::{DrawNumbers, RandomStream, bits, unit};
use crate::scalar::Real;
#[cfg(feature = "std")]
use crate::trace::{Node, Part};
#[cfg(feature = "std")]
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::marker::PhantomData;
use num_traits::Float;

/// A distribution of floats.
pub trait Distribution: Copy + Send + Sync + 'static {
    /// The name in plans and messages.
    const NAME: &'static str;

    /// Draws the number at position `at` of a seed's sequence.
    fn draw<T: Real>(seed: u64, at: u64) -> T;
}

/// The uniform distribution on `[0, 1)`.
#[derive(Clone, Copy, Debug)]
pub struct Uniform;

impl Distribution for Uniform {
    const NAME: &'static str = "rand";

    #[cfg_attr(not(unoptimized), inline(always))]
    fn draw<T: Real>(seed: u64, at: u64) -> T {
        let value = rounded::<T>(unit(RandomStream::Uniform, seed, at));
        // Rounding to a narrow type can reach 1.
        if value < T::ONE { value } else { T::ONE - T::epsilon() }
    }
}

/// The normal distribution with mean 0 and variance 1.
#[derive(Clone, Copy, Debug)]
pub struct Normal;

impl Distribution for Normal {
    const NAME: &'static str = "randn";

    #[cfg_attr(not(unoptimized), inline(always))]
    fn draw<T: Real>(seed: u64, at: u64) -> T {
        rounded(deviate(RandomStream::Normal, seed, at))
    }
}

/// The Gumbel distribution: `-ln(-ln(u))`, where `u` is uniform between 0 and 1. `categorical` adds
/// such numbers to the logarithms of probabilities and chooses the greatest sum.
#[derive(Clone, Copy, Debug)]
pub struct Gumbel;

impl Distribution for Gumbel {
    const NAME: &'static str = "categorical";

    #[cfg_attr(not(unoptimized), inline(always))]
    fn draw<T: Real>(seed: u64, at: u64) -> T {
        rounded(gumbel(unit(RandomStream::Categorical, seed, at)))
    }
}

/// `-ln(-ln(u))` for a uniform number on `[0, 1)`. It is always finite.
#[cfg_attr(not(unoptimized), inline(always))]
fn gumbel(drawn: f64) -> f64 {
    // Drawn numbers are multiples of `EPSILON / 2`. Half of that is added, so that `u` is not 0.
    // Without the upper limit, the greatest `u` would round to 1.
    let u = Float::min(drawn + f64::EPSILON / 4.0, 1.0 - f64::EPSILON / 2.0);
    -Float::ln(-Float::ln(u))
}

/// Rounds a number to another float type.
#[cfg_attr(not(unoptimized), inline(always))]
pub fn rounded<T: Real>(value: f64) -> T {
    <T as num_traits::NumCast>::from(value).expect("an `f64` can be rounded to any float type")
}

/// The number at position `at` of a seed's sequence, from the normal distribution with mean 0 and
/// variance 1.
pub fn deviate(stream: RandomStream, seed: u64, at: u64) -> f64 {
    // G. E. P. Box, M. E. Muller, 1958, "A note on the generation of random normal deviates".
    let at = at.wrapping_mul(2);
    let (u, v) = (1.0 - unit(stream, seed, at), unit(stream, seed, at + 1));
    Float::sqrt(-2.0 * Float::ln(u)) * Float::cos(core::f64::consts::TAU * v)
}

/// Shuffles elements by the method of Fisher and Yates.
pub fn shuffle<X>(elements: &mut [X], seed: u64) {
    for at in (1..elements.len()).rev() {
        // The upper half of the product is an index from 0 to `at`. All indices have the same
        // probability, up to an error of 2^-64.
        let below = u128::from(bits(RandomStream::Permutation, seed, at as u64)) * (at as u128 + 1);
        elements.swap(at, (below >> 64) as usize);
    }
}

/// Derives seed number `at` from a seed.
pub fn split(seed: u64, at: u64) -> u64 {
    bits(RandomStream::Split, seed, at)
}

/// The seed in the operand with this number.
fn seed_of(operands: &StepOperands<'_, '_>, number: usize) -> u64 {
    operands.of::<u64>(number)[0]
}

/// Draws elements from a [`Distribution`]. Operand: the seed. Result: `count` elements.
#[derive(Clone, Debug)]
pub struct DrawElements<T, Q> {
    /// The number of elements.
    pub count: usize,
    /// The position of each element's number in the seed's sequence.
    pub numbers: DrawNumbers,
    /// The type of the elements, and the distribution.
    pub from: PhantomData<(T, Q)>,
}

impl<T: Real, Q: Distribution> StepKind for DrawElements<T, Q> {
    fn name(&self) -> &'static str {
        Q::NAME
    }

    fn lines(&self) -> [usize; 2] {
        [1, self.count]
    }

    fn run(&self, operands: &mut StepOperands<'_, '_>, _: usize) -> Result<StepResults, Error> {
        let seed = seed_of(operands, 0);
        let draw = |at| Q::draw::<T>(seed, self.numbers.at(at));
        Ok(StepResults::one(Destination::New(self.count).from_fn(draw)?))
    }

    #[cfg(feature = "std")]
    fn pull(&self, _: &Pulled<'_>) -> Result<Vec<(Arc<Node>, Part)>, Error> {
        Ok(Vec::new())
    }
}

/// Draws `bool`s, each `true` with its own probability. Operands: `count` probabilities, and the
/// seed. Result: `count` `bool`s.
#[derive(Clone, Debug)]
pub struct DrawTruths<T> {
    /// The number of elements.
    pub count: usize,
    /// The position of each element's number in the seed's sequence.
    pub numbers: DrawNumbers,
    /// The type of the probabilities.
    pub element: PhantomData<T>,
}

impl<T: Real> DrawTruths<T> {
    /// Draws the `bool`s. A probability that is not between 0 and 1 is an error.
    pub fn draw(&self, probabilities: &[T], seed: u64) -> Result<Vec<bool>, Error> {
        let probability = |at: usize| num_traits::NumCast::from(probabilities[at]).unwrap_or(f64::NAN);
        if let Some(p) = (0..self.count).map(probability).find(|p| !(0.0..=1.0).contains(p)) {
            return Err(Error::Probability { operation: "bernoulli", p });
        }
        let is_true = |at| unit(RandomStream::Bernoulli, seed, self.numbers.at(at)) < probability(at);
        Destination::New(self.count).from_fn(is_true)
    }
}

impl<T: Real> StepKind for DrawTruths<T> {
    fn name(&self) -> &'static str {
        "bernoulli"
    }

    fn lines(&self) -> [usize; 2] {
        [1, self.count]
    }

    fn run(&self, operands: &mut StepOperands<'_, '_>, _: usize) -> Result<StepResults, Error> {
        Ok(StepResults::one(self.draw(operands.of::<T>(0), seed_of(operands, 1))?))
    }

    #[cfg(feature = "std")]
    fn pull(&self, _: &Pulled<'_>) -> Result<Vec<(Arc<Node>, Part)>, Error> {
        Ok(Vec::new())
    }
}

/// The numbers below `size` in random order. Operand: the seed. Result: `size` elements of the type
/// `usize`.
#[derive(Clone, Debug)]
pub struct DrawOrder {
    /// The number of elements.
    pub size: usize,
}

impl StepKind for DrawOrder {
    fn name(&self) -> &'static str {
        "permutation"
    }

    fn lines(&self) -> [usize; 2] {
        [1, self.size]
    }

    fn run(&self, operands: &mut StepOperands<'_, '_>, _: usize) -> Result<StepResults, Error> {
        let mut order: Vec<usize> = reserve(self.size)?;
        order.extend(0..self.size);
        shuffle(&mut order, seed_of(operands, 0));
        Ok(StepResults::one(order))
    }

    #[cfg(feature = "std")]
    fn pull(&self, _: &Pulled<'_>) -> Result<Vec<(Arc<Node>, Part)>, Error> {
        Ok(Vec::new())
    }
}

/// [Derives](split) a seed from another one. Operand: the seed. Result: the derived seed.
#[derive(Clone, Debug)]
pub struct SplitSeed {
    /// The number of the derived seed.
    pub at: u64,
}

impl StepKind for SplitSeed {
    fn name(&self) -> &'static str {
        "split"
    }

    fn lines(&self) -> [usize; 2] {
        [1, 1]
    }

    fn run(&self, operands: &mut StepOperands<'_, '_>, _: usize) -> Result<StepResults, Error> {
        Ok(StepResults::one(alloc::vec![split(seed_of(operands, 0), self.at)]))
    }

    #[cfg(feature = "std")]
    fn pull(&self, _: &Pulled<'_>) -> Result<Vec<(Arc<Node>, Part)>, Error> {
        Ok(Vec::new())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gumbel_numbers_are_finite() {
        let most = 1.0 - f64::EPSILON / 2.0;
        let found = [0.0, f64::EPSILON / 2.0, 0.5, most].map(gumbel);
        assert!(found.iter().all(|number| number.is_finite()), "{found:?}");
        assert!(found.is_sorted(), "{found:?}");
    }
}
