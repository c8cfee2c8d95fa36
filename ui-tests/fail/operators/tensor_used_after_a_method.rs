//~ words: E0382 | `x` moved due to this method call | clone
use typed_dims::prelude::*;

dims! { pub struct Time; }

fn main() {
    let x: Tensor<f32, (Time,)> = ones(Time.of(3));
    let y = x.exp().eval();
    println!("{}", x + y);
}
