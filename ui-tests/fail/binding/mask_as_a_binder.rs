//~ words: cannot be bound to the axes of an array | bool
use typed_dims::prelude::*;

dims! {
    struct Feat;
}

fn kept(a: &Array2<f32>, mask: &Array1<bool>) -> f32 {
    a.at((mask, Feat)).sum(Feat).order(())
}

fn main() {
    let _ = kept;
}
