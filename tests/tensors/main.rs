//! Tests of tensors: assignment, batching, functions of numbers, pictures, and primes.

mod assignment;
mod batching;
mod mapped_numbers;
mod pictures;
mod primes;
