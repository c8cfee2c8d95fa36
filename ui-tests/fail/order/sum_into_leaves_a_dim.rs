//~ words: (j<'_>,) | left over
use typed_dims::prelude::*;

fn product(a: &Array2<f32>, b: &Array2<f32>, out: &mut Array1<f32>) {
    dims!(i, j, k);
    (a.at((i, k)) * b.at((k, j))).sum_into(k, out, i);
}

fn main() {
    let _ = product;
}
