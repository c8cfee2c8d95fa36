//~ words: `Row` cannot be split into | a tuple of 2 to 6 new dims
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
