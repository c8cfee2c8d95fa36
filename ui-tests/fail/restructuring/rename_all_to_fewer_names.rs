//~ words: a name for each of the dims | (Row, Col, Page)
use typed_dims::prelude::*;

dims! {
    struct Row;
    struct Col;
    struct Page;
}

fn renamed(x: Tensor<f32, (Row, Col, Page)>) {
    x.rename_all((Row, Col, Page), (Col, Row));
}

fn main() {
    let _ = renamed;
}
