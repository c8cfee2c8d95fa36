//~ words: also has `(Batch,)` | `x.index(Batch, 0)`
use typed_dims::prelude::*;

dims! {
    struct Batch;
    struct Seq;
    struct Key;
}

fn main() {
    let scores = zeros::<f32, _>((Batch.of(2), Seq.of(3), Key.of(3)));
    scores.heat_map(Seq, Key);
}
