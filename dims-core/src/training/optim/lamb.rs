//! LAMB.

use super::implement::with_state;
use super::moments::{betas, check_moments, next_moments};
use super::normed::Normed;
use super::settings::{decaying, settings};
use super::update::{OfStep, compiled};
use super::{Optimizer, Schedule, State};
use crate::error::DimError;
use crate::grad::Parameters;
use kernels::map::formula::{Direction, Formula, Quantity};
use kernels::map::norms::DirectionSquares;

/// Adam for large batches, with the length of steps scaled to the norm of the parameter. With
/// Adam's `m` and `v`, at step `t`, counted from 1,
/// `u = (m / (1 - beta1^t)) / (sqrt(v / (1 - beta2^t)) + epsilon) + weight_decay * p`, then
/// `p -= rate * |p| / |u| * u`, where `|p|` and `|u|` are the norms over all elements of a
/// parameter. If either norm is 0 or NaN, the quotient `|p| / |u|` is replaced by 1. This is
/// `optax.lamb`.
///
/// (Y. You and others, 2020, "Large batch optimization for deep learning: Training BERT in 76
/// minutes".)
///
/// ```
/// use typed_dims::optim::Lamb;
/// use typed_dims::prelude::*;
///
/// dims! { struct Feature; }
/// let (mut w, gradient) = (full::<f64, _>(Feature.of(4), 3.0), ones(Feature.of(4)));
/// Lamb::new(0.01).step(&mut w, &gradient); // `u` is 1, so the step has a hundredth of the parameter's length
/// assert!((w.order(Feature)[0] - 3.0 * 0.99).abs() < 1e-12);
/// ```
#[derive(Clone, Debug)]
pub struct Lamb<P> {
    pub(super) state: State<P>,
    pub(super) settings: LambSettings,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct LambSettings {
    pub(super) betas: (f64, f64),
    pub(super) epsilon: f64,
    pub(super) weight_decay: f64,
}

impl<P> Lamb<P> {
    /// Makes an optimizer with a learning rate: a number, or a [`Schedule`].
    #[rustfmt::skip] // rustc quotes the next line in errors
    pub fn new(rate: impl Into<Schedule>) -> Self where P: Parameters {
        Lamb {
            state: State::new(rate.into()),
            settings: LambSettings { betas: (0.9, 0.999), epsilon: 1e-6, weight_decay: 0.0 },
        }
    }
}

betas! { Lamb "0.9 and 0.999" }

settings! { Lamb, LambSettings {
    /// The number added to the denominator: 0 or more, default 1e-6.
    epsilon,
    /// Adds this multiple of each parameter to its `u`: 0 or more, default 0.
    weight_decay,
} {} }

impl<P: Parameters> Optimizer<P> for Lamb<P> {
    fn try_step(&mut self, parameters: &mut P, gradient: &P) -> Result<(), DimError> {
        let LambSettings { betas, epsilon, weight_decay } = self.settings;
        check_moments("Lamb", betas, epsilon, weight_decay)?;
        self.state.normed_step::<_, 3, 3, 3>("Lamb", self.settings, parameters, gradient)
    }

    with_state!("Lamb", |_| &["mean", "square"]);
}

impl LambSettings {
    #[cfg_attr(not(unoptimized), inline(always))]
    fn direction_of<Q: Quantity>(&self, corrections: [Q; 2], [p, mean, square]: [Q; 3]) -> Q {
        let number = |value: f64| p.constant(value);
        let scale = (square / corrections[1]).sqrt() + number(self.epsilon);
        mean / corrections[0] / scale + number(self.weight_decay) * p
    }
}

decaying! { LambSettings }
compiled! { LambSettings: 3 3 1; LambSettings: 3 3 0; }

impl OfStep<3> for LambSettings {
    fn of_step<Q: Quantity>(&self, rate: Q, step: Q) -> [Q; 3] {
        let correction = |beta: f64| rate.constant(1.0) - rate.constant(beta).powf(step);
        [correction(self.betas.0), correction(self.betas.1), rate]
    }
}

impl Formula<3, 3, 1> for LambSettings {
    const NAME: &'static str = "moments of lamb";

    #[cfg_attr(not(unoptimized), inline(always))]
    fn apply<Q: Quantity>(&self, _: [Q; 3], [p, mean, square]: [Q; 3], [g]: [Q; 1]) -> [Q; 3] {
        let [mean, square] = next_moments(self.betas, [mean, square], g);
        [p, mean, square]
    }
}

impl Direction<3, 3, 0> for LambSettings {
    const NAME: &'static str = "direction of lamb";

    #[cfg_attr(not(unoptimized), inline(always))]
    fn at<Q: Quantity>(&self, [one, two, _]: [Q; 3], state: [Q; 3], _: [Q; 0]) -> Q {
        self.direction_of([one, two], state)
    }
}

impl Normed<3, 3, 3> for LambSettings {
    fn with_norms<Q: Quantity>(&self, [one, two, rate]: [Q; 3], [own, along]: [Q; 2]) -> [Q; 3] {
        let (zero, unit) = (rate.constant(0.0), rate.constant(1.0));
        let trust = Q::choose(zero.is_less(along), own / along, unit);
        [one, two, rate * Q::choose(zero.is_less(own), trust, unit)]
    }

    // Not inlined, so that the loops are not compiled again in users' crates.
    #[inline(never)]
    fn direction(&self) -> &dyn DirectionSquares<3, 3, 0> {
        self
    }
}

impl Formula<3, 3, 0> for LambSettings {
    const NAME: &'static str = "lamb";

    #[cfg_attr(not(unoptimized), inline(always))]
    fn apply<Q: Quantity>(&self, [one, two, rate]: [Q; 3], state: [Q; 3], _: [Q; 0]) -> [Q; 3] {
        let [p, mean, square] = state;
        [p - rate * self.direction_of([one, two], state), mean, square]
    }
}
