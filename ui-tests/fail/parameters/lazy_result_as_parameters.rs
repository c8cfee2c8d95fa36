//~ words: is not made of tensors | `x.eval()`
use typed_dims::grad::Parameters;
use typed_dims::prelude::*;

dims! { pub struct Width; }

fn size(parameters: &impl Parameters) -> usize {
    parameters.count_elements()
}

fn main() {
    let x = ones::<f32, _>(Width.of(2));
    println!("{}", size(&x.exp()));
}
