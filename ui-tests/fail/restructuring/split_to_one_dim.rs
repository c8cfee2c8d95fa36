//~ words: `Row` cannot be split into `Page` | tuple of 2 to 6 dims
use typed_dims::prelude::*;

dims! {
    struct Row;
    struct Page;
}

fn changed(x: &Tensor<f32, (Row,)>) {
    x.split_to(Row, Page);
}

fn main() {
    let _ = changed;
}
