//! Tensors as a program uses them: looked up, laid out, assigned to, batched, and drawn.

mod assignment;
mod batching;
mod laid;
mod library;
mod lookup;
mod pictures;
