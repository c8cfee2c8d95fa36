//! Tensors in programs: assignment, batching, and random numbers.

mod assignment;
mod batching;
mod mapped_numbers;
mod pictures;
mod primes;
