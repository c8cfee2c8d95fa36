//! The layer of a convolutional network: a convolution with its normalization.

use digits::Example;
use typed_dims::init::he_normal;
use typed_dims::nn::norm::{BatchNorm, ChannelMoments, NormMode};
use typed_dims::nn::{Conv, NoBias};
use typed_dims::prelude::*;

dims! {
    /// Channels of an image or a feature map.
    pub struct Channel;
    /// Output channels of a convolution.
    pub struct Made;
    /// Rows of an image, from the top.
    pub struct Row;
    /// Columns of an image, from the left.
    pub struct Column;
    /// Rows of a kernel.
    pub struct KernelRow = 3;
    /// Columns of a kernel.
    pub struct KernelColumn = 3;
}

/// Images or feature maps.
pub type Maps = Tensor<f32, (Example, Channel, Row, Column)>;

/// Which moments the normalizations use: those of the batch or the running ones.
pub type Mode = NormMode<(Channel,)>;
/// The moments of one normalization.
pub type Moments = ChannelMoments<(Channel,)>;

/// A 3 x 3 convolution with zero padding, followed by batch normalization.
#[derive(Clone, Parameters)]
pub struct NormalConv {
    conv: Conv<(Channel,), (Made,), (KernelRow, KernelColumn), f32, NoBias>,
    norm: BatchNorm<(Channel,)>,
}

impl NormalConv {
    /// Random kernels, scaled as in He et al. (2015).
    pub fn random(channels: usize, made: usize, seed: u64) -> Self {
        let dims = (Channel.of(channels), Made.of(made), KernelRow, KernelColumn);
        let weight = he_normal(dims, (Channel, KernelRow, KernelColumn), seed);
        NormalConv { conv: Conv { weight, bias: NoBias }, norm: BatchNorm::new(Channel.of(made)) }
    }

    /// Convolves and normalizes the images.
    pub fn apply(&self, x: &Maps, mode: &mut Mode) -> Maps {
        let made = self.conv.apply(x, (Row, Column), &Window::new().padding_same());
        self.norm.apply_in(&made.rename(Made, Channel).eval(), (Example, Row, Column), mode)
    }

    /// Updates the running moments with the next item of `moments`, which yields the moments of a
    /// batch layer by layer. Call this method on the layers in the order in which
    /// [`apply`](NormalConv::apply) was called.
    pub fn remember(&mut self, moments: &mut impl Iterator<Item = Moments>) {
        self.norm.remember(&moments.next().expect("each layer has recorded its moments"));
    }
}
