//! Tensors as a program uses them: assigned to, batched, and drawn.

mod assignment;
mod batching;
mod pictures;
mod primes;
