//~ words: Page | already bound
use typed_dims::prelude::*;

dims! {
    struct Row;
    struct Col;
    struct Page;
}

fn renamed(x: Tensor<f32, (Row, Col, Page)>) {
    x.rename_all((Row, Col), (Col, Page));
}

fn main() {
    let _ = renamed;
}
