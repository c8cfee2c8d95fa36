//~ words: is not made of tensors
use typed_dims::prelude::*;
use typed_dims::program::jit;

dims! { pub struct Row; }
type Line = Tensor<f32, (Row,)>;

fn main() {
    let doubled = jit::<&Line, _>(|x| x * 2.0);
}
