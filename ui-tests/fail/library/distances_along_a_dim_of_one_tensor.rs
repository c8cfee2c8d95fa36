//~ words: `Feat` | not bound | (Center, Axis)
use typed_dims::prelude::*;

dims! {
    struct Point;
    struct Center;
    struct Feat;
    struct Axis;
}

fn distances(x: &Tensor<f32, (Point, Feat)>, y: &Tensor<f32, (Center, Axis)>) {
    x.cdist(y, Feat, 2.0);
}

fn main() {
    let _ = distances;
}
