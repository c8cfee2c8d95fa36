//~ words: Prime<Item>` is already bound
use typed_dims::prelude::*;

dims! { struct Item; }

fn primed(x: &Tensor<f32, (Item, Prime<Item>)>) {
    println!("{}", x.prime(Item));
}

fn main() {}
