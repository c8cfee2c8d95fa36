//~ words: Rank0 | not axes of the pattern | `x.order((i, j))`
use typed_dims::prelude::*;

dims! { struct Row; struct Col; }

fn transposed(x: &Tensor<f32, (Row, Col)>) {
    let _ = rearrange!(x, Row Col -> Col Row);
}

fn main() {
    let _ = transposed;
}
