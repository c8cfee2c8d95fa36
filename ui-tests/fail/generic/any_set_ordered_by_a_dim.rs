//~ words: Feat | among the dims `S` | Rest<B>
use typed_dims::prelude::*;

dims! { struct Feat; }

fn listed<S: Dims>(x: &Named<f32, S>) -> Array1<f32> {
    x.order(Feat)
}

fn main() {}
