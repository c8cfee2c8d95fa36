//~ words: `Width` | not bound | (Batch, Head)
use typed_dims::nn::Linear;
use typed_dims::prelude::*;

dims! {
    struct Batch;
    struct Width;
    struct Head;
}

fn twice(layer: &Linear<(Width,), (Head,)>, x: &Tensor<f32, (Batch, Width)>) {
    layer.apply(&layer.apply(x));
}

fn main() {
    let _ = twice;
}
