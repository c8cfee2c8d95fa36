//~ words: `Rows` | DataFeature` | FilterSpatial` is expected
//! The window dim of the filter has the role of an image position.

use typed_dims::nn::conv::conv;
use typed_dims::prelude::*;
use typed_dims::types::role::FilterOutChannel;
use typed_dims::operators::window::Window;

dims! {
    pub struct Channel: DataChannel;
    pub struct Height: DataFeature;
    pub struct Out: FilterOutChannel;
    pub struct Rows: DataFeature;
}

fn filtered(x: Tensor<f32, (Channel, Height)>, w: Tensor<f32, (Channel, Out, Rows)>) -> Tensor<f32, (Height, Out)> {
    conv(x, w, Channel, Height, Rows, &Window::new())
}

fn main() {}
