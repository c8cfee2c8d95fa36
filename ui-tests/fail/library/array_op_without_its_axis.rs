//~ words: Rank1 | Rank0 | leave as many axes positional
use ndarray::{Array1, ArrayView1};
use typed_dims::prelude::*;

dims! {
    struct Seq;
}

struct Backwards;

impl ArrayOp<f32> for Backwards {
    type In = U1;
    type Out = U1;
    type Elem = f32;
    const NAME: &'static str = "backwards";

    fn one(&self, x: ArrayView1<'_, f32>) -> Array1<f32> {
        x.iter().rev().copied().collect()
    }
}

fn turned(x: &Tensor<f32, (Seq,)>) {
    x.apply_array(Backwards);
}

fn main() {
    let _ = turned;
}
