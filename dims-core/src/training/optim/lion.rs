//! Lion.

use super::settings::{at_least_0, below_1};
use super::update::{OfStep, StepAfter, StepPrograms, compiled};
use super::{Optimizer, Schedule, State, with_state};
use crate::error::DimError;
use crate::grad::Parameters;
use kernels::map::formula::{Formula, Quantity};
use kernels::program::code::DType;

/// `p -= rate * (sign(beta1 * m + (1 - beta1) * g) + weight_decay * p)`, then `m = beta2 * m + (1 - beta2) * g`, where `g` is the gradient. This is
/// `optax.lion`.
///
/// (X. Chen and others, 2023, "Symbolic discovery of optimization algorithms". They advise a rate three to ten times smaller than AdamW's, and a weight decay as
/// many times larger.)
#[derive(Clone, Debug)]
pub struct Lion<P> {
    pub(super) state: State<P>,
    pub(super) betas: (f64, f64),
    pub(super) weight_decay: f64,
}

impl<P> Lion<P> {
    /// Steps with a learning rate: a number, or a [`Schedule`].
    #[rustfmt::skip] // rustc quotes the line
    pub fn new(rate: impl Into<Schedule>) -> Self where P: Parameters {
        Lion { state: State::new(rate.into()), betas: (0.9, 0.99), weight_decay: 0.001 }
    }

    /// Which shares of the mean of `g` stay, for the step and for the next mean; 0.9 and 0.99 unless they are set. Each is 0 or more, and less than 1.
    #[must_use]
    pub fn betas(self, beta1: f64, beta2: f64) -> Self {
        Lion { betas: (beta1, beta2), ..self }
    }

    /// How much of each parameter goes at each step, times the learning rate: 0 or more, and 0.001 unless it is set.
    #[must_use]
    pub fn weight_decay(self, weight_decay: f64) -> Self {
        Lion { weight_decay, ..self }
    }
}

impl<P> Lion<P> {
    fn formula(&self) -> Signs {
        Signs { betas: self.betas, weight_decay: self.weight_decay }
    }
}

impl<P: Parameters> Optimizer<P> for Lion<P> {
    fn try_step(&mut self, parameters: &mut P, gradient: &P) -> Result<(), DimError> {
        let Lion { betas, weight_decay, .. } = *self;
        below_1("Lion", "first beta", betas.0)?;
        below_1("Lion", "second beta", betas.1)?;
        at_least_0("Lion", "weight decay", weight_decay)?;
        let mut step = StepAfter::new("Lion", self.formula(), &self.state)?;
        self.state.step(&mut step, parameters, gradient)
    }

    fn programs(&self, elements: DType) -> Option<StepPrograms> {
        Some(StepPrograms::of(&self.formula(), elements))
    }

    with_state!("Lion", |_| &["mean"]);
}

#[derive(Clone, Copy)]
struct Signs {
    betas: (f64, f64),
    weight_decay: f64,
}

compiled! { Signs: 1 2 1; }

impl OfStep<1> for Signs {
    fn of_step<Q: Quantity>(&self, rate: Q, _: Q) -> [Q; 1] {
        [rate]
    }
}

impl Formula<1, 2, 1> for Signs {
    const NAME: &'static str = "lion";

    #[cfg_attr(not(unoptimized), inline(always))]
    fn apply<Q: Quantity>(&self, [rate]: [Q; 1], [p, mean]: [Q; 2], [g]: [Q; 1]) -> [Q; 2] {
        let number = |value: f64| p.constant(value);
        let mix = |beta: f64| number(1.0 - beta) * g + number(beta) * mean;
        let (direction, zero, one) = (mix(self.betas.0), number(0.0), number(1.0));
        // (0 and NaN are neither greater nor less, and stay.)
        let below = Q::choose(direction.is_less(zero), number(-1.0), direction);
        let sign = Q::choose(zero.is_less(direction), one, below);
        [p - rate * (sign + number(self.weight_decay) * p), mix(self.betas.1)]
    }
}
