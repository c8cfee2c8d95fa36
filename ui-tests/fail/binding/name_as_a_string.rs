//~ words: &str | cannot be bound
use typed_dims::prelude::*;

fn main() {
    let a = Array1::<f32>::zeros(2);
    a.at("i");
}
