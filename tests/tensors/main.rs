//! Tests of tensors: assignment, batching, functions of numbers, pictures, and primes.

mod assignment;
mod batching;
mod mapped_numbers;
#[path = "../support/panics.rs"]
mod panics;
mod pictures;
mod primes;
