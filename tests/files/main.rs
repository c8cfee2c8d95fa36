//! Tensors in files: names, sizes and element types survive a round trip, and mismatches are
//! errors.

#![cfg(all(feature = "safetensors", feature = "npy", feature = "memmap"))]

mod every_reader;
mod hostile;
mod load;
#[path = "../mutations/mod.rs"]
mod mutations;
mod names;
mod python;
mod round_trips;
#[cfg(unix)]
mod saving;

use typed_dims::prelude::*;

dims! {
    /// Output features.
    pub struct Out;
    /// Input features.
    pub struct In = 3;
    /// Other features.
    pub struct Feat;
}

/// `0, 1, 2, ..` row by row.
fn counted(rows: usize) -> Tensor<f32, (Out, In)> {
    from_fn((Out.of(rows), In), |(row, column)| (row * 3 + column) as f32)
}
