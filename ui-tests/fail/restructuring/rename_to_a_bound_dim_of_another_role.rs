//~ words: `Channel` is already bound
use typed_dims::prelude::*;

dims! {
    pub struct Batch: DataBatch;
    pub struct Channel: DataChannel;
}

fn main() {
    let x = zeros::<f32, _>((Batch.of(2), Channel.of(3)));
    let _ = x.rename(Batch, Channel);
}
