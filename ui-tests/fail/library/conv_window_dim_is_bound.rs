//~ words: `Kh` | already bound
use typed_dims::prelude::*;

dims! {
    struct Channel;
    struct Height;
    struct Kh;
}

fn blur(x: &Tensor<f32, (Channel, Height, Kh)>, w: &Tensor<f32, (Channel, Kh)>) {
    conv(x, w, Channel, Height, Kh, &Window::new());
}

fn main() {
    let _ = blur;
}
