//! Random numbers from a seed.
//!
//! A seed stands for a sequence of random numbers for each purpose. The number at a position of the
//! sequence is a hash of the seed, the purpose and the position. It is the same on every machine
//! and for any number of threads, and there is no generator to pass along. The hash is splitmix64:
//! G. L. Steele, D. Lea, C. H. Flood, 2014, "Fast splittable pseudorandom number generators".

use smallvec::SmallVec;

/// The purpose that numbers are drawn for. The same seed gives different numbers for different
/// purposes; otherwise dropout would drop exactly the small numbers of `rand`. (The constants other
/// than 0 are digits of the golden ratio and of pi.)
#[derive(Clone, Copy)]
#[repr(u64)]
#[allow(missing_docs)]
pub enum RandomStream {
    Uniform = 0,
    Normal = 0x9E37_79B9_7F4A_7C15,
    Dropout = 0x243F_6A88_85A3_08D3,
    Categorical = 0x1319_8A2E_0370_7344,
    Bernoulli = 0xA409_3822_299F_31D0,
    Permutation = 0x082E_FA98_EC4E_6C89,
    Split = 0x4528_21E6_38D0_1377,
    Truncated = 0xBE54_66CF_34E9_0C6C,
}

/// The number at the position `at` of a seed's sequence.
#[cfg_attr(not(unoptimized), inline(always))]
pub fn bits(stream: RandomStream, seed: u64, at: u64) -> u64 {
    mixed(mixed(seed ^ stream as u64).wrapping_add(at.wrapping_add(1).wrapping_mul(0x9E37_79B9_7F4A_7C15)))
}

/// The hash of a number.
#[cfg_attr(not(unoptimized), inline(always))]
pub fn mixed(z: u64) -> u64 {
    let z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

/// The number at the position `at` of a seed's sequence, in `0.0..1.0`.
#[cfg_attr(not(unoptimized), inline(always))]
pub fn unit(stream: RandomStream, seed: u64, at: u64) -> f64 {
    (bits(stream, seed, at) >> 11) as f64 / (1u64 << 53) as f64
}

/// The position of each element's number in a seed's sequence: `start` plus the sum over all axes
/// of the index times the axis's factor.
#[derive(Clone, Debug)]
pub struct DrawNumbers {
    /// The position for the index 0 along all axes.
    start: u64,
    /// The size and the factor of each axis whose size is not 1, in memory order.
    axes: SmallVec<[(usize, u64); 8]>,
}

impl DrawNumbers {
    /// The positions for elements that are contiguous in memory, in the order of these axes. Each
    /// axis has a size and a factor.
    pub fn new(start: u64, axes: impl IntoIterator<Item = (usize, u64)>) -> Self {
        DrawNumbers { start, axes: axes.into_iter().filter(|&(size, _)| size != 1).collect() }
    }

    #[cfg(feature = "std")]
    pub(crate) fn parts(&self) -> (u64, &[(usize, u64)]) {
        (self.start, &self.axes)
    }

    /// The position in the seed's sequence for the element with this index in memory.
    pub fn at(&self, mut index: usize) -> u64 {
        let mut position = self.start;
        for &(size, factor) in self.axes.iter().rev() {
            position = position.wrapping_add(factor.wrapping_mul((index % size) as u64));
            index /= size;
        }
        position
    }

    /// Calls `change` with each element and its position in the seed's sequence. The first of the
    /// `elements` has the index `start` in memory.
    pub fn each<T>(&self, start: usize, elements: &mut [T], mut change: impl FnMut(&mut T, u64)) {
        let (size, factor) = self.axes.last().copied().unwrap_or((1, 0));
        let mut done = 0;
        while done < elements.len() {
            let at = start + done;
            // (The rest of the positions along the last axis.)
            let len = (size - at % size).min(elements.len() - done);
            let mut position = self.at(at);
            for element in &mut elements[done..done + len] {
                change(element, position);
                position = position.wrapping_add(factor);
            }
            done += len;
        }
    }
}
