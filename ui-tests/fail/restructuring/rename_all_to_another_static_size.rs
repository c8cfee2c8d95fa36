//~ words: Static<2> | Static<3> | static sizes differ
use typed_dims::prelude::*;

dims! {
    struct Row = 2;
    struct Col = 3;
    struct Wide = 3;
    struct Tall = 3;
}

fn renamed(x: Tensor<f32, (Row, Col)>) {
    x.rename_all((Row, Col), (Tall, Wide));
}

fn main() {
    let _ = renamed;
}
