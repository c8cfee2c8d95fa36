//~ words: Row | before the dim `Gate` | no fixed order
use typed_dims::prelude::*;

mod library {
    use typed_dims::prelude::*;

    dims! { pub struct Gate; }

    pub struct Gated<I: AnyDim + Before<Gate>> {
        pub weight: Tensor<f32, (I, Gate)>,
    }
}

dims! { struct Col; struct Row; }

fn weight(layer: library::Gated<Row>) {
    let _ = layer.weight;
}

fn main() {}
