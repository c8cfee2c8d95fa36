//~ words: cannot index into a value of type
use typed_dims::prelude::*;

dims! { struct Token; }

fn mistake(x: &Tensor<f32, (Token,)>) {
    x[1..3];
}

fn main() {
    let _ = mistake;
}
