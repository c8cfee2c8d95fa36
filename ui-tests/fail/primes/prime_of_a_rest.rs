//~ words: `Rest<B>` is not a dimension
use typed_dims::prelude::*;

fn squared<B: Dims>(x: &Tensor<f32, (Rest<B>, Prime<Rest<B>>)>) {
    println!("{x}");
}

fn main() {}
