//~ words: is not a set of dims | Rest<B> | Prime<
use typed_dims::prelude::*;

fn squared<B: Dims>(_: &Tensor<f32, (Rest<B>, Prime<Rest<B>>)>) {}

fn main() {}
