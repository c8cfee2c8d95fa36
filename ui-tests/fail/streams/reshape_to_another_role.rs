//~ words: Channel | DataTime
use typed_dims::prelude::*;

dims! {
    pub struct Batch: DataBatch = 2;
    pub struct Channel: DataChannel = 3;
    pub struct Step: DataTime = 3;
}

fn over_time(x: &Stream<f32, (Batch, Channel), Channel>) {
    let _ = x.reshape((Batch, Step));
}

fn main() {}
