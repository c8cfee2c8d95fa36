//~ words: .eval()
use typed_dims::prelude::*;

fn double(x: Tensor<f32, (), U1>) -> Array1<f32> {
    dims!(i);
    (x * 2.0).at(i).order(i)
}

fn main() {
    let _ = double;
}
