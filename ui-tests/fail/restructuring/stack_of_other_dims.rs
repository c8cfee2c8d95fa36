//~ words: cannot be joined | a tensor that lacks a dim | `x.expand(I.of(n))`
use typed_dims::prelude::*;

dims! {
    struct Part;
    struct Row;
    struct Col;
}

fn stacked(x: &Tensor<f32, (Row, Col)>, y: &Tensor<f32, (Row,)>) {
    stack(Part, (x, y));
}

fn main() {
    let _ = stacked;
}
