//~ words: tensors of `T` | Exp | T: Real
use typed_dims::prelude::*;

dims! { struct Seq; }

fn grown<T>(x: &Tensor<T, (Seq,)>) {
    x.exp();
}

fn main() {}
