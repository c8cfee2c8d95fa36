//~ words: not a constant of `f32`
use typed_dims::prelude::*;

dims! {
    pub struct Time;
    pub struct Feat;
    pub struct Out;
}

fn main() {
    let x = ones::<f32, _>((Time.of(4), Feat.of(8))).stream((Time, Feat), Feat);
    let w = ones::<f32, _>((Feat.of(8), Out.of(2))).stream((Feat, Out), Out);
    let _ = x.contract(w, Feat);
}
