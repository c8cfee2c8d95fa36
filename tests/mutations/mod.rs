//! Truncated and modified files, for readers that must reject or read them without panicking.

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use std::time::Instant;

/// Reads every proper prefix of every sample.
pub fn cut_off(samples: &[Vec<u8>], read: impl Fn(&[u8])) {
    for file in samples {
        for end in 0..file.len() {
            read(&file[..end]);
        }
    }
}

/// Replaces each byte of each sample by each result of `changed`, one byte at a time, and reads the
/// file.
pub fn wrong_bytes<const N: usize>(
    samples: &[Vec<u8>],
    changed: impl Fn(u8) -> [u8; N],
    read: impl Fn(&[u8]),
) {
    for sample in samples {
        let mut file = sample.clone();
        for at in 0..file.len() {
            for byte in changed(sample[at]) {
                file[at] = byte;
                read(&file);
            }
            file[at] = sample[at];
        }
    }
}

/// Reads randomly changed samples for `FUZZ_SECONDS` seconds, by default for two. `words` are
/// pieces of the format.
pub fn random_changes(samples: &[Vec<u8>], words: &[&[u8]], read: impl Fn(&[u8])) {
    let seconds = std::env::var("FUZZ_SECONDS").ok().and_then(|seconds| seconds.parse().ok()).unwrap_or(2.0);
    let mut random = StdRng::seed_from_u64(1);
    let started = Instant::now();
    while started.elapsed().as_secs_f64() < seconds {
        let mut file = samples[random.random_range(0..samples.len())].clone();
        for _ in 0..random.random_range(1..6) {
            change(&mut file, samples, words, &mut random);
        }
        read(&file);
    }
}

/// Makes one change: replaces a byte, cuts off the end, inserts a word, replaces up to 20 bytes
/// with a word, or inserts a piece of a sample.
fn change(file: &mut Vec<u8>, samples: &[Vec<u8>], words: &[&[u8]], random: &mut StdRng) {
    let at = random.random_range(0..file.len());
    let word = words[random.random_range(0..words.len())].iter().copied();
    match random.random_range(0..5) {
        0 => file[at] = random.random(),
        1 => file.truncate(at.max(1)),
        2 => drop(file.splice(at..at, word)),
        3 => {
            let end = random.random_range(at..file.len()) + 1;
            drop(file.splice(at..end.min(at + 20), word));
        }
        _ => {
            let other = &samples[random.random_range(0..samples.len())];
            let from = random.random_range(0..other.len());
            let end = random.random_range(from..other.len()) + 1;
            drop(file.splice(at..at, other[from..end].iter().copied()));
        }
    }
    if file.is_empty() {
        file.push(0);
    }
}
