//~ words: this function takes `f64`
use typed_dims::prelude::*;

dims! { pub struct Batch; pub struct Feat; }

fn main() {
    let x = ones::<f64, _>((Batch.of(2), Feat.of(3)));
    let roots = vmap(|x: f64| x.sqrt(), Batch)(&x);
}
