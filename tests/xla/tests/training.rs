//! Optimizers, clipping and averages on XLA: the tests of recorded training steps, here also
//! compared with XLA.

#![allow(missing_docs)]

#[path = "../../recorded/training.rs"]
mod training;

use typed_dims::grad::Parameters;
use typed_dims::program::{Program, RecordInputs};

/// Converts a program to its saved form and back.
fn reloaded<In: RecordInputs, Out: Parameters>(program: &Program<In, Out>, like: &Out) -> Program<In, Out> {
    program.to_saved().and_then(|saved| saved.restore(like)).expect("it is restored")
}
