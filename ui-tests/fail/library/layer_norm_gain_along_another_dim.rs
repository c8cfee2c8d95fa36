//~ words: `Out` | operand | (Batch, In)
use typed_dims::prelude::*;

dims! {
    struct Batch;
    struct In;
    struct Out;
}

fn norm(x: &Tensor<f32, (Batch, In)>, gain: &Tensor<f32, (Out,)>) {
    x.layer_norm_affine(In, 1e-5, gain, 0.0);
}

fn main() {
    let _ = norm;
}
