//! Lion.

use super::implement::optimizer;
use super::settings::{at_least_0, below_1, decaying, settings};
use super::update::{OfStep, compiled};
use super::{Schedule, State};
use crate::error::DimError;
use crate::grad::Parameters;
use kernels::map::formula::{Formula, Quantity};

/// `p -= rate * (sign(beta1 * m + (1 - beta1) * g) + weight_decay * p)`, then
/// `m = beta2 * m + (1 - beta2) * g`, where `g` is the gradient. This is `optax.lion`.
///
/// (X. Chen and others, 2023, "Symbolic discovery of optimization algorithms".) The authors
/// recommend a rate three to ten times smaller than AdamW's, and a weight decay larger by the same
/// factor.
///
/// ```
/// use typed_dims::optim::Lion;
/// use typed_dims::prelude::*;
///
/// dims! { struct Feature; }
/// let (mut w, gradient) = (zeros::<f64, _>(Feature.of(2)), from_vec(Feature.of(2), vec![3.0, -0.01]));
/// Lion::new(0.1).step(&mut w, &gradient); // only the sign matters
/// assert_eq!(w.order(Feature), ndarray::array![-0.1, 0.1]);
/// ```
#[derive(Clone, Debug)]
pub struct Lion<P> {
    pub(super) state: State<P>,
    pub(super) settings: LionSettings,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct LionSettings {
    pub(super) betas: (f64, f64),
    pub(super) weight_decay: f64,
}

impl<P> Lion<P> {
    /// Makes an optimizer with a learning rate: a number, or a [`Schedule`].
    #[rustfmt::skip] // rustc quotes the next line in errors
    pub fn new(rate: impl Into<Schedule>) -> Self where P: Parameters {
        Lion { state: State::new(rate.into()), settings: LionSettings { betas: (0.9, 0.99), weight_decay: 0.001 } }
    }

    /// Sets the decay rates of the mean of `g`: `beta1` for the step, and `beta2` for the next
    /// mean. Both are 0 or more and less than 1, default 0.9 and 0.99.
    #[must_use]
    pub fn betas(self, beta1: f64, beta2: f64) -> Self {
        Lion { settings: LionSettings { betas: (beta1, beta2), ..self.settings }, ..self }
    }
}

settings! { Lion, LionSettings {
    /// Subtracts this multiple of each parameter, times the learning rate, at each step: 0 or more,
    /// default 0.001.
    weight_decay,
} {} }

impl LionSettings {
    fn check(&self) -> Result<(), DimError> {
        below_1("Lion", "first beta", self.betas.0)?;
        below_1("Lion", "second beta", self.betas.1)?;
        at_least_0("Lion", "weight decay", self.weight_decay)
    }
}

decaying! { LionSettings }
compiled! { LionSettings: 1 2 1; }
optimizer! { Lion by |_: &LionSettings| () => {
    () => 1 2 ["mean"],
} }

impl OfStep<1> for LionSettings {
    fn of_step<Q: Quantity>(&self, rate: Q, _: Q) -> [Q; 1] {
        [rate]
    }
}

impl Formula<1, 2, 1> for LionSettings {
    const NAME: &'static str = "lion";

    #[cfg_attr(not(unoptimized), inline(always))]
    fn apply<Q: Quantity>(&self, [rate]: [Q; 1], [p, mean]: [Q; 2], [g]: [Q; 1]) -> [Q; 2] {
        let number = |value: f64| p.constant(value);
        let mix = |beta: f64| number(1.0 - beta) * g + number(beta) * mean;
        let (direction, zero, one) = (mix(self.betas.0), number(0.0), number(1.0));
        // 0 and NaN are neither less nor greater than 0, so they are unchanged.
        let below = Q::choose(direction.is_less(zero), number(-1.0), direction);
        let sign = Q::choose(zero.is_less(direction), one, below);
        [p - rate * (sign + number(self.weight_decay) * p), mix(self.betas.1)]
    }
}
