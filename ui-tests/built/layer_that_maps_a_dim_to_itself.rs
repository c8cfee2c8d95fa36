//~ words: dimension `Width` is named twice in `Linear` | name another dim | layer_that_maps_a_dim_to_itself.rs
use typed_dims::nn::Linear;
use typed_dims::prelude::*;

dims! { pub struct Batch; pub struct Width; }

fn main() {
    let layer = Linear::<(Width,), (Width,)>::new(Width.of(3), Width.of(3), 1);
    println!("{}", layer.bias);
}
