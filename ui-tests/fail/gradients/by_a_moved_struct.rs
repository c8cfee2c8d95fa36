//~ words: derivative with respect to `Model` | &model
use typed_dims::grad::grad;
use typed_dims::prelude::*;

dims! { pub struct Pixel; }

#[derive(Parameters)]
struct Model {
    weight: Tensor<f32, (Pixel,)>,
}

fn main() {
    let model = Model { weight: ones(Pixel.of(2)) };
    let slope = grad(|model: &Model| (&model.weight).square().sum(Pixel), model);
    println!("{}", slope.weight);
}
