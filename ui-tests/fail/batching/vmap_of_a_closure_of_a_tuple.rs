//~ words: not an array or a tuple | |(x, y)|
use typed_dims::prelude::*;

dims! { pub struct Batch; pub struct Seq; }

fn dots(x: &Tensor<f32, (Batch, Seq)>, y: &Tensor<f32, (Batch, Seq)>) -> Tensor<f32, (Batch,)> {
    vmap(|(x, y): (Tensor<f32, (Seq,)>, Tensor<f32, (Seq,)>)| x.dot(&y, Seq), Batch)((x, y))
}

fn main() {}
