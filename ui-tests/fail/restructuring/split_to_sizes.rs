//~ words: is not a dim
use typed_dims::prelude::*;

dims! {
    struct Row;
}

fn changed(x: &Tensor<f32, (Row,)>) {
    x.split_to(Row, (2, 3));
}

fn main() {
    let _ = changed;
}
