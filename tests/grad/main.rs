//! Gradients: their values, the operations they support, and their errors.

mod batches;
mod blocks;
mod errors;
mod functions;
#[path = "../support/gradients.rs"]
mod gradients;
mod kinks;
mod lines;
#[path = "../support/panics.rs"]
mod panics;
mod structure;
mod values;
