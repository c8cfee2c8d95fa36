//~ words: usize
use typed_dims::prelude::*;

fn main() {
    let ids = Array1::<usize>::zeros(3);
    let _ = tensor!([] => mean[i](ids[i]));
}
