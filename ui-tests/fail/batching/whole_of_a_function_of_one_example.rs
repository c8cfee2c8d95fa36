//~ words: `whole` | Feat | Batch | is called with
use typed_dims::prelude::*;

dims! {
    struct Batch;
    struct Feat;
}

fn doubled(x: Tensor<f32, (Feat,)>) -> Tensor<f32, (Feat,)> {
    (x * 2.0).eval()
}

fn called(x: Array2<f32>) {
    vmap(whole(doubled), Batch)(x.at((Batch, Feat)));
}

fn main() {
    let _ = called;
}
