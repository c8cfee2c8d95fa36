//~ words: Rank2 | Rank3 | one binder for each axis
use typed_dims::prelude::*;

fn image(x: &Array2<f32>) {
    dims!(channel, space: [2]);
    x.at((channel, space));
}

fn main() {
    let _ = image;
}
