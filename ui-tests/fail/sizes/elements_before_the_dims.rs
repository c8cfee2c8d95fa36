//~ words: is not a list of dims with sizes | Batch.of(2)
//! Constructors take the dims first.

use typed_dims::prelude::*;

dims! { struct Batch; }

fn main() {
    let _ = from_vec(vec![1.0_f32, 2.0], Batch.of(2));
}
