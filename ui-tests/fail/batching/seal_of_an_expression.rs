//~ words: only tensors in memory can be sealed | .eval()
use typed_dims::prelude::*;

dims! {
    struct Batch;
    struct Feat;
}

fn scaled<B: Dims>(x: &Tensor<f32, (Feat, Rest<B>)>) -> Tensor<f32, (Feat, Rest<B>)> {
    (x * 2.0).eval()
}

fn main() {
    let x = ones::<f32, _>((Batch.of(2), Feat.of(3)));
    scaled(&(x + 1.0).seal(Feat));
}
