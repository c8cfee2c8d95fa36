//! Runs the tests of recorded training steps, and compares their results with XLA's.

#![allow(missing_docs)]

#[path = "../../recorded/training.rs"]
mod training;

use typed_dims::grad::Parameters;
use typed_dims::program::{Program, RecordInputs};

/// Converts a program to its saved form and back.
fn reloaded<In: RecordInputs, Out: Parameters>(program: &Program<In, Out>, like: &Out) -> Program<In, Out> {
    program.to_saved().and_then(|saved| saved.restore(like)).expect("the program can be restored")
}
