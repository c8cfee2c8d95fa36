//~ words: Prime<Item>` is not bound | (Item, Feat) | `x.prime(Item)`
use typed_dims::prelude::*;

dims! {
    struct Item;
    struct Feat;
}

fn walk(step: &Tensor<f32, (Item, Prime<Item>)>, x: &Tensor<f32, (Item, Feat)>) {
    println!("{}", step.compose(x, Item));
}

fn main() {}
