//~ words: dimension `Other` is not bound | (Item, Feat)
use typed_dims::prelude::*;

dims! {
    struct Item;
    struct Feat;
    struct Other;
}

fn gram(x: &Tensor<f32, (Item, Feat)>) {
    println!("{}", (x * x.prime(Other)).sum(Feat));
}

fn main() {}
