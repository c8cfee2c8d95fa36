//~ words: (j<'_>,) | left over
use typed_dims::prelude::*;

fn rows(a: &Array2<f32>, out: &mut Array1<f32>) {
    dims!(i, j);
    a.at((i, j)).order_into(out, i);
}

fn main() {
    let _ = rows;
}
