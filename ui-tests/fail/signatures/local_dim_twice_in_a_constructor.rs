//~ words: is named twice in | Other
use typed_dims::prelude::*;

fn main() {
    dims!(i = 2, j = 3);
    let x = zeros::<f32, _>((i, j, i));
    println!("{x}");
}
