//~ words: an enum has no fixed parameters | an `Option` for each part
use typed_dims::prelude::*;

dims! { pub struct Width; }

#[derive(Parameters)]
enum Norm {
    Layer(Tensor<f32, (Width,)>),
    None,
}

fn main() {
    let norm = Norm::Layer(ones(Width.of(2)));
    println!("{:?}", norm.names());
}
