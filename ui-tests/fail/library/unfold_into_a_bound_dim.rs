//~ words: `Kh` | already bound
use typed_dims::prelude::*;

dims! {
    struct Height;
    struct Kh = 3;
}

fn windows(x: &Tensor<f32, (Height, Kh)>) {
    x.unfold(Height, Kh, 1, 1);
}

fn main() {
    let _ = windows;
}
