//~ words: takes tensors | `a: &Tensor<f32, (), U2>`
use typed_dims::prelude::*;

#[batched]
fn mm(a: &Array2<f32>, b: &Array2<f32>) -> Array2<f32> {
    dims!(i, j, k);
    (a.at((i, k)) * b.at((k, j))).sum(k).order((i, j))
}

fn main() {
    let a = Array3::<f32>::ones((2, 3, 3));
    dims!(n);
    let _ = mm(a.at((n, .., ..)), a.at((n, .., ..))).order(n);
}
