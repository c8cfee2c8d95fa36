//! Tensors in files: names, sizes and element types come back as they went, or an error says what does not fit.

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
    /// Features that go out.
    pub struct Out;
    /// Features that come in.
    pub struct In = 3;
    /// Others.
    pub struct Feat;
}

/// `0, 1, 2, ..` row by row.
fn counted(rows: usize) -> Tensor<f32, (Out, In)> {
    from_fn((Out.of(rows), In), |(row, column)| (row * 3 + column) as f32)
}
