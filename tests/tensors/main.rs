//! Tensors in programs: assignment, batching, and random numbers.

mod assignment;
mod batching;
mod pictures;
mod primes;
