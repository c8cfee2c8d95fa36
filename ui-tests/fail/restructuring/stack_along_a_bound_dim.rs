//~ words: `Seq` | already bound | another name
use typed_dims::prelude::*;

dims! {
    struct Seq;
}

fn stacked(x: Tensor<f32, (Seq,)>, y: Tensor<f32, (Seq,)>) {
    stack(Seq, [x, y]);
}

fn main() {
    let _ = stacked;
}
