//~ words: is not a list of dims with sizes | Batch.of(2)
use typed_dims::prelude::*;

fn main() {
    let _ = zeros::<f32, _>((2, 3));
}
