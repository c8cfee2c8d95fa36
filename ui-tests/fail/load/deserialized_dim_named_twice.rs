//~ words: dimension `Feat` is named twice in `(Feat, Feat)`
use typed_dims::prelude::*;

dims! {
    struct Feat;
}

fn main() {
    let w: Named<f32, (Feat, Feat)> = serde_json::from_str("").unwrap();
    println!("{w}");
}
