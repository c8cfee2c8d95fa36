//! RAdam.

use super::implement::optimizer;
use super::moments::{betas, check_moments, decayed, kept, next_moments};
use super::settings::{decaying, settings};
use super::update::{OfStep, compiled};
use super::{Schedule, State};
use crate::error::DimError;
use crate::grad::Parameters;
use kernels::map::formula::{Formula, Quantity};

/// Adam that does not divide by the root of the mean of squares until this mean is reliable. With
/// Adam's `m` and `v` at step `t`, counted from 1, let `most = 2 / (1 - beta2) - 1` and
/// `long = most - 2 * t * beta2^t / (1 - beta2^t)`. If `long > 5`, then
/// `p -= rate * m / (1 - beta1^t) * r * sqrt(1 - beta2^t) / (sqrt(v) + epsilon)`, where
/// `r = sqrt((long - 4) * (long - 2) * most / ((most - 4) * (most - 2) * long))`. Otherwise
/// `p -= rate * m / (1 - beta1^t)`. This is `torch.optim.RAdam`.
///
/// (L. Liu and others, 2020, "On the variance of the adaptive learning rate and beyond".)
///
/// ```
/// use typed_dims::optim::RAdam;
/// use typed_dims::prelude::*;
///
/// dims! { struct Feature; }
/// let (mut w, gradient) = (ones::<f64, _>(Feature.of(2)), full(Feature.of(2), 0.5));
/// RAdam::new(0.01).step(&mut w, &gradient); // the first steps use the mean alone
/// assert!((w.order(Feature)[0] - 0.995).abs() < 1e-12);
/// ```
#[derive(Clone, Debug)]
pub struct RAdam<P> {
    pub(super) state: State<P>,
    pub(super) settings: RAdamSettings,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct RAdamSettings {
    pub(super) betas: (f64, f64),
    pub(super) epsilon: f64,
    pub(super) weight_decay: f64,
    pub(super) decoupled: bool,
    pub(super) maximize: bool,
}

impl<P> RAdam<P> {
    /// Makes an optimizer with a learning rate: a number, or a [`Schedule`]. PyTorch's default is
    /// 0.001.
    #[rustfmt::skip] // rustc quotes the next line in errors
    pub fn new(rate: impl Into<Schedule>) -> Self where P: Parameters {
        let settings = RAdamSettings {
            betas: (0.9, 0.999),
            epsilon: 1e-8,
            weight_decay: 0.0,
            decoupled: false,
            maximize: false,
        };
        RAdam { state: State::new(rate.into()), settings }
    }
}

betas! { RAdam "0.9 and 0.999" }

settings! { RAdam, RAdamSettings {
    /// The number added to the denominator: 0 or more, default 1e-8.
    epsilon,
    /// Adds this multiple of each parameter to its gradient: 0 or more, default 0.
    weight_decay,
} {
    /// Decouples the weight decay from the moments, as in [`AdamW`](super::AdamW):
    /// `p -= rate * weight_decay * p`.
    decoupled,
    /// Maximizes: steps along the gradient instead of against it.
    maximize,
} }

impl RAdamSettings {
    fn check(&self) -> Result<(), DimError> {
        check_moments("RAdam", self.betas, self.epsilon, self.weight_decay)
    }
}

decaying! { RAdamSettings }
compiled! { RAdamSettings: 3 3 1; }
optimizer! { RAdam by |_: &RAdamSettings| () => {
    () => 3 3 ["mean", "square"],
} }

impl OfStep<3> for RAdamSettings {
    fn of_step<Q: Quantity>(&self, rate: Q, step: Q) -> [Q; 3] {
        let number = |value: f64| rate.constant(value);
        let (one, two, four) = (number(1.0), number(2.0), number(4.0));
        let most = number(2.0 / (1.0 - self.betas.1) - 1.0);
        let power = number(self.betas.1).powf(step);
        let long = most - two * step * power / (one - power);
        let rectified = (long - four) * (long - two) * most / ((most - four) * (most - two) * long);
        let factor = (rectified * (one - power)).sqrt();
        // 0 marks a step that does not divide by the root.
        let factor = Q::choose(number(5.0).is_less(long), factor, number(0.0));
        let kept = if self.decoupled { kept(rate, self.weight_decay) } else { one };
        [rate / (one - number(self.betas.0).powf(step)), factor, kept]
    }
}

impl Formula<3, 3, 1> for RAdamSettings {
    const NAME: &'static str = "radam";

    #[cfg_attr(not(unoptimized), inline(always))]
    fn apply<Q: Quantity>(
        &self,
        [rate, factor, kept]: [Q; 3],
        [p, mean, square]: [Q; 3],
        [g]: [Q; 1],
    ) -> [Q; 3] {
        let g = decayed(g, p, if self.decoupled { 0.0 } else { self.weight_decay }, self.maximize);
        let [mean, square] = next_moments(self.betas, [mean, square], g);
        let scale = factor / (square.sqrt() + p.constant(self.epsilon));
        let scale = Q::choose(p.constant(0.0).is_less(factor), scale, p.constant(1.0));
        [p * kept - rate * mean * scale, mean, square]
    }
}
