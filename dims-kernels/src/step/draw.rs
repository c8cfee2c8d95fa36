//! Elements that are drawn from a seed, where the seed is an operand.

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

/// What floats are drawn from.
pub trait Distribution: Copy + Send + Sync + 'static {
    /// What plans and messages call it.
    const NAME: &'static str;

    /// The `at`th number of a seed.
    fn draw<T: Real>(seed: u64, at: u64) -> T;
}

/// From 0 to 1, exclusive, evenly.
#[derive(Clone, Copy, Debug)]
pub struct Uniform;

impl Distribution for Uniform {
    const NAME: &'static str = "rand";

    #[inline(always)]
    fn draw<T: Real>(seed: u64, at: u64) -> T {
        let value = rounded::<T>(unit(RandomStream::Uniform, seed, at));
        // Rounding to a narrow type can reach 1.
        if value < T::ONE { value } else { T::ONE - T::epsilon() }
    }
}

/// The normal distribution of mean 0 and variance 1.
#[derive(Clone, Copy, Debug)]
pub struct Normal;

impl Distribution for Normal {
    const NAME: &'static str = "randn";

    #[inline(always)]
    fn draw<T: Real>(seed: u64, at: u64) -> T {
        rounded(deviate(RandomStream::Normal, seed, at))
    }
}

/// `-ln(-ln(u))`, where `u` is drawn evenly from 0 to 1: what is added to the logarithms of probabilities before the greatest one is chosen.
#[derive(Clone, Copy, Debug)]
pub struct Gumbel;

impl Distribution for Gumbel {
    const NAME: &'static str = "categorical";

    #[inline(always)]
    fn draw<T: Real>(seed: u64, at: u64) -> T {
        // Half a step above the number that is drawn: neither 0 nor 1, so that both logarithms are finite.
        let u = unit(RandomStream::Categorical, seed, at) + 0.5 / (1u64 << 53) as f64;
        rounded(-Float::ln(-Float::ln(u)))
    }
}

/// A number in another type of floats.
#[inline(always)]
pub fn rounded<T: Real>(value: f64) -> T {
    <T as num_traits::NumCast>::from(value).expect("a float can be any float, rounded")
}

/// The `at`th number of a seed with a normal distribution, of mean 0 and variance 1.
pub fn deviate(stream: RandomStream, seed: u64, at: u64) -> f64 {
    // G. E. P. Box, M. E. Muller, 1958, "A note on the generation of random normal deviates".
    let at = at.wrapping_mul(2);
    let (u, v) = (1.0 - unit(stream, seed, at), unit(stream, seed, at + 1));
    Float::sqrt(-2.0 * Float::ln(u)) * Float::cos(core::f64::consts::TAU * v)
}

/// Puts elements in random order, each order with the same probability.
pub fn shuffle<X>(elements: &mut [X], seed: u64) {
    for at in (1..elements.len()).rev() {
        // (The upper half of a product: even up to a part in 2^64 for each index.)
        let below = u128::from(bits(RandomStream::Permutation, seed, at as u64)) * (at as u128 + 1);
        elements.swap(at, (below >> 64) as usize);
    }
}

/// The `at`th of the seeds that one seed stands for.
pub fn split(seed: u64, at: u64) -> u64 {
    bits(RandomStream::Split, seed, at)
}

/// The seed that is an operand.
fn seed_of(operands: &StepOperands<'_, '_>, number: usize) -> u64 {
    operands.of::<u64>(number)[0]
}

/// Elements that are drawn from a [`Distribution`]. Operand: the seed. Result: `count` elements.
#[derive(Clone, Debug)]
pub struct DrawElements<T, Q> {
    /// How many elements there are.
    pub count: usize,
    /// Which of the seed's numbers each element draws.
    pub numbers: DrawNumbers,
    /// The type of the elements, and what they are drawn from.
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

/// `true` with the probability that each element has. Operands: `count` probabilities, and the seed. Result: `count` truth values.
#[derive(Clone, Debug)]
pub struct DrawTruths<T> {
    /// How many elements there are.
    pub count: usize,
    /// Which of the seed's numbers each element draws.
    pub numbers: DrawNumbers,
    /// The type of the probabilities.
    pub element: PhantomData<T>,
}

impl<T: Real> DrawTruths<T> {
    /// The truth values. It is an error if a probability is not between 0 and 1.
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

/// The numbers below `size` in random order. Operand: the seed. Result: `size` elements of the type `usize`.
#[derive(Clone, Debug)]
pub struct DrawOrder {
    /// How many there are.
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

/// One of the seeds that a seed stands for. Operand: the seed. Result: a seed.
#[derive(Clone, Debug)]
pub struct SplitSeed {
    /// Which one.
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
