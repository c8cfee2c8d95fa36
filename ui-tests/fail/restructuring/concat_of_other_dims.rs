//~ words: cannot be joined | same element type and dims
use typed_dims::prelude::*;

dims! {
    struct Row;
    struct Col;
}

fn changed(x: &Tensor<f32, (Row,)>, y: &Tensor<f32, (Row, Col)>) {
    concat(Row, (x, y));
}

fn main() {
    let _ = changed;
}
