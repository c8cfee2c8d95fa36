//! Pseudo-random numbers from a seed: the same on every machine, whatever the number of threads.
//!
//! The number at a position is a hash of the seed and of the position, so that no generator has to be carried along. (For a generator of
//! `rand`, or another distribution, there is [`random`](crate::create), with the feature `rand`.) The hash is splitmix64: G. L. Steele, D.
//! Lea, C. H. Flood, 2014, "Fast splittable pseudorandom number generators".

use crate::create::{SizedDims, try_from_fn};
use crate::error::{DimError, unwrap};
use crate::named::Named;
use crate::scalar::Real;
use num_traits::Float;

/// What numbers are drawn for: the same seed gives other numbers for something else, so that dropout does not leave out the small ones of
/// `rand`. (The numbers are digits of the golden ratio and of pi.)
#[derive(Clone, Copy)]
#[repr(u64)]
pub(crate) enum Stream {
    Uniform = 0,
    Normal = 0x9E37_79B9_7F4A_7C15,
    Dropout = 0x243F_6A88_85A3_08D3,
}

/// The `at`th number of a seed.
#[inline(always)]
fn bits(stream: Stream, seed: u64, at: u64) -> u64 {
    mixed(mixed(seed ^ stream as u64).wrapping_add(at.wrapping_add(1).wrapping_mul(0x9E37_79B9_7F4A_7C15)))
}

#[inline(always)]
fn mixed(z: u64) -> u64 {
    let z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

/// The `at`th number of a seed, from 0 to 1, exclusive.
#[inline(always)]
pub(crate) fn unit(stream: Stream, seed: u64, at: u64) -> f64 {
    (bits(stream, seed, at) >> 11) as f64 / (1u64 << 53) as f64
}

fn narrowed<T: Real>(value: f64) -> T {
    <T as num_traits::NumCast>::from(value).expect("a float can be any float, rounded")
}

/// Numbers that are drawn evenly from 0 to 1, exclusive: `rand::<f32, _>((Batch.of(2), Seq.of(3)), seed)`.
///
/// The same seed gives the same numbers, in the order in which the dims are written, the last one fastest.
///
/// # Panics
///
/// If a dim has no size, or the tensor does not fit into memory.
#[track_caller]
pub fn rand<T: Real, D: SizedDims>(dims: D, seed: u64) -> Named<T, D::Set> {
    unwrap(try_rand(dims, seed))
}

/// As [`rand()`], but what sizes decide is an error.
pub fn try_rand<T: Real, D: SizedDims>(dims: D, seed: u64) -> Result<Named<T, D::Set>, DimError> {
    let mut at = 0;
    try_from_fn(dims, |_| {
        at += 1;
        let value = narrowed::<T>(unit(Stream::Uniform, seed, at - 1));
        // Rounding to a narrow type can reach 1.
        if value < T::one() { value } else { T::one() - T::epsilon() }
    })
}

/// Numbers with a normal distribution, of mean 0 and variance 1, as for [`rand()`].
///
/// # Panics
///
/// If a dim has no size, or the tensor does not fit into memory.
#[track_caller]
pub fn randn<T: Real, D: SizedDims>(dims: D, seed: u64) -> Named<T, D::Set> {
    unwrap(try_randn(dims, seed))
}

/// As [`randn`], but what sizes decide is an error.
pub fn try_randn<T: Real, D: SizedDims>(dims: D, seed: u64) -> Result<Named<T, D::Set>, DimError> {
    let mut at = 0;
    try_from_fn(dims, |_| {
        at += 1;
        // G. E. P. Box, M. E. Muller, 1958, "A note on the generation of random normal deviates".
        let unit = |at| unit(Stream::Normal, seed, at);
        let (u, v) = (1.0 - unit(2 * (at - 1)), unit(2 * (at - 1) + 1));
        narrowed(Float::sqrt(-2.0 * Float::ln(u)) * Float::cos(core::f64::consts::TAU * v))
    })
}
