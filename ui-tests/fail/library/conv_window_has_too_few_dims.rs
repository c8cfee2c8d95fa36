//~ words: window | (Height, Width)
use typed_dims::prelude::*;

dims! {
    struct Channel;
    struct Height;
    struct Width;
    struct Kh;
    struct Kw;
}

fn blur(x: &Tensor<f32, (Channel, Height, Width)>, w: &Tensor<f32, (Channel, Kh, Kw)>) {
    conv(x, w, Channel, (Height, Width), Kh, &Window::new());
}

fn main() {
    let _ = blur;
}
