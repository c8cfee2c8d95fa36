//~ words: local dim `i<'_>` | stays in its thread
use typed_dims::prelude::*;

fn main() {
    let a = Array1::<f32>::zeros(3);
    dims!(i);
    std::thread::spawn(move || a.at(i).sum(i));
}
