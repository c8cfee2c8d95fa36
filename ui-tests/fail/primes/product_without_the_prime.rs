//~ words: mismatched types | Prime<Item>)> | (Item,)
use typed_dims::prelude::*;

dims! {
    struct Item;
    struct Feat;
}

fn gram(x: &Tensor<f32, (Item, Feat)>) -> Tensor<f32, (Item, Prime<Item>)> {
    (x * x).sum(Feat)
}

fn main() {}
