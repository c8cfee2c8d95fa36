//~ words: cannot be united | S: Union<S, Out = S>
use typed_dims::prelude::*;

dims! { struct Batch; }

fn squared_difference<S: Dims>(x: &Named<f32, S>, y: &Named<f32, S>) -> Named<f32, S> {
    (x - y).square().eval()
}

fn main() {
    let x = ones::<f32, _>(Batch.of(2));
    println!("{}", squared_difference(&x, &x));
}
