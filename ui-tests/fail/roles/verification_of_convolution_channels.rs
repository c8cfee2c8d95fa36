//~ words: `Width` | DataFeature` | `AnyChannel` is expected
//! Features of the data are used as the channels of a convolution.

use typed_dims::nn::conv::conv;
use typed_dims::prelude::*;
use typed_dims::types::role::{FilterOutChannel, FilterSpatial};
use typed_dims::operators::window::Window;

dims! {
    pub struct Channel: DataChannel;
    pub struct Height: DataFeature;
    pub struct Width: DataFeature;
    pub struct Out: FilterOutChannel;
    pub struct Rows: FilterSpatial;
}

fn filtered(x: Tensor<f32, (Channel, Height, Width)>, w: Tensor<f32, (Width, Out, Rows)>) -> Tensor<f32, (Channel, Height, Out)> {
    conv(x, w, Width, Height, Rows, &Window::new())
}

fn main() {}
