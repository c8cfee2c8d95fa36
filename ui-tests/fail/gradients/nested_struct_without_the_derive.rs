//~ words: `Layer` is not a parameter | #[derive(Parameters)]
use typed_dims::grad::grad;
use typed_dims::prelude::*;

dims! { pub struct Pixel; }

struct Layer {
    weight: Tensor<f32, (Pixel,)>,
}

#[derive(Parameters)]
struct Model {
    layer: Layer,
}

fn main() {
    let model = Model { layer: Layer { weight: ones(Pixel.of(2)) } };
    let slope = grad(|model: &Model| (&model.layer.weight).square().sum(Pixel), &model);
    println!("{}", slope.layer.weight);
}
