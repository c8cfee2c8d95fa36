//~ words: `Col` | already bound
use typed_dims::prelude::*;

dims! {
    struct Row;
    struct Col;
    struct Page;
}

fn changed(x: &Tensor<f32, (Row, Col)>) {
    x.split_to(Row, (Page.of(1), Col));
}

fn main() {
    let _ = changed;
}
