//~ words: the role of `Word` is not DATA_FEATURE | axis 2 of `image`
use typed_dims::prelude::*;

dims! {
    pub struct Word: DataTime;
}

onnx_dims!("models/classifier.onnx", image: [_, _, use Word, _]);

fn main() {}
