//~ words: not bound | space1
use typed_dims::prelude::*;

fn image(x: &Array2<f32>) {
    dims!(space: [2]);
    x.at(space).sum(space1).order(space);
}

fn main() {
    let _ = image;
}
