//~ words: `Channel` has the role | DataChannel`, but | DataFeature` is expected
//! Roles are fine enough to tell channels from positions in space.

use typed_dims::prelude::*;

dims! {
    pub struct Channel: DataChannel;
    pub struct Height: DataFeature;
}

fn pooled(x: &Tensor<f32, (Channel, Height)>) {
    let _ = x.max_pool(Channel, 2, &Window::new());
}

fn main() {}
