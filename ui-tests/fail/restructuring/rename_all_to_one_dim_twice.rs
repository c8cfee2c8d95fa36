//~ words: Page | named twice
use typed_dims::prelude::*;

dims! {
    struct Row;
    struct Col;
    struct Page;
}

fn renamed(x: Tensor<f32, (Row, Col)>) {
    x.rename_all((Row, Col), (Page, Page));
}

fn main() {
    let _ = renamed;
}
