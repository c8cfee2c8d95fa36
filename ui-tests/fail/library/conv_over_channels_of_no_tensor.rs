//~ words: `Channel` | not bound | (Height,)
use typed_dims::prelude::*;

dims! {
    struct Channel;
    struct Height;
    struct Kh;
}

fn blur(x: &Tensor<f32, (Height,)>, w: &Tensor<f32, (Kh,)>) {
    conv(x, w, Channel, Height, Kh, &Window::new());
}

fn main() {
    let _ = blur;
}
