//~ words: Rank0 | each axis that has no dim yet
use typed_dims::prelude::*;

dims! { struct Row; }

fn doubled(x: &Tensor<f32, (Row,)>) {
    let _ = tensor!([i] => x[i] * 2.0);
}

fn main() {
    let _ = doubled;
}
