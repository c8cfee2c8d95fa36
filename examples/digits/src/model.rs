//! A network of two layers. Each tensor has its dims in its type, and the gradient of a network is
//! a network.

use digits::{Class, Example, Images, Labels, Pixel};
use rand::Rng;
use typed_dims::grad::loss_and_grad;
use typed_dims::prelude::*;

dims! {
    /// Units between the two layers.
    pub struct Hidden;
}

/// The weights of the network, or their gradients or updates.
#[derive(Parameters)]
pub struct Network {
    w1: Tensor<f32, (Pixel, Hidden)>,
    b1: Tensor<f32, (Hidden,)>,
    w2: Tensor<f32, (Hidden, Class)>,
    b2: Tensor<f32, (Class,)>,
}

impl Network {
    /// Random weights, scaled as in He et al. (2015). Biases are 0.
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

    /// The mean cross-entropy.
    fn loss(&self, images: &Images, labels: &Labels) -> Tensor<f32, ()> {
        self.scores(&self.hidden(images)).cross_entropy(Class, labels).mean(Example)
    }

    /// The loss and its gradient with respect to all weights.
    pub fn gradients(&self, images: &Images, labels: &Labels) -> (Tensor<f32, ()>, Network) {
        loss_and_grad(|network| network.loss(images, labels), self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::SeedableRng;
    use rand::rngs::StdRng;

    /// The loss and its gradients, derived by hand.
    fn by_hand(network: &Network, images: &Images, labels: &Labels) -> (f32, Network) {
        let hidden = network.hidden(images);
        let log_p = network.scores(&hidden).log_softmax(Class);

        let one_hot = labels.eq(Class).cast::<f32>();
        let loss = -(&log_p * one_hot).sum(Class).mean(Example).order(());

        let d_scores = ((log_p.exp() - one_hot) / images.size(Example) as f32).eval();
        let d_hidden = select((&hidden).gt(0.0), (&d_scores * &network.w2).sum(Class), 0.0).eval();
        let gradients = Network {
            w1: (images * &d_hidden).sum(Example),
            b1: d_hidden.sum(Example),
            w2: (&hidden * &d_scores).sum(Example),
            b2: d_scores.sum(Example),
        };
        (loss, gradients)
    }

    #[test]
    fn gradients_are_those_worked_out_by_hand() {
        let mut rng = StdRng::seed_from_u64(1);
        let network = Network::random(5, &mut rng);
        let images = from_fn((Example.of(3), Pixel), |_| rng.random_range(0.0..1.0));
        let labels = from_vec(Example.of(3), vec![4, 0, 9]);
        let (loss, found) = network.gradients(&images, &labels);
        let loss = loss.order(());
        let (expected_loss, expected) = by_hand(&network, &images, &labels);
        assert!((loss - expected_loss).abs() < 1e-6, "{loss} instead of {expected_loss}");
        let differences = found.zip_elements(&expected, |a: f32, b| (a - b).abs());
        let Network { w1, b1, w2, b2 } = differences;
        let greatest = [
            w1.max((Pixel, Hidden)).order(()),
            b1.max(Hidden).order(()),
            w2.max((Hidden, Class)).order(()),
            b2.max(Class).order(()),
        ];
        assert!(greatest.iter().all(|&difference| difference < 1e-6), "{greatest:?}");
    }

    #[test]
    fn gradients_are_slopes() {
        let mut rng = StdRng::seed_from_u64(1);
        let units = 5;
        let network = Network::random(units, &mut rng);
        let images = from_fn((Example.of(3), Pixel), |_| rng.random_range(0.0..1.0));
        let labels = from_vec(Example.of(3), vec![4, 0, 9]);
        let (_, gradients) = network.gradients(&images, &labels);

        let step = 0.01;
        let slope = |bump: &dyn Fn(&mut Network, f32)| {
            let loss = |by| {
                let mut bumped = Network {
                    w1: network.w1.clone(),
                    b1: network.b1.clone(),
                    w2: network.w2.clone(),
                    b2: network.b2.clone(),
                };
                bump(&mut bumped, by);
                bumped.loss(&images, &labels).order(())
            };
            (loss(step) - loss(-step)) / (2.0 * step)
        };
        let hidden = Hidden.of(units);
        for unit in 0..units as isize {
            let (pixel, class) = (7 * unit, 2 * unit);
            let by_w1 = slope(&|net, by| net.w1 += select(Pixel.eq(pixel) & hidden.eq(unit), by, 0.0));
            let by_b1 = slope(&|net, by| net.b1 += select(hidden.eq(unit), by, 0.0));
            let by_w2 = slope(&|net, by| net.w2 += select(hidden.eq(unit) & Class.eq(class), by, 0.0));
            let by_b2 = slope(&|net, by| net.b2 += select(Class.eq(class), by, 0.0));

            let close = |slope: f32, gradient: f32| {
                assert!((slope - gradient).abs() < 2e-3, "{gradient} instead of {slope}")
            };
            close(by_w1, (&gradients.w1).index(Pixel, pixel).index(Hidden, unit).order(()));
            close(by_b1, (&gradients.b1).index(Hidden, unit).order(()));
            close(by_w2, (&gradients.w2).index(Hidden, unit).index(Class, class).order(()));
            close(by_b2, (&gradients.b2).index(Class, class).order(()));
        }
    }
}
