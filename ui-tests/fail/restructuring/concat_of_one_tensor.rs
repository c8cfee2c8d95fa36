//~ words: cannot be joined | collection
use typed_dims::prelude::*;

dims! {
    struct Row;
}

fn changed(x: &Tensor<f32, (Row,)>) {
    concat(Row, x);
}

fn main() {
    let _ = changed;
}
