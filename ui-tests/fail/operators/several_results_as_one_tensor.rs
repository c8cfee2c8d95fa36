//~ words: is not a tensor | several results | `.0` of a tuple
use typed_dims::prelude::*;

dims! { struct Class; }

fn best(scores: &Tensor<f32, (Class,)>) -> Array1<f32> {
    scores.topk(Class, 3).order(Class)
}

fn main() {
    let _ = best;
}
