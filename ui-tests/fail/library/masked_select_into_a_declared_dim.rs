//~ words: LocalDim
use typed_dims::prelude::*;

dims! { struct Time; struct Track; }

fn tracks(x: &Tensor<f32, (Time,)>) -> f32 {
    x.masked_select(x.gt(0.0), Time, Track).sum(Track).order(())
}

fn main() {}
