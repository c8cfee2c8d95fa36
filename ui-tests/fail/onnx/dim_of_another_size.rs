//~ words: `Channel` does not have the static size 3 | axis 1 of `image`
use typed_dims::prelude::*;

dims! {
    pub struct Channel: DataChannel = 4;
}

onnx_dims!("models/classifier.onnx", image: [_, use Channel, _, _]);

fn main() {}
