//~ words: expected `f32`, found `&str`
use typed_dims::prelude::*;

#[derive(Load)]
struct Settings {
    #[load(default = "0.1")]
    rate: f32,
}

fn main() {
    let _ = |settings: Settings| settings.rate;
}
