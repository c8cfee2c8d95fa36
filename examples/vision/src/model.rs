//! A residual network (K. He et al., 2016).

use crate::layers::{Channel, Column, Maps, Mode, NormalConv, Row};
use digits::{Class, Example, Labels};
use typed_dims::creation::random::split;
use typed_dims::grad::loss_and_grad_with;
use typed_dims::nn::Linear;
use typed_dims::prelude::*;

/// `y = relu(x + second(relu(first(x))))`
#[derive(Clone, Parameters)]
struct Block {
    first: NormalConv,
    second: NormalConv,
}

impl Block {
    fn random(channels: usize, seed: u64) -> Self {
        Block {
            first: NormalConv::random(channels, channels, split(seed, 0)),
            second: NormalConv::random(channels, channels, split(seed, 1)),
        }
    }

    fn apply(&self, x: &Maps, mode: &mut Mode) -> Maps {
        let inner = self.first.apply(x, mode).relu().eval();
        (x + self.second.apply(&inner, mode)).relu().eval()
    }
}

/// The weights of the network. Its gradient has the same type.
#[derive(Clone, Parameters)]
pub struct Network {
    stem: NormalConv,
    /// The first half of the blocks, rounded down, works at the resolution of the images, and the
    /// rest at half the resolution.
    blocks: Vec<Block>,
    /// Computes the scores of the classes.
    head: Linear<(Channel,), (Class,)>,
}

impl Network {
    /// Random weights.
    pub fn random(channels: usize, blocks: usize, seed: u64) -> Self {
        let blocks = (0..blocks).map(|at| Block::random(channels, split(seed, at as u64 + 2)));
        Network {
            stem: NormalConv::random(1, channels, split(seed, 0)),
            blocks: blocks.collect(),
            head: Linear::new(Channel.of(channels), Class, split(seed, 1)),
        }
    }

    /// The scores of the classes for each image.
    pub fn scores(&self, images: &Maps, mode: &mut Mode) -> Tensor<f32, (Example, Class)> {
        let mut x = self.stem.apply(images, mode).relu().eval();
        for (at, block) in self.blocks.iter().enumerate() {
            if at == self.blocks.len() / 2 {
                x = x.max_pool((Row, Column), 2, &Window::new().stride(2));
            }
            x = block.apply(&x, mode);
        }
        self.head.apply(&x.mean((Row, Column)))
    }

    /// The most likely class of each image.
    pub fn classify(&self, images: &Maps) -> Labels {
        self.scores(images, &mut Mode::Inference).argmax(Class).cast().eval()
    }

    /// The mean cross-entropy of a batch, and its gradient. Updates the running moments.
    pub fn gradient(&mut self, images: &Maps, labels: &Labels) -> (Tensor<f32, ()>, Network) {
        let (loss, gradient, mode) = loss_and_grad_with(
            |network| {
                let mut mode = Mode::training();
                let scores = network.scores(images, &mut mode);
                (scores.cross_entropy(Class, labels).mean(Example), mode)
            },
            &mut *self,
        );
        let mut moments = mode.into_moments().into_iter();
        self.stem.remember(&mut moments);
        for block in &mut self.blocks {
            block.first.remember(&mut moments);
            block.second.remember(&mut moments);
        }
        (loss, gradient)
    }
}
