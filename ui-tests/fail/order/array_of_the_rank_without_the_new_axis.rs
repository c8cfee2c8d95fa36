//~ words: mismatched types | Dim<[usize; 1]> | Dim<[usize; 2]>
use typed_dims::prelude::*;

fn means(x: &Array2<f32>) -> Array1<f32> {
    dims!(i, j);
    x.at((i, j)).mean(j).order((i, NewAxis))
}

fn main() {
    let _ = means;
}
