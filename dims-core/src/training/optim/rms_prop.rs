//! RMSprop.

use super::implement::optimizer;
use super::moments::decayed;
use super::settings::{at_least_0, below_1, decaying, settings};
use super::update::{OfStep, compiled};
use super::{Schedule, State};
use crate::error::DimError;
use crate::grad::Parameters;
use kernels::map::formula::{Formula, Quantity};

/// `v = alpha * v + (1 - alpha) * g^2`, then `p -= rate * g / (sqrt(v) + epsilon)`, where `g` is
/// the gradient. This is `torch.optim.RMSprop`.
///
/// * With [`momentum`](RmsProp::momentum):
///   `velocity = momentum * velocity + g / (sqrt(v) + epsilon)`, then `p -= rate * velocity`.
/// * With [`centered`](RmsProp::centered): `m = alpha * m + (1 - alpha) * g`, and `max(v - m^2, 0)`
///   replaces `v` under the root.
///
/// (T. Tieleman, G. Hinton, 2012, "Lecture 6.5: RMSprop", Neural networks for machine learning.
/// Centered: A. Graves, 2013, "Generating sequences with recurrent neural networks".)
///
/// ```
/// use typed_dims::optim::RmsProp;
/// use typed_dims::prelude::*;
///
/// dims! { struct Feature; }
/// let (mut w, gradient) = (ones::<f64, _>(Feature.of(2)), full(Feature.of(2), 0.5));
/// RmsProp::new(0.01).step(&mut w, &gradient); // v = 0.01 * 0.25, so the root is 0.05
/// assert!((w.order(Feature)[0] - (1.0 - 0.01 * 0.5 / 0.05)).abs() < 1e-7);
/// ```
#[derive(Clone, Debug)]
pub struct RmsProp<P> {
    pub(super) state: State<P>,
    pub(super) settings: RmsPropSettings,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct RmsPropSettings {
    pub(super) alpha: f64,
    pub(super) epsilon: f64,
    pub(super) momentum: f64,
    pub(super) weight_decay: f64,
    pub(super) centered: bool,
    pub(super) maximize: bool,
}

impl<P> RmsProp<P> {
    /// Makes an optimizer with a learning rate: a number, or a [`Schedule`]. PyTorch's default is
    /// 0.01.
    #[rustfmt::skip] // rustc quotes the next line in errors
    pub fn new(rate: impl Into<Schedule>) -> Self where P: Parameters {
        let settings = RmsPropSettings {
            alpha: 0.99,
            epsilon: 1e-8,
            momentum: 0.0,
            weight_decay: 0.0,
            centered: false,
            maximize: false,
        };
        RmsProp { state: State::new(rate.into()), settings }
    }
}

settings! { RmsProp, RmsPropSettings {
    /// The decay rate of the mean of `g^2` and, with [`centered`](RmsProp::centered), of the mean
    /// of `g`: 0 or more, less than 1, default 0.99.
    alpha,
    /// The number added to the denominator: 0 or more, default 1e-8.
    epsilon,
    /// The share of the velocity that is kept at each step: 0 or more, default 0.
    momentum,
    /// Adds this multiple of each parameter to its gradient: 0 or more, default 0.
    weight_decay,
} {
    /// Divides the gradient by the root of its variance instead of the root of its mean square.
    centered,
    /// Maximizes: steps along the gradient instead of against it.
    maximize,
} }

impl RmsPropSettings {
    fn check(&self) -> Result<(), DimError> {
        below_1("RmsProp", "alpha", self.alpha)?;
        at_least_0("RmsProp", "epsilon", self.epsilon)?;
        at_least_0("RmsProp", "momentum", self.momentum)?;
        at_least_0("RmsProp", "weight decay", self.weight_decay)
    }

    fn form(&self) -> (bool, bool) {
        (self.centered, self.momentum != 0.0)
    }

    #[cfg_attr(not(unoptimized), inline(always))]
    fn new_square<Q: Quantity>(&self, square: Q, g: Q) -> Q {
        g.constant(self.alpha) * square + g.constant(1.0 - self.alpha) * g * g
    }

    #[cfg_attr(not(unoptimized), inline(always))]
    fn new_mean<Q: Quantity>(&self, mean: Q, g: Q) -> Q {
        mean + g.constant(1.0 - self.alpha) * (g - mean)
    }

    /// `square` is the mean square or the variance of the gradient.
    #[cfg_attr(not(unoptimized), inline(always))]
    fn scaled<Q: Quantity>(&self, g: Q, square: Q) -> Q {
        g / (square.sqrt() + g.constant(self.epsilon))
    }

    #[cfg_attr(not(unoptimized), inline(always))]
    fn centered<Q: Quantity>(&self, g: Q, mean: Q, square: Q) -> Q {
        let (variance, zero) = (square - mean * mean, g.constant(0.0));
        self.scaled(g, Q::choose(variance.is_less(zero), zero, variance))
    }
}

decaying! { RmsPropSettings }
compiled! { RmsPropSettings: 1 2 1; RmsPropSettings: 1 3 1; RmsPropSettings: 1 4 1; }
optimizer! { RmsProp by RmsPropSettings::form => {
    (false, false) => 1 2 ["square"],
    (false, true) => 1 3 ["square", "velocity"],
    (true, false) => 1 3 ["square", "mean"],
    (true, true) => 1 4 ["square", "velocity", "mean"],
} }

impl OfStep<1> for RmsPropSettings {
    fn of_step<Q: Quantity>(&self, rate: Q, _: Q) -> [Q; 1] {
        [rate]
    }
}

impl Formula<1, 2, 1> for RmsPropSettings {
    const NAME: &'static str = "rmsprop";

    #[cfg_attr(not(unoptimized), inline(always))]
    fn apply<Q: Quantity>(&self, [rate]: [Q; 1], [p, square]: [Q; 2], [g]: [Q; 1]) -> [Q; 2] {
        let g = decayed(g, p, self.weight_decay, self.maximize);
        let square = self.new_square(square, g);
        [p - rate * self.scaled(g, square), square]
    }
}

/// With `centered`, the third tensor is the mean of the gradient. Otherwise, it is the velocity.
impl Formula<1, 3, 1> for RmsPropSettings {
    const NAME: &'static str = "rmsprop with momentum, or centered";

    #[cfg_attr(not(unoptimized), inline(always))]
    fn apply<Q: Quantity>(&self, [rate]: [Q; 1], [p, square, third]: [Q; 3], [g]: [Q; 1]) -> [Q; 3] {
        let g = decayed(g, p, self.weight_decay, self.maximize);
        let square = self.new_square(square, g);
        if self.centered {
            let mean = self.new_mean(third, g);
            return [p - rate * self.centered(g, mean, square), square, mean];
        }
        let velocity = p.constant(self.momentum) * third + self.scaled(g, square);
        [p - rate * velocity, square, velocity]
    }
}

impl Formula<1, 4, 1> for RmsPropSettings {
    const NAME: &'static str = "rmsprop with momentum, centered";

    #[cfg_attr(not(unoptimized), inline(always))]
    fn apply<Q: Quantity>(&self, [rate]: [Q; 1], [p, square, velocity, mean]: [Q; 4], [g]: [Q; 1]) -> [Q; 4] {
        let g = decayed(g, p, self.weight_decay, self.maximize);
        let (square, mean) = (self.new_square(square, g), self.new_mean(mean, g));
        let velocity = p.constant(self.momentum) * velocity + self.centered(g, mean, square);
        [p - rate * velocity, square, velocity, mean]
    }
}
