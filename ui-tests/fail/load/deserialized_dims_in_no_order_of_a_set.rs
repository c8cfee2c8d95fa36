//~ words: (In, Out) | in order of declaration
use typed_dims::prelude::*;

dims! {
    struct Out;
    struct In;
}

fn main() {
    let w: Named<f32, (In, Out)> = serde_json::from_str("").unwrap();
    println!("{w}");
}
