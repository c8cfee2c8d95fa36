//~ words: `Feat` | not bound | (Centre, Axis)
use typed_dims::prelude::*;

dims! {
    struct Point;
    struct Centre;
    struct Feat;
    struct Axis;
}

fn distances(x: &Tensor<f32, (Point, Feat)>, y: &Tensor<f32, (Centre, Axis)>) {
    x.cdist(y, Feat, 2.0);
}

fn main() {
    let _ = distances;
}
