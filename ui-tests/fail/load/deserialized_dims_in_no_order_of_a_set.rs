//~ words: (In, Out) | in the order in which they were declared
use typed_dims::prelude::*;

dims! {
    struct Out;
    struct In;
}

fn main() {
    let w: Named<f32, (In, Out)> = serde_json::from_str("").unwrap();
    println!("{w}");
}
