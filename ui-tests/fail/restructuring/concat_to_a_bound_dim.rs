//~ words: cannot be joined | but without the new one
use typed_dims::operators::join::concat_to;
use typed_dims::prelude::*;

dims! {
    struct Row;
    struct Col;
    struct Key;
}

fn changed(x: &Tensor<f32, (Row, Col)>, y: &Tensor<f32, (Key, Col)>) {
    concat_to(Col, (Row, Key), (x, y));
}

fn main() {
    let _ = changed;
}
