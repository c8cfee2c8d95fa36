//~ words: the parameter type `Further` may not live long enough
use typed_dims::grad::checkpoint;
use typed_dims::prelude::*;

dims! {
    pub struct Example;
    pub struct Feat;
}

#[batched]
fn layer(x: &Tensor<f32, (Feat,)>) -> Tensor<f32, (Feat,)> {
    checkpoint(|x| x.square().eval(), x)
}

fn main() {
    let _ = layer(zeros::<f32, _>((Example.of(2), Feat.of(3))));
}
