//~ words: mismatched types | Evaluated | Binary
use typed_dims::prelude::*;

dims! { pub struct Batch; pub struct Time; pub struct Feature; }

fn centered(x: &Tensor<f32, (Batch, Time, Feature)>) -> Tensor<f32, (Batch, Time, Feature)> {
    (x - x.mean(Time)) / (x.square().mean(Time) + 1.0e-5).sqrt()
}

fn main() {
    println!("{}", centered(&ones((Batch.of(2), Time.of(3), Feature.of(4)))));
}
