//~ words: `Width` | no size
use typed_dims::nn::Linear;
use typed_dims::prelude::*;

dims! {
    struct Width;
    struct Head;
}

fn mistake() -> Linear<(Width,), (Head,)> {
    Linear::new(Width, Head.of(2), 1)
}

fn main() {
    let _ = mistake;
}
