//~ words: is not a tensor | bind an array to dims first: `a.at((i, j))`
use typed_dims::prelude::*;

fn solved(a: Array2<f64>, b: &Array1<f64>) -> Array1<f64> {
    dims!(i, j);
    a.solve(b.at(i), i, j).order(j)
}

fn main() {
    solved(array![[2.0, 0.0], [0.0, 2.0]], &array![1.0, 2.0]);
}
