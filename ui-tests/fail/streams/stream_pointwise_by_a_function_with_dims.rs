//~ words: pointwise | Rest | Feat
use typed_dims::prelude::*;

dims! {
    struct Time;
    struct Feat;
}

fn shifted(x: &Stream<f32, (Time, Feat), Feat>, bias: &Tensor<f32, (Feat,)>) -> Stream<f32, (Time, Feat), Feat> {
    x.pointwise(|x| x + bias)
}

fn main() {
    let _ = shifted;
}
