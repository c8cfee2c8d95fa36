//~ words: cannot be changed
use typed_dims::prelude::*;

dims! {
    pub struct H = 2;
    pub struct C = 3;
}

fn main() {
    let x = zeros::<f32, _>((H, C)).laid((H, C));
    let mut y = x.view();
    y.assign(&x);
}
