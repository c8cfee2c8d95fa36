//~ words: `Hidden` is named twice
use typed_dims::nn::Gru;
use typed_dims::prelude::*;

dims! {
    struct Input;
    struct Hidden;
}

fn main() {
    let network = Gru::<Input, Hidden, Hidden>::new(Input.of(3), Hidden.of(4), 1);
}
