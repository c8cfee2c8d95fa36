//! Gradients: their numbers, what they go through, and what their errors say.

mod batches;
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
