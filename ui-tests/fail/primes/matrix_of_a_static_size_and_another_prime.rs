//~ words: not square | Rows | Prime<Columns>
use typed_dims::prelude::*;

dims! {
    struct Rows = 3;
    struct Columns = 4;
}

fn inverted(a: &Tensor<f64, (Rows, Prime<Columns>)>) -> Tensor<f64, (Rows, Prime<Columns>)> {
    a.inverse(Rows, prime(Columns))
}

fn main() {}
