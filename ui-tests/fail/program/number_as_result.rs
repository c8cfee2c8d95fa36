//~ words: is not made of tensors
use typed_dims::grad::value_and_grad;
use typed_dims::prelude::*;
use typed_dims::program::record;

dims! { pub struct Row; }
type Line = Tensor<f32, (Row,)>;

fn main() {
    let x: Line = ones(Row.of(3));
    let program = record(|x: &Line| value_and_grad(|x: &Line| x.square().sum(Row), x), &x);
}
