//~ words: expected `&Stream<f32, (Time, Feat), Feat>` | found `&Stream<f32, (Time, Feat), Time>`
//! The function expects a stream along features, but gets one along time.

use typed_dims::prelude::*;

dims! {
    pub struct Time;
    pub struct Feat;
}

fn layer(x: &Stream<f32, (Time, Feat), Feat>) -> usize {
    x.size(Feat)
}

fn run(x: Tensor<f32, (Time, Feat)>) -> usize {
    layer(&x.stream((Time, Feat), Time))
}

fn main() {}
