//! The properties as a fuzz target: see `fuzz/README.md`.

use libfuzzer_sys::fuzz_target;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};

/// A property, on random numbers that are the bytes of an input.
pub struct Property(pub fn(&mut TestRunner));

inventory::collect!(Property);

fuzz_target!(|data: &[u8]| {
    let Some((which, bytes)) = data.split_first_chunk::<2>() else { return };
    // Of at least 32 bytes, so that a generator can be seeded from them.
    let mut bytes = bytes.to_vec();
    bytes.resize(bytes.len().max(64), 0);
    let all: Vec<&Property> = inventory::iter::<Property>().collect();
    let property = all[usize::from(u16::from_le_bytes(*which)) % all.len()];
    let random = TestRng::from_seed(RngAlgorithm::PassThrough, &bytes);
    (property.0)(&mut TestRunner::new_with_rng(Config::default(), random));
});
