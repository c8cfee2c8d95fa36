//~ words: `f32` is not made of tensors
use typed_dims::grad::Parameters;

fn size(parameters: &impl Parameters) -> usize {
    parameters.count_elements()
}

fn main() {
    println!("{}", size(&3.0_f32));
}
