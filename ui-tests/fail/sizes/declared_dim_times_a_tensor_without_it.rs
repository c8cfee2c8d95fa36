//~ words: Tok | no size | Tok.of(2)
use typed_dims::prelude::*;

dims! { struct Tok; struct Half; }

fn angles(freq: &Tensor<f32, (Half,)>) -> Tensor<f32, (Tok, Half)> {
    (Tok.cast::<f32>() * freq).eval()
}

fn main() {
    let _ = angles;
}
