//~ words: does not sort before | Class | Pixel
use typed_dims::prelude::*;

dims! {
    struct Pixel;
    struct Class;
}

struct Layer<I: AnyDim + Before<O>, O: AnyDim + After<I>> {
    weight: Tensor<f32, (I, O)>,
}

fn main() {
    let _: Option<Layer<Class, Pixel>> = None;
}
