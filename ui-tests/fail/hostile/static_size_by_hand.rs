//~ words: missing: `SEAL` | ChangesSize
use typed_dims::prelude::*;
use typed_dims::types::set::False;
use typed_dims::types::size::ChangesSize;

dims! { struct I = 4; }

/// A dim with a static size, and a part of it with another size.
impl ChangesSize<I> for False {}

fn main() {
    let _ = ones::<f32, _>(I).slice(I, 1..);
}
