//~ words: dimension `H` is named twice
use typed_dims::prelude::*;

dims! {
    pub struct H = 2;
    pub struct C = 3;
}

fn main() {
    let _ = zeros::<f32, _>((H, C)).laid((H, H, C));
}
