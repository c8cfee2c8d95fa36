//~ words: derivative with respect to `&Model` | #[derive(Parameters)]
use typed_dims::grad::value_and_grad;
use typed_dims::prelude::*;

dims! { pub struct Pixel; }

struct Model {
    weight: Tensor<f32, (Pixel,)>,
}

fn main() {
    let model = Model { weight: ones(Pixel.of(2)) };
    let (loss, _) = value_and_grad(|model: &Model| (&model.weight).square().sum(Pixel), &model);
    println!("{loss}");
}
