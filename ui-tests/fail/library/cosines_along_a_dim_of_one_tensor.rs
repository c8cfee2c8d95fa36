//~ words: `Feat` | not bound | (Point, Axis)
use typed_dims::prelude::*;

dims! {
    struct Point;
    struct Center;
    struct Feat;
    struct Axis;
}

fn angles(x: &Tensor<f32, (Point, Axis)>, y: &Tensor<f32, (Center, Feat)>) {
    x.cosine_similarity(y, Feat, 1e-8);
}

fn main() {
    let _ = angles;
}
