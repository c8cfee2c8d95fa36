//~ words: `f32` | not made of tensors
use typed_dims::optim::checkpoint::Checkpoint;
use typed_dims::prelude::*;

dims! {
    struct In;
    struct Out;
    struct Other;
}

fn mistake(rate: f32) {
    let _ = Checkpoint::new().put("rate", &rate);
}

fn main() {
    let _ = mistake;
}
