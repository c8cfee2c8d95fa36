//~ words: does not have a weight for each class
use typed_dims::nn::CrossEntropy;
use typed_dims::prelude::*;

dims! { pub struct Batch; pub struct Class; }

fn main() {
    let (logits, labels) = (zeros::<f32, _>((Batch.of(2), Class.of(3))), zeros::<usize, _>(Batch.of(2)));
    let weights = ones::<f32, _>(Batch.of(2));
    let losses = logits.cross_entropy_with(Class, &labels, CrossEntropy::new().weights(&weights));
}
