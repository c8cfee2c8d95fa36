//~ words: `{float}` is not a number of elements | usize
use typed_dims::prelude::*;

dims! {
    struct Height;
}

fn halved(x: Tensor<f32, (Height,)>) {
    x.max_pool(Height, 2.0, &Window::new());
}

fn main() {
    let _ = halved;
}
