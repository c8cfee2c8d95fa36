//~ words: `Time` | DataTime` | DataFeature` is expected
//! A window slides along time.

use typed_dims::nn::conv::conv;
use typed_dims::prelude::*;
use typed_dims::types::role::{FilterOutChannel, FilterSpatial};
use typed_dims::operators::window::Window;

dims! {
    pub struct Channel: DataChannel;
    pub struct Time: DataTime;
    pub struct Out: FilterOutChannel;
    pub struct Steps: FilterSpatial;
}

fn filtered(x: Tensor<f32, (Channel, Time)>, w: Tensor<f32, (Channel, Out, Steps)>) -> Tensor<f32, (Time, Out)> {
    conv(x, w, Channel, Time, Steps, &Window::new())
}

fn main() {}
