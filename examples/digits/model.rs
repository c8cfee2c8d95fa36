//! A network of two layers. Every tensor has its dims in its type; every gradient is a contraction.

use rand::Rng;
use typed_dims::prelude::*;

dims! {
    /// Images that are looked at together.
    pub struct Example;
    /// Pixels of an image, row by row.
    pub struct Pixel = 64;
    /// Units between the two layers.
    pub struct Hidden;
    /// What an image can show.
    pub struct Class = 10;
}

/// Images, each pixel between 0 (white) and 1 (black).
pub type Images = Tensor<f32, (Example, Pixel)>;
/// What each image shows: an index along [`Class`].
pub type Labels = Tensor<isize, (Example,)>;

/// The weights of the network; also a step for each of them.
pub struct Network {
    w1: Tensor<f32, (Pixel, Hidden)>,
    b1: Tensor<f32, (Hidden,)>,
    w2: Tensor<f32, (Hidden, Class)>,
    b2: Tensor<f32, (Class,)>,
}

impl Network {
    /// Random weights, scaled as in He et al. (2015).
    pub fn random(hidden: usize, rng: &mut impl Rng) -> Self {
        let mut uniform = |fan_in: usize| {
            let bound = (6.0 / fan_in as f32).sqrt();
            rng.random_range(-bound..bound)
        };
        Network {
            w1: from_fn((Pixel, Hidden.of(hidden)), |_| uniform(Pixel::SIZE)),
            w2: from_fn((Hidden.of(hidden), Class), |_| uniform(hidden)),
            ..Network::zeros(hidden)
        }
    }

    fn zeros(hidden: usize) -> Self {
        let hidden = Hidden.of(hidden);
        Network {
            w1: zeros((Pixel, hidden)),
            b1: zeros(hidden),
            w2: zeros((hidden, Class)),
            b2: zeros(Class),
        }
    }

    fn hidden(&self, images: &Images) -> Tensor<f32, (Example, Hidden)> {
        ((images * &self.w1).sum(Pixel) + &self.b1).relu().eval()
    }

    fn scores(&self, hidden: &Tensor<f32, (Example, Hidden)>) -> Tensor<f32, (Example, Class)> {
        ((hidden * &self.w2).sum(Hidden) + &self.b2).eval()
    }

    /// The most likely class of each image.
    pub fn classify(&self, images: &Images) -> Labels {
        self.scores(&self.hidden(images)).argmax(Class).cast().eval()
    }

    /// The mean cross-entropy, and its derivative by every weight.
    pub fn gradients(&self, images: &Images, labels: &Labels) -> (f32, Network) {
        let hidden = self.hidden(images);
        let log_p = self.scores(&hidden).log_softmax(Class);

        let one_hot = labels.eq(Class).cast::<f32>();
        let loss = -(&log_p * &one_hot).sum(Class).mean(Example).order(());

        let d_scores = ((log_p.exp() - one_hot) / images.size(Example) as f32).eval();
        let d_hidden = select((&hidden).gt(0.0), (&d_scores * &self.w2).sum(Class), 0.0).eval();
        let gradients = Network {
            w1: (images * &d_hidden).sum(Example),
            b1: d_hidden.sum(Example),
            w2: (&hidden * &d_scores).sum(Example),
            b2: d_scores.sum(Example),
        };
        (loss, gradients)
    }
}

/// Gradient descent with momentum.
pub struct Descent {
    rate: f32,
    momentum: f32,
    velocity: Network,
}

impl Descent {
    /// Nothing has moved yet.
    pub fn new(network: &Network, rate: f32, momentum: f32) -> Self {
        Descent { rate, momentum, velocity: Network::zeros(network.b1.size(Hidden)) }
    }

    /// Moves every weight against its gradient.
    pub fn step(&mut self, network: &mut Network, gradients: &Network) {
        macro_rules! descend {
            ($($weight:ident),*) => {$(
                self.velocity.$weight *= self.momentum;
                self.velocity.$weight += &gradients.$weight;
                network.$weight -= &self.velocity.$weight * self.rate;
            )*};
        }
        descend!(w1, b1, w2, b2);
    }
}
