//~ words: derivative can be taken by `&mut Model` | &*w
use typed_dims::grad::value_and_grad;
use typed_dims::prelude::*;

dims! { pub struct Pixel; }

#[derive(Parameters)]
struct Model {
    weight: Tensor<f32, (Pixel,)>,
}

fn train(model: &mut Model) {
    let (loss, _) = value_and_grad(|model| (&model.weight).square().sum(Pixel), model);
    println!("{loss}");
}

fn main() {
    train(&mut Model { weight: ones(Pixel.of(2)) });
}
