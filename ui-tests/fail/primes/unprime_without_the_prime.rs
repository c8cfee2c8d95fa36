//~ words: Prime<Item>` is not bound | (Item, Feat)
use typed_dims::prelude::*;

dims! {
    struct Item;
    struct Feat;
}

fn back(x: &Tensor<f32, (Item, Feat)>) {
    println!("{}", x.unprime(Item));
}

fn main() {}
