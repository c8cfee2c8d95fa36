//~ words: `Thing` is not a role
use typed_dims::prelude::*;

struct Thing;
roles! {
    pub struct Pixel: Thing;
}

fn main() {
    dims!(i: Pixel = 2);
    let _ = (i, Thing);
}
