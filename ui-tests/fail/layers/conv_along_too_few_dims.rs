//~ words: a window needs one dim for each dim
use typed_dims::nn::Conv;
use typed_dims::prelude::*;

dims! {
    struct Batch;
    struct Channel;
    struct Made;
    struct Row;
    struct Column;
    struct Kh;
    struct Kw;
}

fn mistake(layer: &Conv<(Channel,), (Made,), (Kh, Kw)>, x: &Tensor<f32, (Batch, Channel, Row, Column)>) {
    layer.apply(x, Row, &Window::new());
}

fn main() {
    let _ = mistake;
}
