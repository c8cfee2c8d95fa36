//~ words: cannot depend on the values of `x`
use typed_dims::prelude::*;

#[batched]
fn leaky(x: &Tensor<f32, ()>) -> Tensor<f32, ()> {
    if x.gt(0.0) { x * 1.0 } else { x * 0.1 }
}

fn main() {
    dims!(n);
    let _ = leaky(Array1::<f32>::ones(2).at(n));
}
