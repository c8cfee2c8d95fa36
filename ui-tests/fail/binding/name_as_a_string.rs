//~ words: &str | not a dim
use typed_dims::prelude::*;

fn main() {
    let a = Array1::<f32>::zeros(2);
    a.at("i");
}
