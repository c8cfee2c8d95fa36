//~ words: the loss has the dims | Example
use typed_dims::grad::value_and_grad;
use typed_dims::prelude::*;

dims! { pub struct Example; pub struct Pixel; pub struct Class; }

#[derive(Parameters)]
struct Model {
    weight: Tensor<f32, (Pixel, Class)>,
}

fn train(model: &Model, images: &Tensor<f32, (Example, Pixel)>, labels: &Tensor<usize, (Example,)>) -> Model {
    let loss = |model: &Model| (images * &model.weight).sum(Pixel).cross_entropy(Class, labels);
    value_and_grad(loss, model).1
}

fn main() {}
