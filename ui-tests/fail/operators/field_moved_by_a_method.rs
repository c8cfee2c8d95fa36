//~ words: E0507 | `layer.weight` moved due to this method call | clone
use typed_dims::prelude::*;

dims! { pub struct Time; }

struct Layer {
    weight: Tensor<f32, (Time,)>,
}

fn penalty(layer: &Layer) -> Tensor<f32, ()> {
    layer.weight.square().sum(Time)
}

fn main() {
    println!("{}", penalty(&Layer { weight: ones(Time.of(3)) }));
}
