//! The properties as a fuzz target: see `fuzz/README.md`.

use crate::reference::input::Random;
use libfuzzer_sys::fuzz_target;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};

/// A property that runs on random numbers with a seed from the input.
pub struct Property(pub fn(&mut TestRunner));

inventory::collect!(Property);

fuzz_target!(|data: &[u8]| {
    let Some((which, bytes)) = data.split_first_chunk::<2>() else { return };
    // The bytes only give a seed. If they were the random numbers, zeros would follow the end of
    // the input, and rejection sampling would never end.
    let seed = bytes.iter().fold(0, |seed: u64, &byte| seed.wrapping_mul(0x100_0000_01B3) ^ u64::from(byte));
    let mut random = Random(seed);
    let seed: Vec<u8> = (0..4).flat_map(|_| random.next().to_le_bytes()).collect();
    let all: Vec<&Property> = inventory::iter::<Property>().collect();
    let property = all[usize::from(u16::from_le_bytes(*which)) % all.len()];
    let random = TestRng::from_seed(RngAlgorithm::ChaCha, &seed);
    (property.0)(&mut TestRunner::new_with_rng(Config::default(), random));
});
