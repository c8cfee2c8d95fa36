//~ words: the function takes | Named<f32, (Row,)> | Named<f32, (Col,)>
use typed_dims::prelude::*;
use typed_dims::program::jit;

dims! { pub struct Row; pub struct Col; }
type Line = Tensor<f32, (Row,)>;

fn main() {
    let doubled = jit::<&Line, _>(|x| (x * 2.0).eval());
    let y = doubled.call(&ones::<f32, _>(Col.of(3)));
}
