//~ words: Feat | among the dims `S` | Rest<B>
use typed_dims::prelude::*;

dims! { struct Feat; }

fn probabilities<S: Dims>(x: &Named<f32, S>) -> Named<f32, S> {
    x.softmax(Feat)
}

fn main() {}
