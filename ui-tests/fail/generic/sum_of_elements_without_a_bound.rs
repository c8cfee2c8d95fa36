//~ words: tensors of `T` | T: Num
use typed_dims::prelude::*;

dims! { struct Seq; }

fn total<T>(x: &Tensor<T, (Seq,)>) -> Tensor<T, ()> {
    x.sum(Seq)
}

fn main() {}
